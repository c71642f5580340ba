//! Upkeep of the accounts partition by partition, side by side over several connections.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::{Failed, Loader, execute, side_by_side, tables};
use wire::session::Session;

/// A condition for [`with`]: the partition has no index yet.
pub const NO_INDEX: &str = "not c.relhasindex";

/// Another: the server's version is one from which on a partitioned table can be analysed without its partitions.
const ANALYZE_ONLY: &str = "pg_catalog.current_setting('server_version_num')::int >= 180000";

/// Vacuums and analyses the tables. Where the partitions have had their turn, only the statistics of the whole are
/// missing.
pub fn vacuum(loader: &mut Loader) -> Result<(), Failed> {
    for table in tables::VACUUMED {
        if table == tables::LARGE {
            let partitions = with(loader, ANALYZE_ONLY)?;
            if each(loader, &partitions, |session, partition| execute(session, &tables::vacuum(partition)))? {
                execute(loader.session, &format!("analyze only {table}"))?;
                continue;
            }
        }
        execute(loader.session, &tables::vacuum(table))?;
    }
    Ok(())
}

/// The partitions of the accounts, if all are ordinary tables of ours for which an SQL condition on their row `c` of
/// `pg_class` holds; else none.
pub fn with(loader: &mut Loader, condition: &str) -> Result<Vec<String>, Failed> {
    let sql = format!(
        "select c.oid::pg_catalog.regclass, \
           c.relkind = 'r' and pg_catalog.pg_has_role(c.relowner, 'USAGE') and {condition} \
             and not exists (select from pg_catalog.pg_event_trigger) \
         from pg_catalog.pg_inherits i, pg_catalog.pg_class c, pg_catalog.pg_class root \
         where root.oid = pg_catalog.to_regclass('{}') and root.relkind = 'p' \
           and i.inhparent = root.oid and c.oid = i.inhrelid \
         order by c.oid",
        tables::LARGE
    );
    let rows = loader.session.query(&sql).map_err(|error| Failed::Query { sql, error })?;
    let partitions = rows.into_iter().map(|row| match <[Option<String>; 2]>::try_from(row) {
        Ok([Some(table), Some(fits)]) => (fits == "t").then_some(table),
        _ => None,
    });
    Ok(partitions.collect::<Option<_>>().unwrap_or_default())
}

/// Does `work` for each partition over one of several connections; false where there is one only, and nothing done. The
/// first failure ends it, when the statements under way have ended.
pub fn each(
    loader: &Loader,
    partitions: &[String],
    work: impl Fn(&mut Session, &str) -> Result<(), Failed> + Sync,
) -> Result<bool, Failed> {
    let helpers = side_by_side::helpers(loader, partitions.len())?;
    let (any, next) = (!helpers.is_empty(), AtomicUsize::new(0));
    let share = |mut session: Session| {
        while let Some(partition) = partitions.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(&mut session, partition).inspect_err(|_| next.store(partitions.len(), Ordering::Relaxed))?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let running: Vec<_> = helpers.into_iter().map(|session| scope.spawn(|| share(session))).collect();
        let ended: Vec<_> = running.into_iter().map(|thread| thread.join().unwrap_or(Err(Failed::Lost))).collect();
        ended.into_iter().collect::<Result<(), _>>()
    })?;
    Ok(any)
}
