//! Generates pgbench's rows in the client and sends them by COPY, over one or several connections.
//!
//! COPY with FREEZE works only in the transaction that has truncated the table. So an ordinary table is filled over one
//! connection. Partitions are filled in parallel: each connection truncates and fills its partitions in one
//! transaction, and all transactions commit after the last partition is filled. An error therefore leaves all tables as
//! they were before, unless the server dies between two of the commits.
//!
//! Engines that share a load neither truncate the tables nor freeze rows, so each engine can fill an ordinary table
//! over several connections.

use std::io::{IsTerminal, Write};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use wire::session::Session;

use super::layout::{self, AccountsTable};
use super::loader::Loader;
use super::options::{ACCOUNTS_PER_BRANCH, InitOptions, TELLERS_PER_BRANCH};
use super::rows::{AccountRows, RowColumns};
use super::statements::{ACCOUNTS, TRUNCATE, TRUNCATE_SMALL};
use crate::copy::{CopyFormat, NEVER, copy_rows};
use crate::error::LoadError;
use crate::parallel::for_each;
use crate::progress::{ProgressStyle, TableProgress};
use crate::session::{execute, query};

/// Generates the rows of all tables and fills the tables with them.
pub fn generate(loader: &mut Loader) -> Result<(), LoadError> {
    let options = loader.options;
    let tables = layout::find(loader.session, options)?;
    let helpers = loader.open_helpers(tables.as_ref().map_or(0, Vec::len))?;
    execute(loader.session, "begin")?;
    if !options.shard.is_part() {
        execute(loader.session, if helpers.is_empty() { TRUNCATE } else { TRUNCATE_SMALL })?;
    }
    // The accounts are filled last because, if there are foreign keys, they refer to the branches.
    if options.shard.is_first() {
        fill_small_tables(loader.session, options)?;
    }
    match tables {
        Some(tables) => {
            for mut helper in fill_accounts(loader, tables, helpers)? {
                execute(&mut helper, "commit")?;
            }
        }
        None => copy_text(loader.session, options, ACCOUNTS, options.accounts(), write_account)?,
    }
    execute(loader.session, "commit")
}

fn fill_small_tables(session: &mut Session, options: &InitOptions) -> Result<(), LoadError> {
    let branches = u64::from(options.scale);
    // As in pgbench, the column filler is NULL for branches and tellers, and empty for accounts.
    copy_text(session, options, "pgbench_branches", 0..branches, |row, out| {
        let _ = writeln!(out, "{}\t0\t\\N", row + 1);
    })?;
    copy_text(session, options, "pgbench_tellers", 0..TELLERS_PER_BRANCH * branches, |row, out| {
        let _ = writeln!(out, "{}\t{}\t0\t\\N", row + 1, row / TELLERS_PER_BRANCH + 1);
    })
}

/// Writes one account as a line of text.
pub fn write_account(row: u64, out: &mut Vec<u8>) {
    let _ = writeln!(out, "{}\t{}\t0\t", row + 1, row / ACCOUNTS_PER_BRANCH + 1);
}

/// Fills a table with COPY in text format, as pgbench does. This works for a relation of any kind.
fn copy_text(
    session: &mut Session,
    options: &InitOptions,
    table: &'static str,
    mut rows: Range<u64>,
    write_row: impl Fn(u64, &mut Vec<u8>),
) -> Result<(), LoadError> {
    let found =
        query(session, &format!("select relkind from pg_catalog.pg_class where oid='{table}'::pg_catalog.regclass"))?;
    let is_ordinary = found.first().and_then(|row| row.first()?.as_deref()) == Some("r");
    let freeze = if is_ordinary && !options.shard.is_part() { " with (freeze on)" } else { "" };
    let progress = TableProgress::new(table, rows.end - rows.start, style(options), session.user());
    let next_row = |out: &mut Vec<u8>| rows.next().map(|row| write_row(row, out)).is_some();
    let sql = format!("copy {table} from stdin{freeze}");
    let copied = copy_rows(session, &sql, CopyFormat::Text, next_row, &progress, &NEVER);
    progress.clear();
    copied.map_err(LoadError::Copy)
}

fn style(options: &InitOptions) -> ProgressStyle {
    if options.quiet { ProgressStyle::Quiet } else { ProgressStyle::Rows }
}

/// Fills the tables that hold the accounts over the connections in `helpers` or, if there are none, over the loader's
/// own session. Returns the helpers, whose transactions are still open: the caller commits them.
fn fill_accounts(
    loader: &mut Loader,
    tables: Vec<AccountsTable>,
    mut helpers: Vec<Session>,
) -> Result<Vec<Session>, LoadError> {
    let (options, is_shared) = (loader.options, loader.options.shard.is_part());
    let draws_bar = options.jobs.is_some() && !options.quiet && std::io::stderr().is_terminal();
    let style = if draws_bar { ProgressStyle::Bar } else { style(options) };
    let accounts = options.accounts();
    let progress = Arc::new(TableProgress::new(ACCOUNTS, accounts.end - accounts.start, style, loader.target.user));
    let filled = if helpers.is_empty() {
        tables.iter().try_for_each(|table| fill(loader.session, table, is_shared, &progress, &NEVER)).map(|()| helpers)
    } else {
        helpers.iter_mut().try_for_each(|helper| execute(helper, "begin"))?;
        let progress = Arc::clone(&progress);
        for_each(helpers, tables, move |session, table, stop| {
            if !is_shared {
                execute(session, &format!("truncate table {}", table.name))?;
            }
            fill(session, table, is_shared, &progress, stop)
        })
    };
    progress.clear();
    filled
}

/// Fills one table of accounts. If no other engine fills the table, the caller has truncated it in this transaction.
/// The function then sets defaults for the columns filler and abalance during COPY, because both have the same value in
/// every row: the server reads half as many fields, which saves a fifth of its work.
fn fill(
    session: &mut Session,
    table: &AccountsTable,
    is_shared: bool,
    progress: &TableProgress,
    stop: &AtomicBool,
) -> Result<(), LoadError> {
    let (name, columns) = (&table.name, if is_shared { RowColumns::All } else { RowColumns::AccountAndBranch });
    if !is_shared {
        execute(session, &format!("alter table {name} alter filler set default '', alter abalance set default 0"))?;
    }
    let freeze = if is_shared { "" } else { ", freeze on" };
    let sql = format!("copy {name} ({}) from stdin with (format binary{freeze})", columns.names());
    let mut rows = AccountRows::new(table.rows.clone(), table.is_bigint, columns);
    let copied = copy_rows(session, &sql, CopyFormat::Binary, |out| rows.write_next(out), progress, stop);
    copied.map_err(LoadError::Copy)?;
    if !is_shared {
        execute(session, &format!("alter table {name} alter filler drop default, alter abalance drop default"))?;
    }
    Ok(())
}
