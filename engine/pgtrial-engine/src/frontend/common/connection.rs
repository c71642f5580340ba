//! Connects a front end to its server, and checks how many connections the server allows.

use std::fmt::Display;
use std::sync::Arc;

use super::failure::Failure;
use super::messages::USER;
use super::pooling::PoolError;
use drive::PoolPlan;
use wire::params::Given;
use wire::session::Session;
use wire::target::Target;

/// The word by which error messages name the purpose of a connection before or after the load, such as `setup` or
/// `initialization`.
pub type Purpose = &'static str;

/// The purpose of the connection before a run: `could not create connection for setup`.
pub const SETUP: Purpose = "setup";

/// The purpose of the connections that make tables: `could not create connection for loading`.
pub const LOADING: Purpose = "loading";

/// Adds the name of the database to the connection options, if the command line has it as an argument after the
/// options. Any further argument is an error.
pub fn with_database(server: Given, positional: impl IntoIterator<Item = String>) -> Result<Given, Failure> {
    let mut rest = positional.into_iter();
    let dbname = server.dbname.clone().or_else(|| rest.next());
    match rest.next() {
        Some(extra) => Err(Failure::misuse(format!("too many command-line arguments (first is \"{extra}\")"))),
        None => Ok(Given { dbname, ..server }),
    }
}

/// Returns the address of the server, from the options and libpq's environment variables. If neither the options nor
/// the environment set an application_name, `application` is used.
pub fn target(given: &Given, application: &str, purpose: Purpose) -> Result<Arc<Target>, Failure> {
    let given = Given { fallback_application_name: application.to_owned(), ..given.clone() };
    Target::of(&given, USER).map_err(|error| no_connection(error, purpose))
}

/// Opens a session for the work of the program itself before or after the load, such as making or checking tables.
pub fn session(target: &Arc<Target>, purpose: Purpose) -> Result<Session, Failure> {
    Session::open(target).map_err(|error| no_connection(error.message, purpose))
}

/// Returns the error for a connection that could not be made. `purpose` names what the connection was needed for.
pub fn no_connection(reason: impl Display, purpose: impl Display) -> Failure {
    Failure::error(reason).and(format_args!("could not create connection for {purpose}"))
}

/// Returns the greatest number of connections that the server allows this user, and the name of the setting that limits
/// the number. `None` if the server does not report a limit.
pub fn connection_limit(session: &mut Session) -> Option<(usize, String)> {
    // PostgreSQL does not apply the connection limits of roles and databases to superusers, so only `max_connections`
    // limits their connections.
    const SQL: &str = "select most, what from pg_catalog.pg_roles, pg_catalog.pg_database, lateral (values \
        (current_setting('max_connections')::int - case when rolsuper then 0 \
        else current_setting('superuser_reserved_connections')::int end, 'max_connections'), \
        (case when not rolsuper then rolconnlimit end, 'the role''s CONNECTION LIMIT'), \
        (case when not rolsuper then datconnlimit end, 'the database''s CONNECTION LIMIT')) as limits (most, what) \
        where rolname = current_user and datname = current_database() and most >= 0 order by most limit 1";
    let rows = session.query(SQL).unwrap_or_default();
    match rows.first()?.as_slice() {
        [Some(most), Some(what)] => Some((most.parse().ok()?, what.clone())),
        _ => None,
    }
}

/// Rejects pools that need more connections than the server allows this user. If several engines share the pools, the
/// connections of all engines are counted. If the server does not report a limit, any number is accepted.
pub fn check_limit(session: &mut Session, pools: &PoolPlan) -> Result<(), PoolError> {
    let (apps, size) = (pools.apps, pools.task_share.size);
    let wanted = apps * size;
    match connection_limit(session) {
        Some((most, limit)) if wanted > most => Err(PoolError::Limit { apps, size, wanted, most, limit }),
        _ => Ok(()),
    }
}
