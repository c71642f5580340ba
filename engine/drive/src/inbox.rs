//! The reports of a run's threads as the main thread receives them, and what ends the waiting for them.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};

use crate::report::{PATIENCE, Report, STUCK_AFTER, Shared, UNAWARE_AFTER};
use crate::runtime::Runtime;
use ground::clock::{Nanos, nanos};

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
        Self { runtime, reports, interrupt, alarm, shared, threads, ended: Cell::new(None) }
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
                Err(RecvTimeoutError::Timeout) if self.is_stuck() => return None,
                Err(RecvTimeoutError::Timeout) => {}
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

    /// Returns true if threads are still running long after the end of the run.
    pub fn is_stuck(&self) -> bool {
        if !self.shared.is_ended() {
            return false;
        }
        let now = self.now();
        let ended = self.ended.get().unwrap_or(now);
        self.ended.set(Some(ended));
        let is_unaware = self.shared.ending.load(Ordering::Relaxed) < self.threads;
        now - ended >= nanos(if is_unaware { UNAWARE_AFTER } else { STUCK_AFTER })
    }
}
