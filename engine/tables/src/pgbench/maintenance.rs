//! Runs VACUUM on pgbench's tables and makes their primary keys. Partitions of pgbench_accounts are processed in
//! parallel, over several connections.

use wire::session::Session;

use super::loader::Loader;
use super::options::MAX_CONNECTIONS;
use super::statements;
use crate::error::LoadError;
use crate::parallel::for_each;
use crate::session::{MAX_SORT_MEMORY_KB, execute, query_if_allowed, raise_sort_memory};

/// A condition on a partition: true if the partition has no index yet.
const HAS_NO_INDEX: &str = "not c.relhasindex";

/// A condition that is true if the server can analyse a partitioned table without also analysing its partitions, as
/// PostgreSQL 18 and later can.
const HAS_ANALYZE_ONLY: &str = "pg_catalog.current_setting('server_version_num')::int >= 180000";

/// Vacuums and analyses the tables. After the partitions were vacuumed in parallel, the partitioned table itself is
/// only analysed.
pub fn vacuum(loader: &mut Loader) -> Result<(), LoadError> {
    for table in statements::TABLES {
        let is_done = table == statements::ACCOUNTS
            && in_parallel(loader, HAS_ANALYZE_ONLY, |session, partition, _| {
                execute(session, &statements::vacuum(partition))
            })?;
        let sql = if is_done { format!("analyze only {table}") } else { statements::vacuum(table) };
        execute(loader.session, &sql)?;
    }
    Ok(())
}

/// Makes the primary keys. The statement for a partitioned table finds the indexes of its partitions and uses them.
pub fn create_primary_keys(loader: &mut Loader) -> Result<(), LoadError> {
    let rows = loader.options.all_accounts();
    for (table, column) in statements::PRIMARY_KEYS {
        let mut raise = None;
        if table == statements::ACCOUNTS {
            let options = loader.options.clone();
            in_parallel(loader, HAS_NO_INDEX, move |session, partition, count| {
                let max_kb = MAX_SORT_MEMORY_KB / count.min(MAX_CONNECTIONS) as u64;
                let raise = raise_sort_memory(session, rows / count as u64, max_kb)?;
                execute_after(session, raise.as_deref(), &statements::primary_key(partition, column, &options))
            })?;
            raise = raise_sort_memory(loader.session, rows, MAX_SORT_MEMORY_KB)?;
        }
        let sql = statements::primary_key(table, column, loader.options);
        execute_after(loader.session, raise.as_deref(), &sql)?;
    }
    Ok(())
}

/// Runs `sql`. If there is a `setting`, runs the setting's statement first, both in one transaction.
fn execute_after(session: &mut Session, setting: Option<&str>, sql: &str) -> Result<(), LoadError> {
    match setting {
        None => execute(session, sql),
        Some(setting) => ["begin", setting, sql, "commit"].into_iter().try_for_each(|sql| execute(session, sql)),
    }
}

/// Calls `work` for each partition of pgbench_accounts, with the name of the partition and the number of partitions,
/// over several connections, and returns true. Returns false without calling `work` if [`Loader::open_helpers`] opens
/// no connections, if the catalogs cannot be read, if the database has event triggers, or if some partition is not an
/// ordinary table, belongs to another user or does not meet `condition`, which is an SQL condition on the partition's
/// row `c` of `pg_class`.
fn in_parallel(
    loader: &mut Loader,
    condition: &str,
    work: impl Fn(&mut Session, &str, usize) -> Result<(), LoadError> + Send + Sync + 'static,
) -> Result<bool, LoadError> {
    let sql = format!(
        "select c.oid::pg_catalog.regclass, \
           c.relkind = 'r' and pg_catalog.pg_has_role(c.relowner, 'USAGE') and {condition} \
             and not exists (select from pg_catalog.pg_event_trigger) \
         from pg_catalog.pg_inherits i, pg_catalog.pg_class c, pg_catalog.pg_class root \
         where root.oid = pg_catalog.to_regclass('{}') and root.relkind = 'p' \
           and i.inhparent = root.oid and c.oid = i.inhrelid \
         order by c.oid",
        statements::ACCOUNTS
    );
    let found = query_if_allowed(loader.session, &sql)?.unwrap_or_default();
    let partitions = found.into_iter().map(|row| match <[Option<String>; 2]>::try_from(row) {
        Ok([Some(table), Some(fits)]) => (fits == "t").then_some(table),
        _ => None,
    });
    let partitions: Vec<_> = partitions.collect::<Option<_>>().unwrap_or_default();
    let (helpers, count) = (loader.open_helpers(partitions.len())?, partitions.len());
    if helpers.is_empty() {
        return Ok(false);
    }
    for_each(helpers, partitions, move |session, partition, _| work(session, partition, count)).map(|_| true)
}
