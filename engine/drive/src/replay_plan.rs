//! The plan of a replay, and the times at which it does what was recorded.

use std::sync::Arc;
use std::time::Duration;

use crate::plan::ModePlan;
use ground::clock::Nanos;
use workload::recorded::Micros;

/// Recorded sessions; a client runs one after the other, and each of their statements counts as a transaction.
#[derive(Debug, Clone)]
pub struct ReplayPlan {
    pub pace: ReplayPace,
    /// The time after which no transaction begins. Transactions under way are finished without pauses. `None`: the load
    /// ends with its last session.
    pub time: Option<Duration>,
    /// The names that messages use for the statements of each account.
    pub accounts: Arc<[String]>,
}

/// The times at which recorded statements start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReplayPace {
    /// Statements start at their recorded times divided by `speed`, whether or not the server keeps up.
    Recorded { speed: f64 },
    /// Each statement starts when the one before it in its session has ended.
    BackToBack,
}

impl ModePlan for ReplayPlan {
    fn time(&self) -> Option<Duration> {
        self.time
    }

    /// Returns true if statements start at their recorded times, and false if they run back to back.
    fn has_schedule(&self) -> bool {
        matches!(self.pace, ReplayPace::Recorded { .. })
    }

    fn counts_queries(&self) -> bool {
        true
    }
}

impl ReplayPace {
    /// Converts a time of the recording to a time of a replay that began at `began`; `None` if statements do not wait for
    /// their recorded times.
    pub fn moment(self, began: Nanos, at: Micros) -> Option<Nanos> {
        matches!(self, Self::Recorded { .. }).then(|| began.saturating_add(self.length(at)))
    }

    /// Converts a recorded length of time. Back to back, it stays as long as it was.
    pub fn length(self, recorded: Micros) -> Nanos {
        let speed = match self {
            Self::Recorded { speed } => speed,
            Self::BackToBack => 1.0,
        };
        (recorded as f64 * 1000.0 / speed) as Nanos
    }
}
