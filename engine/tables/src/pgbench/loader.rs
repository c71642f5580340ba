//! The connections over which `pgbench -i` loads the tables.

use std::sync::Arc;

use wire::session::Session;
use wire::target::Target;

use super::options::InitOptions;
use crate::error::LoadError;
use crate::session::{Backends, query_if_allowed};

/// The session and the options with which each step works.
pub struct Loader<'a> {
    pub target: &'a Arc<Target>,
    pub session: &'a mut Session,
    pub options: &'a InitOptions,
    pub backends: &'a Backends,
    /// True if the user has been warned that the tables are loaded over one connection only.
    has_warned: bool,
}

/// The query that returns the process number of the session's server process, whether a timeout would end a session
/// that waits for other sessions, and how many more connections the limits of the server, the role and the database
/// allow.
const ROOM: &str = "\
select pg_catalog.pg_backend_pid(), \
  exists (select from (values ('idle_in_transaction_session_timeout'), ('idle_session_timeout'), \
      ('transaction_timeout')) as limits (name) \
    where coalesce(pg_catalog.current_setting(name, true), '0') <> '0'), \
  least( \
    pg_catalog.current_setting('max_connections')::int \
      - pg_catalog.current_setting('superuser_reserved_connections')::int \
      - coalesce(pg_catalog.current_setting('reserved_connections', true)::int, 0) \
      - (select pg_catalog.count(*) from pg_catalog.pg_stat_activity where backend_type = 'client backend'), \
    (select r.rolconnlimit - (select pg_catalog.count(*) from pg_catalog.pg_stat_activity a where a.usesysid = r.oid) \
      from pg_catalog.pg_roles r where r.rolname = session_user and r.rolconnlimit >= 0), \
    (select d.datconnlimit - (select pg_catalog.count(*) from pg_catalog.pg_stat_activity a where a.datid = d.oid) \
      from pg_catalog.pg_database d where d.datname = pg_catalog.current_database() and d.datconnlimit >= 0))";

impl<'a> Loader<'a> {
    /// Makes a loader that uses `session` as its first connection.
    pub fn new(
        target: &'a Arc<Target>,
        session: &'a mut Session,
        options: &'a InitOptions,
        backends: &'a Backends,
    ) -> Self {
        Self { target, session, options, backends, has_warned: false }
    }

    /// Opens connections for work on `items` tables in parallel. Returns no connections if fewer than two are wanted,
    /// or if the connection string has several hosts. Returns none either if further connections are not safe (see
    /// [`Self::obstacle`]), and then warns the user once. The session must be in no transaction.
    pub fn open_helpers(&mut self, items: usize) -> Result<Vec<Session>, LoadError> {
        let count = self.options.connections().min(items);
        // If the connection string has several hosts, another connection might reach another server.
        let params = &self.target.params;
        if count < 2 || params.endpoints.len() > 1 || params.load_balance_random {
            return Ok(Vec::new());
        }
        if let Some(obstacle) = self.obstacle(count)? {
            if !std::mem::replace(&mut self.has_warned, true) {
                (self.target.user.tell)(&format!("pgbench: warning: loading over one connection: {obstacle}"));
            }
            return Ok(Vec::new());
        }
        let mut helpers = Vec::new();
        for _ in 0..count {
            let helper = Session::open(self.target).map_err(LoadError::Connect)?;
            self.backends.add(&helper);
            helpers.push(helper);
        }
        Ok(helpers)
    }

    /// Returns the reason for which the loader must not open `count` further connections: a pooler could make them wait
    /// for each other for ever, the server could end them while they wait, or they could exceed the limit of
    /// connections. Returns `None` if the loader may open them.
    fn obstacle(&mut self, count: usize) -> Result<Option<String>, LoadError> {
        let found = query_if_allowed(self.session, ROOM)?.unwrap_or_default();
        let Some([Some(process), Some(limits_time), Some(free)]) = found.first().map(Vec::as_slice) else {
            return Ok(Some("the server does not say how many connections are free".to_owned()));
        };
        let own = self.session.backend().and_then(|backend| backend.process()).map(|number| number.to_string());
        let obstacle = if own.as_ref() != Some(process) {
            "the server is reached through a pooler, which may have no further connection".to_owned()
        } else if limits_time == "t" {
            "the server ends sessions that wait (idle_in_transaction_session_timeout, idle_session_timeout or \
             transaction_timeout)"
                .to_owned()
        } else if free.parse::<i64>().is_ok_and(|free| free >= count as i64) {
            return Ok(None);
        } else {
            format!("--load-jobs needs {count} further connections, but only {free} are free")
        };
        Ok(Some(obstacle))
    }
}
