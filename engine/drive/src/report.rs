//! What the threads of a run report to it, and what all of them share.

use std::cell::Cell;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use crate::ledger::{Own, ScriptAccount, Tally};
use crate::outcome::{Abortion, CpuTime};
use crate::schedule::Stretch;
use ground::clock::{Nanos, monotonic};
use wire::OpenError;

/// How soon an interrupt is noticed.
pub const PATIENCE: Duration = Duration::from_millis(50);

/// A thread that has not noticed the end of the run so long after it is given up: it computes without end, or waits for a
/// shell command.
pub const UNAWARE_AFTER: Duration = Duration::from_secs(2);

/// A thread that has not ended so long after the end of the run is given up, too. Longer than threads wait for statements
/// that they have cancelled.
pub const STUCK_AFTER: Duration = Duration::from_secs(8);

/// Reports that wait for the main thread, for each thread and at least for all together. A thread makes one each second,
/// besides the notes that options ask for; each holds a histogram. When so many wait, because nobody reads what the main
/// thread writes, threads wait too, and count the time ([`ThreadTotals::held_up_ns`]).
const BACKLOG: usize = 16;
const LEAST_BACKLOG: usize = 256;

/// The channel for the reports of `jobs` threads.
pub fn channel(jobs: usize) -> (Reporter, Receiver<Report>) {
    let (reports, inbox) = sync_channel((jobs * BACKLOG).max(LEAST_BACKLOG));
    (Reporter { reports, held_up_ns: Cell::new(0) }, inbox)
}

/// Reports what one thread has to say.
#[derive(Clone)]
pub struct Reporter {
    reports: SyncSender<Report>,
    held_up_ns: Cell<Nanos>,
}

impl Reporter {
    /// Reports to the run; waits while too many reports are unread. A run that was given up receives nothing, which is no
    /// error here.
    pub fn report(&self, report: Report) {
        if let Err(TrySendError::Full(report)) = self.reports.try_send(report) {
            let began = monotonic();
            let _ = self.reports.send(report);
            self.held_up_ns.set(self.held_up_ns.get() + (monotonic() - began));
        }
    }

    /// How long the thread has waited because too many reports were unread.
    pub fn held_up_ns(&self) -> Nanos {
        self.held_up_ns.get()
    }
}

/// Reports the panic of the thread that drops it: the others would wait for its part of the run.
pub struct PanicReporter(pub Reporter);

impl Drop for PanicReporter {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.report(Report::Failed { message: "a client thread ended by a fault of the engine".to_owned() });
        }
    }
}

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
    /// How long it waited because its reports were not read.
    pub held_up_ns: Nanos,
    /// The first error that the transaction log met.
    pub log_error: Option<io::Error>,
    /// Clients that had not finished.
    pub unfinished: usize,
    /// What only the mode of the load counts.
    pub own: Own,
}

/// What all threads of a run share.
#[derive(Default)]
pub struct Shared {
    stop: AtomicBool,
    /// Threads that have noticed their end.
    pub ending: AtomicUsize,
    /// When the time of the load ends by an alarm.
    alarm_at: OnceLock<Nanos>,
    /// Transactions begun, of those that all clients share.
    pub events: AtomicU64,
}

impl Shared {
    /// Ends the run now.
    pub fn end_run(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// A thread has noticed that it is to end.
    pub fn note_ending(&self) {
        self.ending.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends the time of the load at `at`: no transaction begins later.
    pub fn end_load(&self, at: Nanos) {
        let _ = self.alarm_at.set(at);
    }

    /// When the time of the load ends, if an alarm ends it.
    pub fn alarm_at(&self) -> Option<Nanos> {
        self.alarm_at.get().copied()
    }

    /// Whether the run is to end now.
    #[inline]
    pub fn is_ended(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_reports_are_bounded_and_the_waiting_for_their_reader_is_counted() {
        let (reporter, inbox) = channel(1);
        (0..LEAST_BACKLOG).for_each(|_| reporter.report(Report::Connected));
        assert_eq!(reporter.held_up_ns(), 0);
        assert!(matches!(reporter.reports.try_send(Report::Connected), Err(TrySendError::Full(_))));
        let waiting = thread::spawn(move || {
            reporter.report(Report::Connected);
            reporter.held_up_ns()
        });
        let received = inbox.iter().count();
        assert_eq!((received, waiting.join().is_ok()), (LEAST_BACKLOG + 1, true));
    }

    #[test]
    fn a_thread_that_panics_says_so() {
        let (reporter, inbox) = channel(1);
        let panicking = thread::spawn(move || {
            let _reporter = PanicReporter(reporter);
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(panicking.join().is_err());
        assert!(matches!(inbox.recv(), Ok(Report::Failed { .. })));
    }

    #[test]
    fn a_report_after_the_end_of_the_run_is_dropped() {
        let (reporter, inbox) = channel(1);
        drop(inbox);
        (0..=LEAST_BACKLOG).for_each(|_| reporter.report(Report::Connected));
        assert_eq!(reporter.held_up_ns(), 0);
    }
}
