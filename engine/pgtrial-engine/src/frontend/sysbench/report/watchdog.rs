//! Clients that take too long to be ready end the run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long the run has to end by itself: a thread that does not even look up is ended with the process. Long enough for
/// a busy machine to let all others come to their end, and their last events be written.
const PATIENCE: Duration = Duration::from_secs(10);

/// A watch over the time until all clients are ready; called off when they are.
pub struct Watchdog {
    /// Dropping it ends the watch.
    _leash: Sender<()>,
    watch: Arc<Mutex<Watch>>,
}

/// How far a watch has come. Whoever holds the lock decides: the clients are ready, or the time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watch {
    Kept,
    CalledOff,
    Barked,
}

impl Watchdog {
    /// After `timeout` seconds says so through `tell` and sets `stop`; a while after that ends the process.
    pub fn set(timeout: Option<u64>, stop: &Arc<AtomicBool>, tell: fn(&str)) -> Option<Self> {
        let timeout = timeout?;
        let (leash, signal) = channel::<()>();
        let watch = Arc::new(Mutex::new(Watch::Kept));
        let (watched, stop) = (Arc::clone(&watch), Arc::clone(stop));
        let bark = move || {
            let is_over = |time| signal.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
            if !is_over(Duration::from_secs(timeout)) {
                return;
            }
            let mut watch = lock(&watched);
            if *watch == Watch::CalledOff {
                return;
            }
            *watch = Watch::Barked;
            tell(&format!("FATAL: Worker threads failed to initialize within {timeout} seconds!\n"));
            stop.store(true, Ordering::Relaxed);
            drop(watch);
            if is_over(PATIENCE) {
                std::process::exit(super::OVERDUE.into());
            }
        };
        // Without a thread for it there is no watch, and nothing else is wrong.
        thread::Builder::new().name("pgtrial-watch".to_owned()).spawn(bark).ok()?;
        Some(Self { _leash: leash, watch })
    }

    /// The clients are ready: there will be no bark. False if there was one before.
    pub fn call_off(&self) -> bool {
        let mut watch = lock(&self.watch);
        if *watch == Watch::Kept {
            *watch = Watch::CalledOff;
        }
        *watch == Watch::CalledOff
    }

    /// Whether the time was over.
    pub fn has_barked(&self) -> bool {
        *lock(&self.watch) == Watch::Barked
    }
}

fn lock(watch: &Mutex<Watch>) -> MutexGuard<'_, Watch> {
    watch.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_ends_one_way_or_the_other() {
        let stop = Arc::new(AtomicBool::new(false));
        let in_time = Watchdog::set(Some(3600), &stop, |_| {}).unwrap();
        assert!(in_time.call_off() && !in_time.has_barked());
        let late = Watchdog::set(Some(0), &stop, |_| {}).unwrap();
        while !stop.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        assert!(!late.call_off() && late.has_barked());
    }
}
