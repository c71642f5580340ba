//! The option `--forced-shutdown`: stops a run whose clients go on after the end of its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// A thread that stops the run when its time and the grace period of `--forced-shutdown` are over. It works even if no
/// client reports anything any more. Dropping this value ends the thread.
pub struct ForcedEnd {
    /// The sending side of a channel. When it is dropped, the waiting thread ends.
    _dropped: Sender<()>,
}

impl ForcedEnd {
    /// Starts a thread that sets `forced` and `stop` after the time `after`, unless the run is being stopped already.
    /// Returns `None` if no thread could be started.
    pub fn start(after: Duration, stop: &Arc<AtomicBool>, forced: &Arc<AtomicBool>) -> Option<Self> {
        let (dropped, signal) = channel::<()>();
        let (stop, forced) = (Arc::clone(stop), Arc::clone(forced));
        let wait = move || {
            if signal.recv_timeout(after) == Err(RecvTimeoutError::Timeout) && !stop.load(Ordering::Relaxed) {
                forced.store(true, Ordering::Relaxed);
                stop.store(true, Ordering::Relaxed);
            }
        };
        // If no thread can be started, the observer of the run still stops it when a second is over in all threads.
        thread::Builder::new().name("pgtrial-end".to_owned()).spawn(wait).ok()?;
        Some(Self { _dropped: dropped })
    }
}
