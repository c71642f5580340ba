//! The reports of a run's threads as the main thread receives them, and what ends the waiting for them.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::report::{PATIENCE, Report, STUCK_AFTER, Shared, UNAWARE_AFTER};
use crate::runtime::Runtime;
use ground::clock::Nanos;

/// The time from an alarm to the end of the load, nanoseconds: by then all threads have noticed the alarm.
const ALARM_LEAD: Nanos = 100_000_000;

/// The reports of all threads, which an interrupt stops.
pub struct Inbox<'a, R> {
    pub runtime: &'a R,
    reports: Receiver<Report>,
    interrupt: &'a AtomicBool,
    alarm: Option<&'a AtomicBool>,
    shared: &'a Shared,
    /// The number of threads of the run.
    threads: usize,
    /// The time at which this inbox first noticed that the run must end.
    ended: Cell<Option<Nanos>>,
    /// The time for which this inbox has waited for reports in vain since then.
    waited: Cell<Duration>,
}

impl<'a, 'run, R: Runtime<'run>> Inbox<'a, R> {
    /// Makes the inbox of a run that `interrupt` ends, and whose load `alarm` ends.
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

    /// Waits for the next report; `None` if no thread is left, or if those that are left do not end.
    pub fn next(&self) -> Option<Report> {
        loop {
            if self.is_interrupted() {
                self.shared.end_run();
            }
            if self.alarm.is_some_and(|alarm| alarm.load(Ordering::Relaxed)) && self.shared.alarm_at().is_none() {
                self.shared.end_load(self.now() + ALARM_LEAD);
            }
            match self.runtime.receive(&self.reports, PATIENCE) {
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

    /// Returns the time at which an alarm ends the load, if one does.
    pub fn alarm_at(&self) -> Option<Nanos> {
        self.shared.alarm_at()
    }

    /// Returns the time since this inbox noticed that the run must end; 0 before that.
    pub fn since_end(&self) -> Nanos {
        self.ended.get().map_or(0, |ended| self.now().saturating_sub(ended))
    }

    /// Discards reports until all threads have ended. Returns false if some threads do not end in time.
    pub fn outlast(&self) -> bool {
        while self.next().is_some() {}
        !self.is_stuck()
    }

    /// Notes that no report came for [`PATIENCE`]. Only such waits count after the end of the run: the program may have
    /// been stopped for a while, or may have waited for a reader of its output, and the threads with it.
    fn note_wait(&self) {
        if self.shared.is_ended() {
            self.ended.set(Some(self.ended.get().unwrap_or_else(|| self.now())));
            self.waited.set(self.waited.get() + PATIENCE);
        }
    }

    /// Returns true if threads are still running although the run has ended and this inbox has waited for them long.
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
        // as if the program had been stopped
        runtime.pause(Duration::from_secs(60));
        assert!(!inbox.is_stuck());
        assert!(inbox.next().is_none() && inbox.is_stuck());
        assert_eq!(runtime.now(), 62_000_000_000);
    }
}
