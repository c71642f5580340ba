//! Client-side data: rows by COPY in one transaction, frozen as they come in.

use std::io::{IsTerminal, Write};
use std::time::Instant;

use super::tables::{ACCOUNTS, TELLERS, TRUNCATE};
use super::{Failed, Load, execute};
use crate::connection::session::Session;

/// Seconds between progress lines with `--quiet`.
const QUIET_INTERVAL: f64 = 5.0;

/// Rows between progress lines otherwise.
const ROWS_PER_LINE: u64 = 100_000;

/// Fills the tables. They are emptied first, in the same transaction: only then may COPY freeze its rows.
pub fn generate(session: &mut Session, load: &Load) -> Result<(), Failed> {
    execute(session, "begin")?;
    execute(session, TRUNCATE)?;
    let scale = u64::from(load.scale);
    // The filler of branches and tellers is NULL and that of accounts empty, as in pgbench.
    fill(session, load, "pgbench_branches", scale, |row, out| {
        let _ = writeln!(out, "{}\t0\t\\N", row + 1);
    })?;
    fill(session, load, "pgbench_tellers", TELLERS * scale, |row, out| {
        let _ = writeln!(out, "{}\t{}\t0\t\\N", row + 1, row / TELLERS + 1);
    })?;
    fill(session, load, "pgbench_accounts", ACCOUNTS * scale, |row, out| {
        let _ = writeln!(out, "{}\t{}\t0\t", row + 1, row / ACCOUNTS + 1);
    })?;
    execute(session, "commit")
}

fn fill(
    session: &mut Session,
    load: &Load,
    table: &str,
    rows: u64,
    write_row: impl Fn(u64, &mut Vec<u8>),
) -> Result<(), Failed> {
    let mut progress = Progress::new(table, rows, load.quiet);
    let mut row = 0;
    let sql = format!("copy {table} from stdin with (freeze on)");
    let copied = session.copy_in(&sql, |out| {
        if row < rows {
            write_row(row, out);
            row += 1;
            progress.at(row);
        }
        row < rows
    });
    progress.clear();
    copied.map_err(|error| Failed { sql, error })
}

/// pgbench's progress lines: overwritten in place on a terminal.
struct Progress<'a> {
    table: &'a str,
    rows: u64,
    quiet: bool,
    began: Instant,
    next_quiet: f64,
    terminal: bool,
    shown: usize,
}

impl<'a> Progress<'a> {
    fn new(table: &'a str, rows: u64, quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { table, rows, quiet, began: Instant::now(), next_quiet: QUIET_INTERVAL, terminal, shown: 0 }
    }

    fn at(&mut self, row: u64) {
        if !self.quiet {
            if row % ROWS_PER_LINE == 0 {
                self.show(row, self.began.elapsed().as_secs_f64());
            }
        } else if row % 100 == 0 {
            let elapsed = self.began.elapsed().as_secs_f64();
            if row == self.rows || elapsed >= self.next_quiet {
                self.show(row, elapsed);
                self.next_quiet = (elapsed / QUIET_INTERVAL).ceil() * QUIET_INTERVAL;
            }
        }
    }

    fn show(&mut self, row: u64, elapsed: f64) {
        let remaining = (self.rows - row) as f64 * elapsed / row as f64;
        let line = format!(
            "{row} of {} tuples ({}%) of {} done (elapsed {elapsed:.2} s, remaining {remaining:.2} s)",
            self.rows,
            row * 100 / self.rows,
            self.table
        );
        // A shorter line is filled up with blanks to cover the former one, as pgbench does.
        let end = if self.terminal { '\r' } else { '\n' };
        eprint!("{line:<width$}{end}", width = self.shown);
        self.shown = line.len();
    }

    /// Removes the last line from a terminal.
    fn clear(&self) {
        if self.terminal && self.shown > 0 {
            eprint!("{:width$}\r", "", width = self.shown);
        }
    }
}
