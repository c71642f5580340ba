//! What is said while tables are made: sysbench's lines, and on a terminal how far it is.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;

use crate::progress::{Progress, Style};

/// Where several threads tell of their tables.
pub struct Console {
    /// `None` where nobody would see it.
    progress: Option<Mutex<Progress>>,
}

impl Console {
    /// For so many rows in all.
    pub fn new(rows: u64) -> Self {
        let is_seen = rows > 0 && std::io::stderr().is_terminal();
        Self { progress: is_seen.then(|| Mutex::new(Progress::new("sbtest", rows, Style::Bar))) }
    }

    /// Writes a line on standard output.
    pub fn say(&self, line: &str) {
        self.finish();
        // That nobody reads it is no reason to stop.
        let _ = writeln!(std::io::stdout().lock(), "{line}");
    }

    /// So many more rows are on their way.
    pub fn advance(&self, rows: u64) {
        self.with_progress(|progress| progress.advance(rows));
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.with_progress(|progress| progress.clear());
    }

    fn with_progress(&self, show: impl Fn(&mut Progress)) {
        if let Some(progress) = &self.progress {
            // A panic of another thread leaves the progress as good as it was.
            show(&mut progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        }
    }
}
