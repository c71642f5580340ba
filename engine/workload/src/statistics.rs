//! A run in sysbench's terms, and what a test may do about the reports of its run.

use crate::program::Fatal;
use crate::queries::Queries;

/// A run, or a part of it, in sysbench's terms: what its reports are made of. Times are in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Statistics {
    pub threads_running: usize,
    /// Length of the part.
    pub time_interval: f64,
    /// Since the run began.
    pub time_total: f64,
    /// The percentile that was asked for.
    pub latency_pct: f64,
    pub latency_min: f64,
    pub latency_max: f64,
    pub latency_avg: f64,
    pub latency_sum: f64,
    pub events: u64,
    pub queries: Queries,
    /// With a rate: events that wait for a client, and clients that are at one.
    pub queue_length: u64,
    pub concurrency: u64,
}

impl Statistics {
    /// The rate of an amount of the part; 0 if the part has no length, as in a run that is interrupted before its load
    /// begins.
    pub fn per_second(&self, amount: f64) -> f64 {
        if self.time_interval > 0.0 { amount / self.time_interval } else { 0.0 }
    }
}

/// What a test prints about itself before its threads start: lines of sysbench's log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Introduction {
    /// Printed first, and only at a verbosity above the usual one.
    pub details: Vec<String>,
    pub parameters: Vec<String>,
}

/// What a test may do about the reports of its run.
pub trait Hooks {
    /// What is printed between the options of the run and the start of its threads.
    fn introduction(&self) -> Introduction {
        Introduction::default()
    }

    /// The line of an interval that takes the place of sysbench's own, if the test has one.
    fn interval_line(&self, _statistics: &Statistics) -> Option<String> {
        None
    }

    /// Lines before sysbench's own report on the whole, or up to a checkpoint.
    fn results(&self, _statistics: &Statistics) -> Vec<String> {
        Vec::new()
    }

    /// Reports on an interval in the test's own way; false if it has none.
    fn intermediate(&self, _statistics: &Statistics) -> Result<bool, Fatal> {
        Ok(false)
    }

    /// The same for the report up to a checkpoint.
    fn checkpoint(&self, statistics: &Statistics) -> Result<bool, Fatal> {
        self.cumulative(statistics)
    }

    /// The same for the report on the whole, or since the last checkpoint.
    fn cumulative(&self, _statistics: &Statistics) -> Result<bool, Fatal> {
        Ok(false)
    }

    /// Whether the test has used the database, so that there are queries to report on.
    fn uses_sql(&self) -> bool {
        true
    }

    /// `clients` clients are about to begin; there will be reports of these kinds while they run.
    fn begin_reports(&self, _clients: usize, _intervals: bool, _checkpoints: bool) -> Result<(), Fatal> {
        Ok(())
    }

    /// There will be no further interval or checkpoint.
    fn end_reports(&self) {}

    /// Ends the test, when everything has been written.
    fn done(&self) -> Result<(), Fatal> {
        Ok(())
    }
}
