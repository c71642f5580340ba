//! The option `--thread-init-timeout`: clients that take too long to be ready end the run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use super::status::OVERDUE;

/// The time that the run has to end by itself before the process is ended. It is long enough for a busy machine to end
/// all threads and to write the last events.
const EXIT_AFTER: Duration = Duration::from_secs(10);

/// The limit of the time until all clients are ready.
pub struct InitTimeout {
    /// The sender whose drop ends the thread that waits.
    _dropped: Sender<()>,
    /// True if the clients were ready in time. The first of two events decides: the clients are ready, or the time is
    /// over.
    in_time: Arc<OnceLock<bool>>,
}

impl InitTimeout {
    /// Starts a thread that, unless the clients are ready within `timeout` seconds, passes an error to `report` and
    /// sets `stop`, and ends the process if the run does not end soon after that.
    pub fn start(timeout: Option<u64>, stop: &Arc<AtomicBool>, report: fn(&str)) -> Option<Self> {
        let timeout = timeout?;
        let (dropped, signal) = channel::<()>();
        let in_time = Arc::new(OnceLock::new());
        let (shared, stop) = (Arc::clone(&in_time), Arc::clone(stop));
        let wait = move || {
            let is_over = |time| signal.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
            if !is_over(Duration::from_secs(timeout)) {
                return;
            }
            let in_time = shared.get_or_init(|| {
                report(&format!("FATAL: Worker threads failed to initialize within {timeout} seconds!\n"));
                stop.store(true, Ordering::Relaxed);
                false
            });
            if !in_time && is_over(EXIT_AFTER) {
                std::process::exit(OVERDUE.into());
            }
        };
        // If the thread cannot be made, the time is not limited.
        thread::Builder::new().name("pgtrial-init".to_owned()).spawn(wait).ok()?;
        Some(Self { _dropped: dropped, in_time })
    }

    /// Records that the clients are ready, so that the time limit has no effect any more. Returns false if the time was
    /// over before.
    pub fn clients_are_ready(&self) -> bool {
        *self.in_time.get_or_init(|| true)
    }

    /// Returns true if the time was over before the clients were ready.
    pub fn has_expired(&self) -> bool {
        self.in_time.get() == Some(&false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_ends_with_ready_clients_or_expires() {
        let stop = Arc::new(AtomicBool::new(false));
        let in_time = InitTimeout::start(Some(3600), &stop, |_| {}).unwrap();
        assert!(in_time.clients_are_ready() && !in_time.has_expired());
        let late = InitTimeout::start(Some(0), &stop, |_| {}).unwrap();
        while !stop.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        assert!(!late.clients_are_ready() && late.has_expired());
    }
}
