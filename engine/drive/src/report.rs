//! What the threads of a run report to it, and what all of them share.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::ledger::replay::ReplayTotals;
use crate::ledger::{ScriptAccount, Tally};
use crate::outcome::{Abortion, CpuTime};
use crate::schedule::Stretch;
use ground::clock::Nanos;
use wire::OpenError;

/// How soon an interrupt is noticed.
pub const PATIENCE: Duration = Duration::from_millis(50);

/// A report of a thread.
pub enum Report {
    /// All of its clients are ready.
    Connected,
    /// It has begun its load.
    Began {
        at: Nanos,
    },
    CannotConnect {
        client: usize,
        error: OpenError,
    },
    Tick {
        thread: usize,
        stretch: Stretch,
        tally: Box<Tally>,
    },
    Note(String),
    Aborted {
        thread: usize,
        abortion: Abortion,
    },
    Failed {
        message: String,
    },
    Finished {
        thread: usize,
        totals: Box<ThreadTotals>,
    },
}

/// A thread's sums at its end.
#[derive(Debug, Default)]
pub struct ThreadTotals {
    pub ended: Nanos,
    pub aborted: usize,
    /// Time spent on making connections while the load ran.
    pub reconnect_ns: u64,
    pub scripts: Vec<ScriptAccount>,
    /// CPU time in the measured part.
    pub cpu: CpuTime,
    /// The first error that the transaction log met.
    pub log_error: Option<io::Error>,
    /// Clients that had not finished.
    pub unfinished: usize,
    /// Only of a replay.
    pub replay: Option<ReplayTotals>,
}

/// What all threads of a run share.
#[derive(Default)]
pub struct Shared {
    stop: AtomicBool,
    /// Transactions begun, of those that all clients share.
    pub events: AtomicU64,
}

impl Shared {
    /// Ends the run now.
    pub fn end_run(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the run is to end now.
    #[inline]
    pub fn is_ended(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The reports of all threads, which an interrupt stops.
pub struct Inbox<'a> {
    pub reports: Receiver<Report>,
    pub interrupt: &'a AtomicBool,
    pub shared: &'a Shared,
}

impl Inbox<'_> {
    /// Waits for the next report; `None` if no thread is left.
    pub fn next(&self) -> Option<Report> {
        loop {
            if self.is_interrupted() {
                self.shared.end_run();
            }
            match self.reports.recv_timeout(PATIENCE) {
                Ok(report) => return Some(report),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Whether the run is to end early.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}
