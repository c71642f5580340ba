//! The option `--thread-init-timeout`: stops the run if its clients are not ready in time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use super::status::OVERDUE;

/// The time that a stopped run may take to end by itself. After this time the process exits. The time is long enough to
/// end all threads and to write the last events even on a busy machine.
const EXIT_AFTER: Duration = Duration::from_secs(10);

/// The time limit for all clients to be ready. Dropping this value ends its thread.
pub struct InitTimeout {
    /// The sending side of a channel. When it is dropped, the waiting thread ends.
    _dropped: Sender<()>,
    /// True if the clients were ready in time, and false if the time was over before. It has no value until one of the
    /// two happens.
    in_time: Arc<OnceLock<bool>>,
}

impl InitTimeout {
    /// Starts a thread that waits `timeout` seconds. If the clients are not ready by then, it calls `report` with an
    /// error and sets `stop`. If the run does not end soon after that, it exits the process. Returns `None` without a
    /// time limit, or if no thread could be started.
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
        // If no thread can be started, the run has no time limit for its clients to be ready.
        thread::Builder::new().name("pgtrial-init".to_owned()).spawn(wait).ok()?;
        Some(Self { _dropped: dropped, in_time })
    }

    /// Records that the clients are ready, so that the time limit has no effect any more. Returns true if they were
    /// ready in time, and false if the time was over before.
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
