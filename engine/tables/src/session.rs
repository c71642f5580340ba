//! The requests that all makers of tables send to a session, and the errors of making tables.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use wire::cancel::cancel;
use wire::error::ConnectionError;
use wire::session::{Row, Session};
use wire::{Backend, OpenError};

use crate::error::{LoadError, TablesError};

/// Runs `sql` and returns its rows.
pub fn query(session: &mut Session, sql: &str) -> Result<Vec<Row>, LoadError> {
    session.query(sql).map_err(|error| LoadError::Query { sql: sql.to_owned(), error })
}

/// Runs `sql` and drops its rows.
pub fn execute(session: &mut Session, sql: &str) -> Result<(), LoadError> {
    query(session, sql).map(drop)
}

/// Returns an error if the server accepts no writes. `need` is the part of the message that says why they are needed,
/// such as `tasks update a table`.
pub fn refuse_read_only(session: &mut Session, need: &'static str) -> Result<(), TablesError> {
    const SQL: &str = "select pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only')";
    let rows = query(session, SQL)?;
    match rows.first().map(|row| row.iter().map(Option::as_deref).collect::<Vec<_>>()).as_deref() {
        Some([Some("t"), _]) => Err(TablesError::Standby(need)),
        Some([_, Some("on")]) => Err(TablesError::ReadOnly(need)),
        _ => Ok(()),
    }
}

/// The greatest amount of memory that the sorts of all connections together ask for, kB.
pub const MAX_SORT_MEMORY_KB: u64 = 512 * 1024;

/// Memory for one key while the server sorts it, bytes: the index tuple and the sort's own record of it.
const BYTES_PER_KEY: u64 = 48;

/// Runs `sql`, which only helps to be fast, and returns its rows; `None` if the server rejects it, as where hosters
/// revoke catalogs. Other errors end the work. The session is in no transaction.
pub fn query_if_allowed(session: &mut Session, sql: &str) -> Result<Option<Vec<Row>>, LoadError> {
    match query(session, sql) {
        Ok(rows) => Ok(Some(rows)),
        Err(LoadError::Query { error: ConnectionError::Server(error), .. }) if error.sqlstate != CANCELLED => Ok(None),
        Err(error) => Err(error),
    }
}

/// SQLSTATE of a statement that an interrupt has cancelled.
const CANCELLED: &str = "57014";

/// Returns the statement that raises `maintenance_work_mem` of one transaction so that the server can sort `rows` keys
/// in memory, up to `max_kb`; `None` if the setting is sufficient, cannot be read, or was made by the user for
/// connections (`PGOPTIONS`). Nothing is set for the session, which other clients may use later through a pooler. The
/// session must be in no transaction.
pub fn raise_sort_memory(session: &mut Session, rows: u64, max_kb: u64) -> Result<Option<String>, LoadError> {
    const SETTING: &str =
        "select setting, source = 'client' from pg_catalog.pg_settings where name = 'maintenance_work_mem'";
    let found = query_if_allowed(session, SETTING)?.unwrap_or_default();
    let wanted = (rows * BYTES_PER_KEY / 1024).min(max_kb);
    let keep = match found.first().map(Vec::as_slice) {
        Some([Some(kb), Some(is_users)]) => is_users == "t" || kb.parse::<u64>().is_ok_and(|kb| kb >= wanted),
        _ => true,
    };
    Ok((!keep).then(|| format!("set local maintenance_work_mem = '{wanted}kB'")))
}

/// The longest time that cancel requests may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The server processes of all connections that load, so that they can be cancelled.
#[derive(Clone, Default)]
pub struct Backends(Arc<Mutex<Vec<Arc<Backend>>>>);

impl Backends {
    /// Adds the server process of `session`.
    pub(crate) fn add(&self, session: &Session) {
        self.0.lock().extend(session.backend().cloned());
    }

    /// Asks the server to cancel what the processes are doing; this needs no session.
    pub fn cancel(&self) -> Result<(), OpenError> {
        let backends = self.0.lock().clone();
        cancel(&backends, Instant::now() + PATIENCE)
    }
}
