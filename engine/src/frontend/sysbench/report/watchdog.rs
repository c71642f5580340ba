//! Clients that take too long to be ready end the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// How long the run has to end by itself: a thread that does not even look up is ended with the process.
const PATIENCE: Duration = Duration::from_secs(1);

/// A watch over the time until all clients are ready; dropped when they are.
pub struct Watchdog {
    /// Dropping it calls the watch off.
    _leash: Sender<()>,
    has_barked: Arc<AtomicBool>,
}

impl Watchdog {
    /// After `timeout` seconds says so through `tell` and sets `stop`; a while after that ends the process.
    pub fn set(timeout: Option<u64>, stop: &Arc<AtomicBool>, tell: fn(&str)) -> Option<Self> {
        let timeout = timeout?;
        let (leash, signal) = channel::<()>();
        let has_barked = Arc::new(AtomicBool::new(false));
        let (barked, stop) = (Arc::clone(&has_barked), Arc::clone(stop));
        let watch = move || {
            let is_over = |time| signal.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
            if is_over(Duration::from_secs(timeout)) {
                tell(&format!("FATAL: Worker threads failed to initialize within {timeout} seconds!\n"));
                barked.store(true, Ordering::Relaxed);
                stop.store(true, Ordering::Relaxed);
                if is_over(PATIENCE) {
                    std::process::exit(super::OVERDUE.into());
                }
            }
        };
        // Without a thread for it there is no watch, and nothing else is wrong.
        thread::Builder::new().name("pgtrial-watch".to_owned()).spawn(watch).ok()?;
        Some(Self { _leash: leash, has_barked })
    }

    /// Whether the time was over.
    pub fn has_barked(&self) -> bool {
        self.has_barked.load(Ordering::Relaxed)
    }
}
