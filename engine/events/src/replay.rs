//! Events about replays of captures: the plan of a replay, and the outcome of its sessions and statements.

use serde::{Deserialize, Serialize};

use crate::measured::{Count, DistributionRecord, FailuresRecord};

/// The plan of a replay: the sessions that are replayed, and the speed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayPlanRecord {
    /// The directory of the capture.
    pub capture: String,
    /// The number of sessions that are chosen, copies included.
    pub sessions: Count,
    pub statements: Count,
    /// The time from the first start to the last end of these sessions, as recorded, seconds.
    pub recorded_s: f64,
    /// The greatest number of these sessions that were open at the same time.
    pub most_at_once: u64,
    /// The number by which the recorded times are divided; `None` if statements follow each other back to back.
    pub speed: Option<f64>,
    /// The share of the capture's sessions that are drawn.
    pub sample_percent: f64,
    pub copies: u32,
}

/// The totals of a replay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayRecord {
    pub sessions: ReplaySessions,
    /// Statements that the server has answered, or that lost their connection.
    pub statements: Count,
    /// Transactions that have ended, however they ended.
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

/// The counts of recorded sessions by their outcome.
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
    /// The number of the template in the capture.
    pub template: u32,
    /// The text of the template, which may be cut.
    pub text: String,
    #[serde(flatten)]
    pub counts: ReplayCounts,
}

/// The statements of the templates that are not counted one by one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OtherTemplates {
    /// The number of these templates.
    pub templates: u64,
    #[serde(flatten)]
    pub counts: ReplayCounts,
}

/// The counts of statements by their outcome.
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
    /// The later statements of transactions in which one of the counted statements had an error, by the SQLSTATE of
    /// that error. `consequences` counts those that failed with 25P02 (in a failed transaction), which was not
    /// recorded. `missing_consequences` counts those for which 25P02 was recorded, if neither the first error nor 25P02
    /// occurred in the replay.
    pub consequences: FailuresRecord,
    pub missing_consequences: FailuresRecord,
    /// The time from sending to the answer, without unexpected errors.
    pub time_us: Option<DistributionRecord>,
    /// The histogram in the form of [`latency::Latencies::encode`].
    pub histogram: String,
}
