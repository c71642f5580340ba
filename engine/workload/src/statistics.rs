//! The statistics of a run in sysbench's terms, and the hooks by which a test changes the reports of its run.

use crate::program::Fatal;
use crate::queries::Queries;

/// A run, or a part of it, in sysbench's terms: what its reports are made of. Times are in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Statistics {
    pub threads_running: usize,
    /// The length of the run, or of the part of it that the statistics are about, seconds.
    pub time_interval: f64,
    /// The time since the run began, seconds.
    pub time_total: f64,
    /// The percentile that was asked for.
    pub latency_pct: f64,
    pub latency_min: f64,
    pub latency_max: f64,
    pub latency_avg: f64,
    pub latency_sum: f64,
    pub events: u64,
    pub queries: Queries,
    /// The number of events that wait for a client, and of clients that are in an event. Used only with a rate.
    pub queue_length: u64,
    pub concurrency: u64,
}

impl Statistics {
    /// Returns the rate of an amount of the part; 0 if the part has no length, as in a run that is interrupted before
    /// its load begins.
    pub fn per_second(&self, amount: f64) -> f64 {
        if self.time_interval > 0.0 { amount / self.time_interval } else { 0.0 }
    }
}

/// The lines that a test prints about itself before its threads start, as lines of sysbench's log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Introduction {
    /// Lines that are printed first, and only if sysbench's verbosity is higher than its default.
    pub details: Vec<String>,
    pub parameters: Vec<String>,
}

/// The hooks by which a test changes the reports of its run.
pub trait Hooks {
    /// Returns the lines that are printed between the options of the run and the start of its threads.
    fn introduction(&self) -> Introduction {
        Introduction::default()
    }

    /// Returns the line of an interval that takes the place of sysbench's own, if the test has one.
    fn interval_line(&self, _statistics: &Statistics) -> Option<String> {
        None
    }

    /// Returns the lines that are printed before sysbench's own report on the whole run or at a checkpoint.
    fn results(&self, _statistics: &Statistics) -> Vec<String> {
        Vec::new()
    }

    /// Prints the test's own report on an interval; returns false if the test has none, so that sysbench's own is
    /// printed.
    fn intermediate(&self, _statistics: &Statistics) -> Result<bool, Fatal> {
        Ok(false)
    }

    /// Prints the test's own report at a checkpoint; returns false if the test has none.
    fn checkpoint(&self, statistics: &Statistics) -> Result<bool, Fatal> {
        self.cumulative(statistics)
    }

    /// Prints the test's own report on the whole run, or on the time since the last checkpoint; returns false if the
    /// test has none.
    fn cumulative(&self, _statistics: &Statistics) -> Result<bool, Fatal> {
        Ok(false)
    }

    /// Returns true if the test has used the database, so that there are queries to report on.
    fn uses_sql(&self) -> bool {
        true
    }

    /// Called before `clients` clients begin. `_intervals` and `_checkpoints` say which kinds of reports are made while
    /// they run.
    fn begin_reports(&self, _clients: usize, _intervals: bool, _checkpoints: bool) -> Result<(), Fatal> {
        Ok(())
    }

    /// Called when there will be no further interval or checkpoint.
    fn end_reports(&self) {}

    /// Ends the test, when everything has been written.
    fn done(&self) -> Result<(), Fatal> {
        Ok(())
    }
}
