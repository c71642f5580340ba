//! The ends of transactions in a simulated run, as the clients and servers of the run saw them.

use super::truth::Place;
use ground::clock::Nanos;

/// The bounds of a time or of a duration. The event loop reads the clock for several clients at once, so that a client
/// cannot tell the time at which its transaction began to the nanosecond, but only the round of the event loop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bounds {
    pub least: Nanos,
    pub most: Nanos,
}

impl Bounds {
    pub fn exactly(time: Nanos) -> Self {
        Self { least: time, most: time }
    }

    /// Returns the bounds of the time that passed from a time with these bounds to `ended`.
    pub fn until(self, ended: Nanos) -> Self {
        Self { least: ended.saturating_sub(self.most), most: ended.saturating_sub(self.least) }
    }

    pub fn contains(self, time: Nanos) -> bool {
        (self.least..=self.most).contains(&time)
    }
}

/// A transaction that was committed.
#[derive(Debug, Clone)]
pub struct Commit {
    pub place: Place,
    /// The index of the transaction's script.
    pub script: usize,
    /// The time for which the transaction was planned. It is a time of the run's clock without the slices of other
    /// engines or, in replays, a time of the recording in microseconds. `None` if the load has no plan of starts.
    pub planned: Option<u64>,
    pub began: Bounds,
    /// The first time that the thread read from its clock after the transaction had ended.
    pub ended: Nanos,
    /// The number of tries beyond the first one.
    pub retries: u64,
}

/// A transaction that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    pub place: Place,
    pub began: Bounds,
    /// The first time that the thread read from its clock after the client had read its last answer.
    pub at: Nanos,
    /// The SQLSTATEs of the errors that the client has read in the last try.
    pub sqlstates: Vec<String>,
    /// The number of tries beyond the first one.
    pub retries: u64,
}
