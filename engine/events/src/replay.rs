//! Events about replays of captures, which are recorded sessions of a server: the plan of a replay, and the outcome of
//! its sessions and statements.

use serde::{Deserialize, Serialize};

use crate::measured::{Count, DistributionRecord, FailuresRecord};

/// The plan of a replay: which sessions are replayed, and how fast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayPlanRecord {
    /// The directory of the capture, which contains the recorded sessions.
    pub capture: String,
    /// The number of sessions that are replayed, with their copies.
    pub sessions: Count,
    pub statements: Count,
    /// The recorded time from the first start to the last end of the replayed sessions, in seconds.
    pub recorded_s: f64,
    /// The maximum number of the replayed sessions that were open at the same time when they were recorded.
    pub most_at_once: u64,
    /// The number by which the recorded times are divided. `None` if statements run back to back.
    pub speed: Option<f64>,
    /// The percentage of the recorded sessions that are drawn for the replay.
    pub sample_percent: f64,
    pub copies: u32,
}

/// The totals of a replay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayRecord {
    pub sessions: ReplaySessions,
    /// The number of statements that the server has answered, or whose connection was lost.
    pub statements: Count,
    /// The number of transactions that have ended, by commit or by rollback.
    pub transactions: Count,
    pub rows: Count,
    /// The number of statements that returned or changed a different number of rows than recorded.
    pub other_rows: Count,
    /// The number of recorded errors that happened again in the replay, by SQLSTATE.
    pub expected_failures: FailuresRecord,
    /// The number of errors that were not recorded, by SQLSTATE.
    pub unexpected_failures: FailuresRecord,
    /// The number of recorded errors that did not happen in the replay, by SQLSTATE.
    pub missing_failures: FailuresRecord,
    pub templates: Vec<ReplayTemplate>,
    /// The totals of the statements of those templates that have no totals of their own in `templates`. `None` if there
    /// are no such templates.
    pub other_templates: Option<OtherTemplates>,
}

/// The numbers of recorded sessions by how they ended in the replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplaySessions {
    pub begun: Count,
    pub finished: Count,
    pub refused: Count,
    pub lost: Count,
    pub begun_before: Count,
    pub left_open: Count,
}

/// The totals of the statements of one template. A template stands for statements that differ only in their values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayTemplate {
    /// The number of the template in the capture, which contains the recorded sessions.
    pub template: u32,
    /// The text of the template. A long text is cut.
    pub text: String,
    #[serde(flatten)]
    pub counts: ReplayCounts,
}

/// The totals of the statements of those templates that have no totals of their own, because a replay reports only a
/// limited number of templates one by one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OtherTemplates {
    /// The number of templates whose statements are counted here together.
    pub templates: u64,
    #[serde(flatten)]
    pub counts: ReplayCounts,
}

/// The totals of statements by how they ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayCounts {
    pub statements: Count,
    pub rows: Count,
    /// The sum over the statements of a hash of the rows that each returned, modulo 2^64, as 16 hexadecimal digits.
    /// `None` if rows were not hashed.
    pub rows_hash: Option<String>,
    pub other_rows: Count,
    /// The number of recorded errors of the counted statements that happened again in the replay, by SQLSTATE.
    pub expected_failures: FailuresRecord,
    /// The number of errors of the counted statements that were not recorded, by SQLSTATE.
    pub unexpected_failures: FailuresRecord,
    /// The number of recorded errors of the counted statements that did not happen in the replay, by SQLSTATE.
    pub missing_failures: FailuresRecord,
    /// The number of statements that failed with an unrecorded 25P02 (in a failed transaction) because one of the
    /// statements counted here, earlier in the same transaction, had failed. They are counted by the SQLSTATE of the
    /// earlier error.
    pub consequences: FailuresRecord,
    /// The number of statements whose recorded 25P02 did not happen, because one of the statements counted here,
    /// earlier in the same transaction, did not fail as recorded. They are counted by the SQLSTATE of the recorded
    /// error of the earlier statement.
    pub missing_consequences: FailuresRecord,
    /// The time from sending a statement to its answer. Statements with unexpected errors are not counted.
    pub time_us: Option<DistributionRecord>,
    /// The histogram in the form of [`latency::Latencies::encode`].
    pub histogram: String,
}
