//! The mark by which a thread knows whether the cancel requests that it has sent are still under way.

use std::sync::{Arc, Weak};

/// The mark of cancel requests that are under way. Whoever sends the requests holds the other end of the mark, and drops
/// it when the server has read the requests or cannot be reached.
pub struct UnderWay(Weak<()>);

impl UnderWay {
    /// Makes a mark, and the other end for the sender of the requests.
    pub fn new() -> (Self, Arc<()>) {
        let held = Arc::new(());
        (Self(Arc::downgrade(&held)), held)
    }

    /// Returns true if the requests are not under way any more.
    pub fn is_over(&self) -> bool {
        self.0.strong_count() == 0
    }
}
