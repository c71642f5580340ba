//! The reports that the threads of a run send to the main thread, and the state that all threads of a run share.

use std::cell::Cell;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use crate::outcome::{Abortion, CpuTime};
use crate::schedule::Period;
use crate::statistics::replay::ReplayTotals;
use crate::statistics::{LoadStatistics, ScriptAccount};
use ground::clock::{Nanos, monotonic};
use wire::OpenError;

/// The longest time until an interrupt is noticed.
pub const INTERRUPT_CHECK: Duration = Duration::from_millis(50);

/// The time after the end of the run at which the main thread stops waiting for a thread that has not noticed the end.
/// Such a thread computes without end, or waits for a shell command.
pub const UNAWARE_AFTER: Duration = Duration::from_secs(2);

/// The time after the end of the run at which the main thread stops waiting for any thread. It is longer than the time
/// for which threads wait until cancelled statements have ended.
pub const STUCK_AFTER: Duration = Duration::from_secs(8);

/// The number of unread reports for each thread at which threads begin to wait for the main thread. Each second a
/// thread sends a report with a histogram; messages about failures are reports, too. The main thread falls behind if
/// nobody reads its output. The time for which threads then wait is counted in [`ThreadTotals::held_up_ns`].
const BACKLOG: usize = 16;

/// The smallest number of unread reports, for all threads together, at which threads begin to wait.
const LEAST_BACKLOG: usize = 256;

/// Makes the channel for the reports of `jobs` threads.
pub fn channel(jobs: usize) -> (Reporter, Receiver<Report>) {
    let (reports, inbox) = sync_channel((jobs * BACKLOG).max(LEAST_BACKLOG));
    (Reporter { reports, held_up_ns: Cell::new(0) }, inbox)
}

/// The sender of the reports of one thread.
#[derive(Clone)]
pub struct Reporter {
    reports: SyncSender<Report>,
    held_up_ns: Cell<Nanos>,
}

impl Reporter {
    /// Sends a report to the main thread. Waits while too many reports are unread. If the main thread has stopped
    /// receiving, the report is dropped.
    pub fn report(&self, report: Report) {
        if let Err(TrySendError::Full(report)) = self.reports.try_send(report) {
            let began = monotonic();
            let _ = self.reports.send(report);
            self.held_up_ns.set(self.held_up_ns.get() + (monotonic() - began));
        }
    }

    /// Returns the time in nanoseconds for which the thread has waited because too many reports were unread.
    pub fn held_up_ns(&self) -> Nanos {
        self.held_up_ns.get()
    }
}

/// Reports a panic of the thread in which this value is dropped. Without the report the other threads would wait for
/// this thread for ever.
pub struct PanicReporter(pub Reporter);

impl Drop for PanicReporter {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.report(Report::Failed {
                message: "a client thread panicked, which is a bug in pgtrial-engine".to_owned(),
            });
        }
    }
}

/// A report that a thread sends to the main thread.
pub enum Report {
    /// All clients of the thread are ready.
    Connected,
    /// The thread has begun its load.
    Began {
        at: Nanos,
    },
    CannotConnect {
        client: usize,
        error: OpenError,
    },
    Tick {
        thread: usize,
        period: Period,
        statistics: Box<LoadStatistics>,
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

/// The totals that a thread reports when it ends.
#[derive(Debug, Default)]
pub struct ThreadTotals {
    pub ended: Nanos,
    pub aborted: usize,
    /// The time in nanoseconds that was spent on making connections since the measured part began.
    pub reconnect_ns: u64,
    pub scripts: Vec<ScriptAccount>,
    /// The CPU time of the thread in the measured part.
    pub cpu: CpuTime,
    /// The time for which the thread waited because the main thread did not read its reports.
    pub held_up_ns: Nanos,
    /// The first error in writing the transaction log.
    pub log_error: Option<io::Error>,
    /// The number of clients that had not finished.
    pub unfinished: usize,
    /// The totals of a replay; empty in other modes of the load.
    pub replay: ReplayTotals,
}

/// The state that all threads of a run share.
#[derive(Default)]
pub struct Shared {
    stop: AtomicBool,
    /// The number of threads that have noticed that they must end.
    pub ending: AtomicUsize,
    /// The time at which the signal SIGALRM ends the load, if the signal has come.
    alarm_at: OnceLock<Nanos>,
    /// The number of transactions that clients have taken from the number that all clients share, less the transactions
    /// that they gave back.
    pub events: AtomicU64,
}

impl Shared {
    /// Ends the run now.
    pub fn end_run(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Takes one transaction out of the limit `events` for all clients together. Returns false if the limit is reached.
    #[inline]
    pub fn takes_event(&self, events: u64) -> bool {
        let take = |taken| (taken < events).then_some(taken + 1);
        self.events.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Records that a thread has noticed that it must end.
    pub fn note_ending(&self) {
        self.ending.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends the load at `at`, because the signal SIGALRM has come. No transaction begins later.
    pub fn end_load(&self, at: Nanos) {
        let _ = self.alarm_at.set(at);
    }

    /// Returns the time at which the signal SIGALRM ends the load, if the signal has come.
    pub fn alarm_at(&self) -> Option<Nanos> {
        self.alarm_at.get().copied()
    }

    /// Returns true if the run must end now.
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
