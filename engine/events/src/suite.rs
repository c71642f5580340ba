//! The events of a suite of queries: the plan, the end of each query, and the pause before a query in which another
//! program can act.

use serde::{Deserialize, Serialize};

use ground::clock::Phase;

/// The plan of a suite: how often its queries run, and how long each may take.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SuitePlanRecord {
    /// The number of measured runs of each query.
    pub runs: u32,
    /// The time limit in seconds after which a query is cancelled.
    pub limit_s: f64,
    /// True if the engine waits before each query for a line on standard input, so that another program can act before
    /// the query.
    pub pauses: bool,
}

/// The end of one run of a query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueryRecord {
    pub query: String,
    pub phase: Phase,
    /// The number of the query's run, counted from 1 in each phase.
    pub run: u32,
    /// The time from sending the query to the end of its answer, in microseconds. If the query was cancelled, it is the
    /// time limit. After an error it is `None`.
    pub time_us: Option<f64>,
    pub over_limit: bool,
    /// The number of rows that the last statement of the query returned or changed.
    pub rows: u64,
    /// The hash of the values of all rows that the last statement of the query returned, which does not depend on their
    /// order. `None` if it returned no result, failed or was cancelled.
    pub rows_hash: Option<String>,
    pub sqlstate: Option<String>,
    /// The message of the error, if the query failed.
    pub message: Option<String>,
}

/// The event that the engine pauses before a query: it has closed its connection, and waits for a line on standard
/// input, so that another program can act, for example restart the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseRecord {
    pub query: String,
    pub phase: Phase,
    pub run: u32,
}
