//! Connects a front end to its server, and checks how many connections the server and the operating system allow.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::failure::Failure;
use super::messages::USER;
use super::pooling::PoolError;
use drive::plan::PoolPlan;
use ground::interrupt;
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
pub fn with_database(server: &mut Given, positional: impl IntoIterator<Item = String>) -> Result<(), Failure> {
    let mut rest = positional.into_iter();
    if server.dbname.is_none() {
        server.dbname = rest.next();
    }
    match rest.next() {
        Some(extra) => Err(Failure::misuse(format!("too many command-line arguments (first is \"{extra}\")"))),
        None => Ok(()),
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

/// Opens a session as [`session`] does. From then on an interrupt cancels the statement that the session runs. Also
/// returns the address of the server, and the flag that the interrupt sets.
pub fn connect(
    given: &Given,
    application: &str,
    purpose: Purpose,
) -> Result<(Arc<Target>, Session, Arc<AtomicBool>), Failure> {
    let target = target(given, application, purpose)?;
    let session = session(&target, purpose)?;
    let interrupt = interrupt::catch()?;
    target.obey(&interrupt);
    Ok((target, session, interrupt))
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

/// Raises the process's limit of open files, so that this number of connections can be opened. The error messages are
/// the same as in pgbench. The run raises the limit further for the files of its threads.
pub fn reserve_files(connections: u64) -> Result<(), Failure> {
    const ADVICE: &str = "Reduce number of clients, or use limit/ulimit to increase the system limit.";
    let needed = connections + 3;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)
        .map_err(|error| Failure::error(format!("getrlimit failed: {}", error.desc())))?;
    let too_few = |reason| Failure::error(format!("need at least {needed} open files, but {reason}")).hint(ADVICE);
    if hard < needed {
        return Err(too_few(format!("system limit is {hard}")));
    }
    let not_raised = |error: Errno| too_few(format!("couldn't raise the limit: {}", error.desc()));
    if soft < needed { setrlimit(Resource::RLIMIT_NOFILE, needed, hard).map_err(not_raised) } else { Ok(()) }
}
