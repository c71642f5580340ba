//! The requests to the server that all modules which make tables need, with their errors.

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

/// Fails if the server or the user's transactions are read-only. `need` tells the user in the message why the load has
/// to write, such as `tasks update a table`.
pub fn refuse_read_only(session: &mut Session, need: &'static str) -> Result<(), TablesError> {
    const SQL: &str = "select pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only')";
    let rows = query(session, SQL)?;
    match rows.first().map(|row| row.iter().map(Option::as_deref).collect::<Vec<_>>()).as_deref() {
        Some([Some("t"), _]) => Err(TablesError::Standby(need)),
        Some([_, Some("on")]) => Err(TablesError::ReadOnly(need)),
        _ => Ok(()),
    }
}

/// The greatest amount of memory in kB that the sorts of all connections together may use. With more than eight
/// connections `pgbench -i` may use more.
pub const MAX_SORT_MEMORY_KB: u64 = 512 * 1024;

/// The memory in bytes that the server needs to sort one key: the index tuple, and the entry of the sort that points to
/// it.
const BYTES_PER_KEY: u64 = 48;

/// Runs a query whose answer only makes loading faster, and returns its rows. Returns `None` if the server rejects the
/// query, for example because a hosting provider has revoked access to a catalog. Fails on all other errors, such as a
/// lost connection, and if the statement was cancelled. The session must be in no transaction.
pub fn query_if_allowed(session: &mut Session, sql: &str) -> Result<Option<Vec<Row>>, LoadError> {
    match query(session, sql) {
        Ok(rows) => Ok(Some(rows)),
        Err(LoadError::Query { error: ConnectionError::Server(error), .. }) if error.sqlstate != CANCELLED => Ok(None),
        Err(error) => Err(error),
    }
}

/// The SQLSTATE with which the server reports that a statement was cancelled, as after an interrupt of this program.
const CANCELLED: &str = "57014";

/// Returns a statement that raises `maintenance_work_mem` for one transaction, so that the server can sort `rows` keys
/// in memory, but to no more than `max_kb`. Returns `None` if the setting is sufficient, cannot be read, or was given
/// by the user for the connection (`PGOPTIONS`). The statement does not change the setting of the whole session,
/// because a pooler may give the session to other clients later. The session must be in no transaction.
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

/// The longest time that sending the cancel requests may take.
const CANCEL_PATIENCE: Duration = Duration::from_secs(10);

/// The server processes of all connections over which this program loads tables. They are recorded so that an interrupt
/// can cancel their statements.
#[derive(Clone, Default)]
pub struct Backends(Arc<Mutex<Vec<Arc<Backend>>>>);

impl Backends {
    /// Records the server process of `session`, so that its work can be cancelled.
    pub(crate) fn add(&self, session: &Session) {
        self.0.lock().extend(session.backend().cloned());
    }

    /// Asks the server to cancel the statements that run on the connections added by [`Self::add`]. This opens new
    /// connections for the requests, because a session cannot cancel its own statement.
    pub fn cancel(&self) -> Result<(), OpenError> {
        let backends = self.0.lock().clone();
        cancel(&backends, Instant::now() + CANCEL_PATIENCE)
    }
}
