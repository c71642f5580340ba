//! What both makers of tables ask of a session, and the errors of making tables.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use wire::cancel::cancel;
use wire::error::ConnectionError;
use wire::session::{CopyError, Row, Session};
use wire::{Backend, OpenError};

/// Why making tables failed.
#[derive(Debug)]
pub enum LoadError {
    /// A statement failed.
    Query {
        sql: String,
        error: ConnectionError,
    },
    Copy(CopyError),
    /// A further connection could not be opened.
    Connect(OpenError),
    /// A thread panicked.
    ThreadLost,
}

/// The reason, without the statement.
impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Query { error, .. } => write!(f, "{error}"),
            Self::Copy(error) => write!(f, "{error}"),
            Self::Connect(error) => write!(f, "{error}"),
            Self::ThreadLost => f.write_str("a loading thread ended unexpectedly"),
        }
    }
}

/// Runs `sql` and returns its rows.
pub fn query(session: &mut Session, sql: &str) -> Result<Vec<Row>, LoadError> {
    session.query(sql).map_err(|error| LoadError::Query { sql: sql.to_owned(), error })
}

/// Runs `sql`.
pub fn execute(session: &mut Session, sql: &str) -> Result<(), LoadError> {
    query(session, sql).map(drop)
}

/// Rejects a server that takes no writes; `need` says for what it has to: `tasks update a table`.
pub fn refuse_read_only(session: &mut Session, need: &str) -> Result<(), String> {
    const SQL: &str = "select pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only')";
    let rows = session.query(SQL).map_err(|error| error.to_string())?;
    match rows.first().map(|row| row.iter().map(Option::as_deref).collect::<Vec<_>>()).as_deref() {
        Some([Some("t"), _]) => Err(format!("the server is a read-only standby, and {need}; name the primary")),
        Some([_, Some("on")]) => {
            Err(format!("transactions of this user are read-only (default_transaction_read_only), and {need}"))
        }
        _ => Ok(()),
    }
}

/// The most memory that the sorts of all connections together ask for, kB.
pub const MAX_SORT_MEMORY_KB: u64 = 512 * 1024;

/// Memory for one key while the server sorts it, bytes: the index tuple and the sort's own record of it.
const BYTES_PER_KEY: u64 = 48;

/// Runs `sql`, which only helps to be fast, and returns its rows; `None` if the server rejects it, as where hosters revoke
/// catalogs. Other errors end the work. The session is in no transaction.
pub fn query_if_allowed(session: &mut Session, sql: &str) -> Result<Option<Vec<Row>>, LoadError> {
    match query(session, sql) {
        Ok(rows) => Ok(Some(rows)),
        Err(LoadError::Query { error: ConnectionError::Server(error), .. }) if error.sqlstate != CANCELLED => Ok(None),
        Err(error) => Err(error),
    }
}

/// SQLSTATE of a statement that an interrupt has cancelled.
const CANCELLED: &str = "57014";

/// Returns the statement that raises `maintenance_work_mem` of one transaction so that the server can sort `rows` keys in
/// memory, up to `max_kb`; `None` if the setting is sufficient, cannot be read, or was made by the user for connections
/// (`PGOPTIONS`). Nothing is set for the session, which other clients may use later through a pooler. The session must be in
/// no transaction.
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

/// How long cancel requests may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The server processes of all connections that load, so that they can be cancelled.
#[derive(Clone, Default)]
pub struct Backends(Arc<Mutex<Vec<Arc<Backend>>>>);

impl Backends {
    /// Adds the server process of `session`.
    pub(crate) fn add(&self, session: &Session) {
        self.0.lock().extend(session.backend().cloned());
    }

    /// Has the server cancel what the processes are doing; this needs no session. The error is a message for the user.
    pub fn cancel(&self) -> Result<(), String> {
        let backends = self.0.lock().clone();
        cancel(&backends, Instant::now() + PATIENCE).map_err(|error| error.message)
    }
}
