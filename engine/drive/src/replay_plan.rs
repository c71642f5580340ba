//! The plan of a replay: which limits it has, and how it converts recorded times to times of the replay.

use std::sync::Arc;
use std::time::Duration;

use crate::plan::ModePlan;
use ground::clock::Nanos;
use workload::recorded::Micros;

/// The plan of a replay of recorded sessions. A client runs one session after the other, and each statement counts as a
/// transaction.
#[derive(Debug, Clone)]
pub struct ReplayPlan {
    pub timing: ReplayTiming,
    /// The time after which no transaction begins. Transactions that are under way then are finished without the
    /// recorded pauses. `None`: the load ends with its last session.
    pub time: Option<Duration>,
    /// The names that messages show for the statement templates, in the order in which the results list the templates.
    pub accounts: Arc<[String]>,
}

/// The rule by which recorded statements start in the replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReplayTiming {
    /// Statements start at their recorded times divided by `speed`, whether or not the server keeps up.
    Recorded { speed: f64 },
    /// Each statement starts when the statement before it in its session has ended.
    BackToBack,
}

impl ModePlan for ReplayPlan {
    fn time(&self) -> Option<Duration> {
        self.time
    }

    /// Returns true if statements start at their recorded times, and false if they run back to back.
    fn has_schedule(&self) -> bool {
        matches!(self.timing, ReplayTiming::Recorded { .. })
    }

    fn counts_queries(&self) -> bool {
        true
    }
}

impl ReplayTiming {
    /// Converts a time of the recording to a time of a replay that began at `began`. Returns `None` if statements run
    /// back to back.
    pub fn moment(self, began: Nanos, at: Micros) -> Option<Nanos> {
        matches!(self, Self::Recorded { .. }).then(|| began.saturating_add(self.length(at)))
    }

    /// Converts a recorded duration to a duration in the replay. If statements run back to back, the duration stays the
    /// same.
    pub fn length(self, recorded: Micros) -> Nanos {
        let speed = match self {
            Self::Recorded { speed } => speed,
            Self::BackToBack => 1.0,
        };
        (recorded as f64 * 1000.0 / speed) as Nanos
    }
}
