//! Replays of captures: the plan of one, and what became of its sessions and statements.

use serde::{Deserialize, Serialize};

use crate::measured::{Count, DistributionRecord, FailuresRecord};

/// Which sessions are replayed, and how fast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayPlanRecord {
    /// The directory.
    pub capture: String,
    /// Of the sessions that are chosen, copies included.
    pub sessions: Count,
    pub statements: Count,
    /// From the first start to the last end of these, as recorded.
    pub recorded_s: f64,
    /// How many of them were open at the same time, at most.
    pub most_at_once: u64,
    /// The recorded times are divided by this; `None` if statements follow each other back to back.
    pub speed: Option<f64>,
    /// The share of the capture's sessions that are drawn.
    pub sample_percent: f64,
    pub copies: u32,
}

/// What became of a replay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayRecord {
    pub sessions: ReplaySessions,
    /// Statements that the server has answered, or that lost their connection.
    pub statements: Count,
    /// Transactions that have ended, whichever way.
    pub transactions: Count,
    pub rows: Count,
    /// Statements with another number of rows than recorded.
    pub other_rows: Count,
    /// Errors by SQLSTATE: as recorded, not recorded, recorded and not there.
    pub expected_failures: FailuresRecord,
    pub unexpected_failures: FailuresRecord,
    pub missing_failures: FailuresRecord,
    pub templates: Vec<ReplayTemplate>,
    /// The statements of all other templates, if there are any.
    pub other_templates: Option<OtherTemplates>,
}

/// What became of recorded sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplaySessions {
    pub begun: Count,
    pub finished: Count,
    pub refused: Count,
    pub lost: Count,
    pub begun_before: Count,
    pub left_open: Count,
}

/// The statements of a template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayTemplate {
    /// Its number in the capture.
    pub template: u32,
    /// Its text, which may be cut.
    pub text: String,
    #[serde(flatten)]
    pub counts: ReplayCounts,
}

/// The statements of the templates that are not counted one by one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OtherTemplates {
    /// How many templates these are.
    pub templates: u64,
    #[serde(flatten)]
    pub counts: ReplayCounts,
}

/// What became of statements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayCounts {
    pub statements: Count,
    pub rows: Count,
    /// The sum of a hash of each execution's rows, modulo 2^64: 16 hexadecimal digits.
    pub rows_hash: Option<String>,
    pub other_rows: Count,
    /// Errors by SQLSTATE: as recorded, not recorded, recorded and not there.
    pub expected_failures: FailuresRecord,
    pub unexpected_failures: FailuresRecord,
    pub missing_failures: FailuresRecord,
    /// Later statements of transactions that errors of these ended, by the SQLSTATE of those errors: they failed with 25P02,
    /// which was not recorded; or 25P02 was recorded for them, and neither error was there.
    pub consequences: FailuresRecord,
    pub missing_consequences: FailuresRecord,
    /// From sending to the answer, without unexpected errors.
    pub time_us: Option<DistributionRecord>,
    /// See [`latency::Latencies::encode`].
    pub histogram: String,
}
