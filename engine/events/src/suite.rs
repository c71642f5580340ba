//! Suites of queries: the plan, each query that has ended, and pauses before queries.

use serde::{Deserialize, Serialize};

use ground::clock::Phase;

/// The way in which a suite runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SuitePlanRecord {
    /// The number of measured runs of each query.
    pub runs: u32,
    /// The time after which a query is cancelled, seconds.
    pub limit_s: f64,
    /// True if there is a pause before each query.
    pub pauses: bool,
}

/// A query has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueryRecord {
    pub query: String,
    pub phase: Phase,
    /// The number of the run, counted from 1 in each phase.
    pub run: u32,
    /// The time from sending the query to the end of its answer. If the query was cancelled, this is the time limit;
    /// after an error it is `None`.
    pub time_us: Option<f64>,
    pub over_limit: bool,
    /// The number of rows that the last statement returned or changed.
    pub rows: u64,
    /// The hash of the values of all returned rows, in any order; `None` if no rows are returned.
    pub rows_hash: Option<String>,
    pub sqlstate: Option<String>,
    /// The message of the error, if there was one.
    pub message: Option<String>,
}

/// The engine waits before a query, without a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseRecord {
    pub query: String,
    pub phase: Phase,
    pub run: u32,
}
