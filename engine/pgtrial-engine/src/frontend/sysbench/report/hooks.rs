//! What a test may do about the reports of its run, and what the reports are about.

use std::io::Write;

use crate::frontend::sysbench::log::Log;
use drive::plan::Plan;
use ground::clock::Clock;
use workload::Fatal;
use workload::settings::Settings;
use workload::statistics::Statistics;

/// Exit status of a run that failed, or whose events could not be written.
pub const FAILED: u8 = 1;

/// Exit status of a run that took too long to begin or to end.
pub const OVERDUE: u8 = 2;

/// What a test may do about the reports.
pub trait Hooks {
    /// Reports on an interval in the test's own way; false if it has none.
    fn intermediate(&self, _statistics: &Statistics) -> Result<bool, Fatal> {
        Ok(false)
    }

    /// The same for the report on the whole, or up to a checkpoint.
    fn cumulative(&self, _statistics: &Statistics) -> Result<bool, Fatal> {
        Ok(false)
    }

    /// Whether the test has used the database, so that there are queries to report on.
    fn uses_sql(&self) -> bool {
        true
    }

    /// There will be no further interval.
    fn end_intervals(&self) {}

    /// Ends the test, when everything has been written.
    fn done(&self) -> Result<(), Fatal> {
        Ok(())
    }
}

/// A load, with what its reports need.
pub struct Run<'a, W: Write = std::io::Stdout> {
    pub settings: &'a Settings,
    pub plan: &'a Plan,
    pub clock: Clock,
    pub test: &'a dyn Hooks,
    pub log: &'a mut Log<W>,
}
