//! Memory for the server to sort in while it makes the primary keys.

use super::tables::ACCOUNTS;
use super::{Failed, Loader, execute};
use crate::connection::session::Session;

/// Memory for one key while it is sorted, bytes: an index tuple and the sort's own record of it.
const BYTES_OF_A_KEY: u64 = 48;

/// The most that is asked for, kB.
const MOST_KB: u64 = 512 * 1024;

const SETTING: &str =
    "select setting, source = 'client' from pg_catalog.pg_settings where name = 'maintenance_work_mem'";

/// Runs `work` with enough `maintenance_work_mem` in this session for its sorts to stay in memory. More than that is
/// left as it is, and so is what the user has set for this connection (`PGOPTIONS`).
pub fn with_memory(loader: &mut Loader, work: impl Fn(&mut Session) -> Result<(), Failed>) -> Result<(), Failed> {
    let rows = loader.session.query(SETTING).map_err(|error| Failed::Query { sql: SETTING.to_owned(), error })?;
    let wanted = (ACCOUNTS * u64::from(loader.load.scale) * BYTES_OF_A_KEY / 1024).min(MOST_KB);
    let enough = match rows.first().map(Vec::as_slice) {
        Some([Some(kb), Some(is_given)]) => is_given == "t" || kb.parse::<u64>().is_ok_and(|kb| kb >= wanted),
        _ => true,
    };
    if enough {
        return work(loader.session);
    }
    execute(loader.session, &format!("set maintenance_work_mem = '{wanted}kB'"))?;
    work(loader.session)?;
    execute(loader.session, "reset maintenance_work_mem")
}
