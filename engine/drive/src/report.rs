//! The reports of a run's threads, and what all threads of a run share.

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

/// The longest time until an interrupt is noticed.
pub const PATIENCE: Duration = Duration::from_millis(50);

/// The time after which a thread that has not noticed the end of the run is given up: it computes without end, or waits
/// for a shell command.
pub const UNAWARE_AFTER: Duration = Duration::from_secs(2);

/// The time after the end of the run at which a thread that has not ended is given up, too. It is longer than threads
/// wait for statements that they have cancelled.
pub const STUCK_AFTER: Duration = Duration::from_secs(8);

/// The number of unread reports at which threads begin to wait for the main thread: `BACKLOG` for each thread, and at
/// least `LEAST_BACKLOG` for all together. A thread sends a report with a histogram each second, and the debugging
/// lines that options enable. The main thread falls behind if nobody reads its output; the time that threads then wait
/// is counted in [`ThreadTotals::held_up_ns`].
const BACKLOG: usize = 16;
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
    /// Reports to the run; waits while too many reports are unread. A run that was given up receives nothing, which is
    /// no error here.
    pub fn report(&self, report: Report) {
        if let Err(TrySendError::Full(report)) = self.reports.try_send(report) {
            let began = monotonic();
            let _ = self.reports.send(report);
            self.held_up_ns.set(self.held_up_ns.get() + (monotonic() - began));
        }
    }

    /// Returns how long the thread has waited because too many reports were unread.
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
    /// The time spent on making connections while the load ran.
    pub reconnect_ns: u64,
    pub scripts: Vec<ScriptAccount>,
    /// The CPU time of the thread in the measured part.
    pub cpu: CpuTime,
    /// The time that the thread waited because its reports were not read.
    pub held_up_ns: Nanos,
    /// The first error that the transaction log met.
    pub log_error: Option<io::Error>,
    /// The number of clients that had not finished.
    pub unfinished: usize,
    /// The totals that only the mode of the load has.
    pub own: Own,
}

/// The state that all threads of a run share.
#[derive(Default)]
pub struct Shared {
    stop: AtomicBool,
    /// The number of threads that have noticed that they must end.
    pub ending: AtomicUsize,
    /// The time at which an alarm ends the load, if one does.
    alarm_at: OnceLock<Nanos>,
    /// The number of transactions that clients have taken out of the limit of all clients together, and not given back.
    pub events: AtomicU64,
}

impl Shared {
    /// Ends the run now.
    pub fn end_run(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Takes one transaction out of the limit `events` of all clients together. Returns false if all are taken.
    #[inline]
    pub fn takes_event(&self, events: u64) -> bool {
        let take = |taken| (taken < events).then_some(taken + 1);
        self.events.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Notes that a thread has noticed that it must end.
    pub fn note_ending(&self) {
        self.ending.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends the time of the load at `at`: no transaction begins later.
    pub fn end_load(&self, at: Nanos) {
        let _ = self.alarm_at.set(at);
    }

    /// Returns the time at which an alarm ends the load, if one does.
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
