//! The statistics of a run in sysbench's terms, and the hooks with which a test changes the reports of its run.

use crate::program::Fatal;
use crate::queries::Queries;

/// The statistics of a run, or of a part of it, from which sysbench's reports are made. Times are in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Statistics {
    pub threads_running: usize,
    /// The length in seconds of the run, or of the part of it that the statistics describe.
    pub time_interval: f64,
    /// The time in seconds since the run began.
    pub time_total: f64,
    /// The percentile of the latencies that the user has asked for.
    pub latency_pct: f64,
    pub latency_min: f64,
    pub latency_max: f64,
    pub latency_avg: f64,
    pub latency_sum: f64,
    pub events: u64,
    pub queries: Queries,
    /// The number of events that wait for a client. Used only with a rate limit.
    pub queue_length: u64,
    /// The number of clients that run an event. Used only with a rate limit.
    pub concurrency: u64,
}

impl Statistics {
    /// Divides an amount by the length in seconds of the run, or of the part of it that the statistics describe.
    /// Returns 0 if that length is 0, as in a run that is interrupted before its load begins.
    pub fn per_second(&self, amount: f64) -> f64 {
        if self.time_interval > 0.0 { amount / self.time_interval } else { 0.0 }
    }
}

/// The lines that a test prints about itself before its threads start, as lines of sysbench's log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Introduction {
    /// The lines that are printed first, but only if sysbench's verbosity is higher than its default.
    pub details: Vec<String>,
    pub parameters: Vec<String>,
}

/// The functions with which a test changes the reports of its run.
pub trait Hooks {
    /// Returns the lines that are printed after the options of the run and before its threads start.
    fn introduction(&self) -> Introduction {
        Introduction::default()
    }

    /// Returns the line that is printed for a reporting interval instead of sysbench's own line; `None` to print
    /// sysbench's line.
    fn interval_line(&self, _statistics: &Statistics) -> Option<String> {
        None
    }

    /// Returns the lines that are printed before sysbench's report on the whole run or at a checkpoint.
    fn results(&self, _statistics: &Statistics) -> Vec<String> {
        Vec::new()
    }

    /// Prints the test's own report on an interval and returns true. Returns false if the test has none; sysbench's
    /// report is then printed.
    fn intermediate(&self, _statistics: &Statistics) -> Result<bool, Fatal> {
        Ok(false)
    }

    /// Prints the test's own report at a checkpoint and returns true. Returns false if the test has none.
    fn checkpoint(&self, statistics: &Statistics) -> Result<bool, Fatal> {
        self.cumulative(statistics)
    }

    /// Prints the test's own report on the whole run, or on the time since the last checkpoint, and returns true.
    /// Returns false if the test has none.
    fn cumulative(&self, _statistics: &Statistics) -> Result<bool, Fatal> {
        Ok(false)
    }

    /// True if the test has used the database, so that reports contain the numbers of queries.
    fn uses_sql(&self) -> bool {
        true
    }

    /// Called before the clients begin. `_clients` is the number of clients. `_intervals` is true if there will be
    /// reports on intervals while the clients run, and `_checkpoints` if there will be reports at checkpoints.
    fn begin_reports(&self, _clients: usize, _intervals: bool, _checkpoints: bool) -> Result<(), Fatal> {
        Ok(())
    }

    /// Called after the last interval and checkpoint.
    fn end_reports(&self) {}

    /// Called after all reports were printed, to end the test. A Lua script then runs its function `done`.
    fn done(&self) -> Result<(), Fatal> {
        Ok(())
    }
}
