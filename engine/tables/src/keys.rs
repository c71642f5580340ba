//! The primary keys: those of partitions side by side, and with memory for the server to sort in.

use super::side_by_side::MOST_JOBS;
use super::{Failed, Loader, execute, partitions};
use crate::tables;
use crate::tables::ACCOUNTS;
use wire::session::Session;

/// Memory for one key while it is sorted, bytes: an index tuple and the sort's own record of it.
const BYTES_OF_A_KEY: u64 = 48;

/// The most that is asked for, by as many connections together as are opened unasked, kB.
pub const MOST_KB: u64 = 512 * 1024;

const SETTING: &str =
    "select setting, source = 'client' from pg_catalog.pg_settings where name = 'maintenance_work_mem'";

/// Makes the keys. What is built for a partition over a connection of its own, the statement for the whole finds there
/// and takes over.
pub fn make(loader: &mut Loader) -> Result<(), Failed> {
    let load = loader.load;
    let rows = ACCOUNTS * u64::from(load.scale);
    for (table, column) in tables::KEYS {
        let is_large = table == tables::LARGE;
        if is_large {
            let partitions = partitions::with(loader, partitions::NO_INDEX)?;
            let count = partitions.len() as u64;
            let most = MOST_KB / count.clamp(1, MOST_JOBS as u64);
            partitions::each(loader, &partitions, |session, partition| {
                give_memory(session, rows / count, most)?;
                execute(session, &tables::primary_key(partition, column, load))
            })?;
        }
        let given = is_large && give_memory(loader.session, rows, MOST_KB)?;
        execute(loader.session, &tables::primary_key(table, column, load))?;
        if given {
            execute(loader.session, "reset maintenance_work_mem")?;
        }
    }
    Ok(())
}

/// Sees to enough `maintenance_work_mem` in a session for `rows` keys to be sorted in memory, but not more than `most`
/// kB; whether it was changed. More than that is left as it is, and so is what the user has set for connections
/// (`PGOPTIONS`).
pub fn give_memory(session: &mut Session, rows: u64, most: u64) -> Result<bool, Failed> {
    let found = session.query(SETTING).map_err(|error| Failed::Query { sql: SETTING.to_owned(), error })?;
    let wanted = (rows * BYTES_OF_A_KEY / 1024).min(most);
    let enough = match found.first().map(Vec::as_slice) {
        Some([Some(kb), Some(is_given)]) => is_given == "t" || kb.parse::<u64>().is_ok_and(|kb| kb >= wanted),
        _ => true,
    };
    if !enough {
        execute(session, &format!("set maintenance_work_mem = '{wanted}kB'"))?;
    }
    Ok(!enough)
}
