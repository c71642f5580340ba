//! Shows the progress of loading a table: in pgbench's lines, which overwrite each other on a terminal, or as a bar.

use std::io::{IsTerminal, stderr};
use std::time::Instant;

use parking_lot::Mutex;
use wire::target::User;

/// The time in seconds between two progress lines with `--quiet`.
const QUIET_INTERVAL_S: f64 = 5.0;

/// The number of rows between two progress lines without `--quiet`.
const ROWS_PER_LINE: u64 = 100_000;

/// The shortest time in seconds between two drawings of the bar.
const BAR_INTERVAL_S: f64 = 0.1;

/// The width of the bar in characters.
const BAR_WIDTH: usize = 30;

/// The way in which progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressStyle {
    Hidden,
    /// A line is printed every 100,000 rows.
    Rows,
    /// A line is printed every five seconds.
    Quiet,
    /// A bar is drawn, which only a terminal can show.
    Bar,
}

/// The progress of loading one table, as shown to the user. Several threads can report their rows to it.
pub struct TableProgress {
    table: &'static str,
    rows: u64,
    style: ProgressStyle,
    user: User,
    began: Instant,
    is_terminal: bool,
    shown: Mutex<Shown>,
}

struct Shown {
    /// The number of rows that have been generated so far.
    done: u64,
    /// The time at which the next line is due, in seconds since the start.
    next_s: f64,
    /// The length of the line that was printed last.
    width: usize,
}

impl TableProgress {
    /// Begins to show the progress of a table that will have `rows` rows.
    pub fn new(table: &'static str, rows: u64, style: ProgressStyle, user: User) -> Self {
        let next_s = if style == ProgressStyle::Quiet { QUIET_INTERVAL_S } else { 0.0 };
        let shown = Mutex::new(Shown { done: 0, next_s, width: 0 });
        Self { table, rows, style, user, began: Instant::now(), is_terminal: stderr().is_terminal(), shown }
    }

    /// Adds `rows` generated rows, and prints a line or draws the bar if that is due.
    pub fn advance(&self, rows: u64) {
        let mut shown = self.shown.lock();
        let before = shown.done;
        shown.done += rows;
        let (done, elapsed) = (shown.done, self.began.elapsed().as_secs_f64());
        match self.style {
            ProgressStyle::Hidden => {}
            ProgressStyle::Rows => {
                for line in before / ROWS_PER_LINE + 1..=done / ROWS_PER_LINE {
                    self.show(&mut shown, &self.line(line * ROWS_PER_LINE, elapsed));
                }
            }
            ProgressStyle::Quiet => {
                // pgbench reads its clock every 100 rows, so a table of fewer than 100 rows gets no line.
                let row = done / 100 * 100;
                let is_last = done == self.rows && row == self.rows && rows > 0;
                if row > 0 && (is_last || elapsed >= shown.next_s) {
                    self.show(&mut shown, &self.line(row, elapsed));
                    shown.next_s = (elapsed / QUIET_INTERVAL_S).ceil() * QUIET_INTERVAL_S;
                }
            }
            ProgressStyle::Bar => {
                if elapsed >= shown.next_s {
                    self.show(&mut shown, &self.bar(done, elapsed));
                    shown.next_s = elapsed + BAR_INTERVAL_S;
                }
            }
        }
    }

    /// Erases the line that was printed last, if the output is a terminal.
    pub fn clear(&self) {
        let width = self.shown.lock().width;
        if self.is_terminal && width > 0 {
            (self.user.show)(&format!("{:width$}\r", ""));
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

    fn bar(&self, done: u64, elapsed: f64) -> String {
        let share = done as f64 / self.rows as f64;
        let filled = "#".repeat((share * BAR_WIDTH as f64) as usize);
        let (rate, left) = (done as f64 / elapsed.max(1e-6), elapsed / share.max(1e-9) - elapsed);
        format!("{} [{filled:.<BAR_WIDTH$}] {:3.0}%  {rate:.0} rows/s  {left:.0} s left", self.table, share * 100.0)
    }

    /// Prints a line over the one before. If the line before was longer, blanks are appended to cover its end, as in
    /// pgbench.
    fn show(&self, shown: &mut Shown, line: &str) {
        let end = if self.is_terminal { '\r' } else { '\n' };
        (self.user.show)(&format!("{line:<width$}{end}", width = shown.width));
        shown.width = line.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_says_how_much_how_fast_and_how_long() {
        let progress = TableProgress::new("pgbench_accounts", 200, ProgressStyle::Bar, User::NOBODY);
        assert_eq!(
            progress.bar(50, 10.0),
            "pgbench_accounts [#######.......................]  25%  5 rows/s  30 s left"
        );
    }

    #[test]
    fn a_line_is_pgbenchs() {
        let progress = TableProgress::new("pgbench_accounts", 400, ProgressStyle::Rows, User::NOBODY);
        assert_eq!(
            progress.line(100, 1.0),
            "100 of 400 tuples (25%) of pgbench_accounts done (elapsed 1.00 s, remaining 3.00 s)"
        );
    }
}
