//! Receives the reports of a run's threads in the main thread, and decides when the main thread stops waiting for
//! reports.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::report::{INTERRUPT_CHECK, Report, STUCK_AFTER, Shared, UNAWARE_AFTER};
use crate::runtime::Runtime;
use ground::clock::Nanos;

/// The time from the signal SIGALRM to the end of the load, in nanoseconds. It is long enough for all threads to notice
/// the signal before the load ends.
const ALARM_LEAD: Nanos = 100_000_000;

/// The main thread's receiver for the reports of all threads. If the user interrupts the run, the threads end, and the
/// receiver waits only a limited time for their last reports.
pub struct Inbox<'a, R> {
    pub runtime: &'a R,
    reports: Receiver<Report>,
    interrupt: &'a AtomicBool,
    alarm: Option<&'a AtomicBool>,
    shared: &'a Shared,
    /// The number of threads of the run.
    threads: usize,
    /// The time at which this receiver first noticed that the run must end.
    ended: Cell<Option<Nanos>>,
    /// The time for which this receiver has waited without receiving a report, counted from the moment at which the run
    /// had to end.
    waited: Cell<Duration>,
}

impl<'a, 'run, R: Runtime<'run>> Inbox<'a, R> {
    /// Makes the receiver for the reports of `threads` threads. A signal handler sets the flag `interrupt` to end the
    /// run, and the flag `alarm` to end the load.
    pub fn new(
        runtime: &'a R,
        reports: Receiver<Report>,
        interrupt: &'a AtomicBool,
        alarm: Option<&'a AtomicBool>,
        shared: &'a Shared,
        threads: usize,
    ) -> Self {
        Self { runtime, reports, interrupt, alarm, shared, threads, ended: Cell::new(None), waited: Cell::default() }
    }

    /// Returns the time on the run's clock.
    pub fn now(&self) -> Nanos {
        self.runtime.now()
    }

    /// Waits for the next report. Returns `None` if all threads have ended, or if the remaining threads do not end
    /// although they must.
    pub fn next(&self) -> Option<Report> {
        loop {
            if self.is_interrupted() {
                self.shared.end_run();
            }
            if self.alarm.is_some_and(|alarm| alarm.load(Ordering::Relaxed)) && self.shared.alarm_at().is_none() {
                self.shared.end_load(self.now() + ALARM_LEAD);
            }
            match self.runtime.receive(&self.reports, INTERRUPT_CHECK) {
                Ok(report) => return Some(report),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => self.note_wait(),
            }
            if self.is_stuck() {
                return None;
            }
        }
    }

    /// Returns true if the run must end early.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Returns the time at which the signal SIGALRM ends the load, if the signal has come.
    pub fn alarm_at(&self) -> Option<Nanos> {
        self.shared.alarm_at()
    }

    /// Returns the time since this receiver noticed that the run must end; 0 before that.
    pub fn since_end(&self) -> Nanos {
        self.ended.get().map_or(0, |ended| self.now().saturating_sub(ended))
    }

    /// Discards reports until all threads have ended. Returns false if some threads do not end in time.
    pub fn outlast(&self) -> bool {
        while self.next().is_some() {}
        !self.is_stuck()
    }

    /// Records that the main thread has waited for [`INTERRUPT_CHECK`] without receiving a report. Once the run has to end,
    /// these waits are added up to decide whether a thread hangs. The time on the clock would be misleading: the whole
    /// program may have been stopped for a while, or its threads may have waited because nobody read its output.
    fn note_wait(&self) {
        if self.shared.is_ended() {
            self.ended.set(Some(self.ended.get().unwrap_or_else(|| self.now())));
            self.waited.set(self.waited.get() + INTERRUPT_CHECK);
        }
    }

    /// Returns true if threads are still running although the run has ended and this receiver has waited for them too
    /// long.
    pub fn is_stuck(&self) -> bool {
        let is_unaware = self.shared.ending.load(Ordering::Relaxed) < self.threads;
        self.waited.get() >= if is_unaware { UNAWARE_AFTER } else { STUCK_AFTER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::channel;
    use crate::runtime::tests::Alone;

    #[test]
    fn only_waits_for_reports_count_until_threads_are_given_up() {
        let (runtime, shared, interrupt) = (Alone::default(), Shared::default(), AtomicBool::new(true));
        let (_reporter, reports) = channel(1);
        let inbox = Inbox::new(&runtime, reports, &interrupt, None, &shared, 1);
        shared.end_run();
        assert!(!inbox.is_stuck());
        // Time passes without a wait for reports, as if the whole program had been stopped.
        runtime.pause(Duration::from_secs(60));
        assert!(!inbox.is_stuck());
        assert!(inbox.next().is_none() && inbox.is_stuck());
        assert_eq!(runtime.now(), 62_000_000_000);
    }
}
