//! How far the loading is: pgbench's lines, overwritten in place on a terminal, or a bar.

use std::fmt::Display;
use std::io::IsTerminal;
use std::time::Instant;

use ground::output::print_stderr;

/// Seconds between lines with `--quiet`.
const QUIET_INTERVAL: f64 = 5.0;

/// Rows between lines otherwise.
const ROWS_PER_LINE: u64 = 100_000;

/// Seconds between two drawings of the bar, and its width in characters.
const BAR_INTERVAL: f64 = 0.1;
const BAR_WIDTH: usize = 30;

/// Which lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// One every 100,000 rows.
    EachLot,
    /// One every five seconds.
    Quiet,
    /// A bar; for a terminal.
    Bar,
}

/// Writes a line on standard error.
pub fn say(line: impl Display) {
    print_stderr(format_args!("{line}\n"));
}

/// The progress of one table.
pub struct Progress {
    table: &'static str,
    rows: u64,
    done: u64,
    style: Style,
    began: Instant,
    /// When the next line is due, seconds.
    next: f64,
    terminal: bool,
    shown: usize,
}

impl Progress {
    pub fn new(table: &'static str, rows: u64, style: Style) -> Self {
        let next = if style == Style::Quiet { QUIET_INTERVAL } else { 0.0 };
        let terminal = std::io::stderr().is_terminal();
        Self { table, rows, done: 0, style, began: Instant::now(), next, terminal, shown: 0 }
    }

    /// Some more rows are on their way.
    pub fn advance(&mut self, more: u64) {
        let before = self.done;
        self.done += more;
        let elapsed = self.began.elapsed().as_secs_f64();
        match self.style {
            Style::EachLot => {
                for lot in before / ROWS_PER_LINE + 1..=self.done / ROWS_PER_LINE {
                    self.show(&self.line(lot * ROWS_PER_LINE, elapsed));
                }
            }
            Style::Quiet => {
                // pgbench looks at its clock every 100 rows, so a table of fewer than 100 gets no line.
                let row = self.done / 100 * 100;
                let complete = self.done == self.rows && row == self.rows && more > 0;
                if row > 0 && (complete || elapsed >= self.next) {
                    self.show(&self.line(row, elapsed));
                    self.next = (elapsed / QUIET_INTERVAL).ceil() * QUIET_INTERVAL;
                }
            }
            Style::Bar => {
                if elapsed >= self.next {
                    self.show(&self.bar(elapsed));
                    self.next = elapsed + BAR_INTERVAL;
                }
            }
        }
    }

    fn line(&self, row: u64, elapsed: f64) -> String {
        let remaining = (self.rows - row) as f64 * elapsed / row as f64;
        format!(
            "{row} of {} tuples ({}%) of {} done (elapsed {elapsed:.2} s, remaining {remaining:.2} s)",
            self.rows,
            row * 100 / self.rows,
            self.table
        )
    }

    fn bar(&self, elapsed: f64) -> String {
        let share = self.done as f64 / self.rows as f64;
        let filled = "#".repeat((share * BAR_WIDTH as f64) as usize);
        let (rate, left) = (self.done as f64 / elapsed.max(1e-6), elapsed / share.max(1e-9) - elapsed);
        format!("{} [{filled:.<BAR_WIDTH$}] {:3.0}%  {rate:.0} rows/s  {left:.0} s left", self.table, share * 100.0)
    }

    fn show(&mut self, line: &str) {
        // A shorter line is filled up with blanks to cover the former one, as pgbench does.
        let end = if self.terminal { '\r' } else { '\n' };
        print_stderr(format_args!("{line:<width$}{end}", width = self.shown));
        self.shown = line.len();
    }

    /// Removes the last line from a terminal.
    pub fn clear(&self) {
        if self.terminal && self.shown > 0 {
            print_stderr(format_args!("{:width$}\r", "", width = self.shown));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_says_how_much_how_fast_and_how_long() {
        let progress = Progress { done: 50, ..Progress::new("pgbench_accounts", 200, Style::Bar) };
        assert_eq!(progress.bar(10.0), "pgbench_accounts [#######.......................]  25%  5 rows/s  30 s left");
    }

    #[test]
    fn a_line_is_pgbenchs() {
        let progress = Progress::new("pgbench_accounts", 400, Style::EachLot);
        assert_eq!(
            progress.line(100, 1.0),
            "100 of 400 tuples (25%) of pgbench_accounts done (elapsed 1.00 s, remaining 3.00 s)"
        );
    }
}
