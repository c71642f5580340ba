//! Client-side data: rows by COPY in one transaction, frozen as they come in unless other engines fill the tables too.

use std::io::{IsTerminal, Write};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::progress::{Progress, Style};
use super::rows::{BinaryRows, Columns};
use super::tables::{ACCOUNTS, TELLERS, TRUNCATE};
use super::{Failed, Load, Loader, execute, shared, side_by_side};
use crate::layout;
use crate::layout::Part;
use wire::session::{Fill, Session};

/// Size of a message of text, bytes.
const MESSAGE: usize = 64 * 1024;

/// Fills the tables. They are emptied first, in the same transaction: only then may COPY freeze its rows. An engine of
/// several adds its share to them as they are.
pub fn generate(loader: &mut Loader) -> Result<(), Failed> {
    let rows = ACCOUNTS * u64::from(loader.load.scale);
    match layout::parts(loader.session, rows)? {
        Some(parts) => {
            let parts = shared::own(parts, loader.load, side_by_side::wanted(loader.load));
            match side_by_side::helpers(loader, parts.len())? {
                helpers if helpers.is_empty() => alone(loader, Some(&parts)),
                helpers => side_by_side::fill(loader, parts, helpers),
            }
        }
        None => alone(loader, None),
    }
}

/// All over one connection.
fn alone(loader: &mut Loader, parts: Option<&[Part]>) -> Result<(), Failed> {
    let load = loader.load;
    let session = &mut *loader.session;
    execute(session, "begin")?;
    if !load.shard.is_part() {
        execute(session, TRUNCATE)?;
    }
    small_tables(session, load)?;
    match parts {
        Some(parts) => {
            let (progress, stop) = (Mutex::new(accounts_progress(load)), AtomicBool::new(false));
            parts.iter().try_for_each(|part| fill_part(session, load, part, &progress, &stop))?;
            lock(&progress).clear();
        }
        None => copy_text(session, load, "pgbench_accounts", load.accounts(), account_text)?,
    }
    execute(session, "commit")
}

/// Branches and tellers, by one of several engines; before the accounts, in case there are foreign keys.
pub fn small_tables(session: &mut Session, load: &Load) -> Result<(), Failed> {
    if !load.shard.is_first() {
        return Ok(());
    }
    let branches = u64::from(load.scale);
    // The filler of branches and tellers is NULL and that of accounts empty, as in pgbench.
    copy_text(session, load, "pgbench_branches", 0..branches, |row, out| {
        let _ = writeln!(out, "{}\t0\t\\N", row + 1);
    })?;
    copy_text(session, load, "pgbench_tellers", 0..TELLERS * branches, |row, out| {
        let _ = writeln!(out, "{}\t{}\t0\t\\N", row + 1, row / TELLERS + 1);
    })
}

/// One account as a line of text.
pub fn account_text(row: u64, out: &mut Vec<u8>) {
    let _ = writeln!(out, "{}\t{}\t0\t", row + 1, row / ACCOUNTS + 1);
}

/// The progress of the accounts, in the style that was asked for.
pub fn accounts_progress(load: &Load) -> Progress {
    let wants_bar = load.jobs.is_some() && std::io::stderr().is_terminal();
    let style = match (load.quiet, wants_bar) {
        (true, _) => Style::Quiet,
        (false, true) => Style::Bar,
        (false, false) => Style::EachLot,
    };
    let accounts = load.accounts();
    Progress::new("pgbench_accounts", accounts.end - accounts.start, style)
}

/// Fills a table as pgbench does, whatever it is.
fn copy_text(
    session: &mut Session,
    load: &Load,
    table: &'static str,
    rows: Range<u64>,
    write_row: impl Fn(u64, &mut Vec<u8>),
) -> Result<(), Failed> {
    let kind_sql = format!("select relkind from pg_catalog.pg_class where oid='{table}'::pg_catalog.regclass");
    let kind = session.query(&kind_sql).map_err(|error| Failed::Query { sql: kind_sql, error })?;
    let is_ordinary = kind.first().and_then(|row| row.first()?.as_deref()) == Some("r");
    let freeze = if is_ordinary && !load.shard.is_part() { " with (freeze on)" } else { "" };
    let style = if load.quiet { Style::Quiet } else { Style::EachLot };
    let mut progress = Progress::new(table, rows.end - rows.start, style);
    let mut row = rows.start;
    let copied = session.copy_in(&format!("copy {table} from stdin{freeze}"), |out| {
        let (first, end) = (row, out.len() + MESSAGE);
        while row < rows.end && out.len() < end {
            write_row(row, out);
            row += 1;
        }
        progress.advance(row - first);
        if row < rows.end { Fill::More } else { Fill::Done }
    });
    progress.clear();
    Ok(copied?)
}

/// Fills one table of accounts. If it is ours alone, this transaction has emptied it, and balance and filler, the same in
/// every row, are defaults of the table meanwhile: the server has to read half as many fields, which is a fifth of its
/// work.
pub fn fill_part(
    session: &mut Session,
    load: &Load,
    part: &Part,
    progress: &Mutex<Progress>,
    stop: &AtomicBool,
) -> Result<(), Failed> {
    if load.shard.is_part() {
        return copy_binary(session, part, (Columns::All, ""), progress, stop);
    }
    let table = &part.table;
    execute(session, &format!("alter table {table} alter filler set default '', alter abalance set default 0"))?;
    copy_binary(session, part, (Columns::Two, ", freeze on"), progress, stop)?;
    execute(session, &format!("alter table {table} alter filler drop default, alter abalance drop default"))
}

fn copy_binary(
    session: &mut Session,
    part: &Part,
    (columns, freeze): (Columns, &str),
    progress: &Mutex<Progress>,
    stop: &AtomicBool,
) -> Result<(), Failed> {
    let mut rows = BinaryRows::new(&part.share, part.wide, columns);
    let sql = format!("copy {} ({}) from stdin with (format binary{freeze})", part.table, columns.names());
    Ok(session.copy_in(&sql, |out| {
        if stop.load(Ordering::Relaxed) {
            return Fill::GiveUp;
        }
        let (count, more) = rows.fill(out);
        lock(progress).advance(count);
        if more { Fill::More } else { Fill::Done }
    })?)
}

/// A panic of another thread leaves the progress as good as it was.
pub fn lock(progress: &Mutex<Progress>) -> std::sync::MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
