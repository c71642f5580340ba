//! The option `--forced-shutdown`: a run whose clients do not end by themselves is ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// Ends the run when its time and the grace are over, also where no client has anything to report.
pub struct ForcedEnd {
    /// The sender whose drop ends the thread that waits.
    _dropped: Sender<()>,
}

impl ForcedEnd {
    /// Starts a thread that sets `forced` and `stop` after the time `after`, unless the run is being stopped already.
    pub fn start(after: Duration, stop: &Arc<AtomicBool>, forced: &Arc<AtomicBool>) -> Option<Self> {
        let (dropped, signal) = channel::<()>();
        let (stop, forced) = (Arc::clone(stop), Arc::clone(forced));
        let wait = move || {
            if signal.recv_timeout(after) == Err(RecvTimeoutError::Timeout) && !stop.load(Ordering::Relaxed) {
                forced.store(true, Ordering::Relaxed);
                stop.store(true, Ordering::Relaxed);
            }
        };
        // If the thread cannot be made, the clients' seconds end the run.
        thread::Builder::new().name("pgtrial-end".to_owned()).spawn(wait).ok()?;
        Some(Self { _dropped: dropped })
    }
}
