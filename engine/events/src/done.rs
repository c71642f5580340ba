//! The last event: the results of the run.

use serde::{Deserialize, Serialize};

use crate::measured::{Count, CountsRecord, DistributionRecord, Extent, FailuresRecord, Summary};
use crate::replay::ReplayRecord;

/// The end of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// The exit status of the engine.
    pub status: u8,
    pub interrupted: bool,
    pub clients_aborted: Count,
    pub connect_s: f64,
    pub warmup: Option<Summary>,
    pub measure: Option<Summary>,
    pub drain: Drain,
    /// The scripts of the load; empty if there is only one.
    pub scripts: Vec<ScriptRecord>,
    pub client: ClientUsage,
    /// The tasks; only with pools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TasksRecord>,
    /// The totals of the replay; only for a replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayRecord>,
    /// The shares of the machines; only in merged events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machines: Option<Vec<MachineShare>>,
}

/// Transactions that ended after the measured phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drain {
    pub duration_s: f64,
    pub transactions: Count,
    pub failures: FailuresRecord,
}

/// The totals of one script, if a load has several, over the measured phase and the drain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScriptRecord {
    #[serde(flatten)]
    pub counts: CountsRecord,
    pub latency_us: Option<DistributionRecord>,
    /// The histogram; absent in merged events of which a part has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
}

/// The resources that the engine itself used in the measured phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientUsage {
    pub cpu_user_s: f64,
    pub cpu_system_s: f64,
    pub busiest_thread_share: f64,
    pub cpu_per_transaction_us: Option<f64>,
    pub warnings: Vec<Warning>,
}

/// A reason to doubt the measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The kind of the warning, one word for programs.
    pub kind: String,
    /// The warning as a sentence for people.
    pub message: String,
}

/// The tasks that were executed on pools of connections in the whole run. All times are those of completed tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TasksRecord {
    pub planned: Count,
    pub completed: Count,
    pub failed: Count,
    pub failures: FailuresRecord,
    pub unfinished: Count,
    pub response_us: Option<ResponseTime>,
    pub queue_us: Option<Extent>,
    pub service_us: Option<Extent>,
    /// The waiting times of tasks that got no connection.
    pub timeout_waited_us: Option<Extent>,
    pub under_5_s: Count,
    pub classes: ResponseClasses,
}

/// The time from the arrival to the end, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ResponseTime {
    #[serde(flatten)]
    pub extent: Extent,
    pub median: Option<f64>,
}

/// The numbers of tasks in Nielsen's classes of response times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseClasses {
    #[serde(rename = "up_to_0.1_s")]
    pub instant: Count,
    #[serde(rename = "up_to_1_s")]
    pub flow: Count,
    #[serde(rename = "up_to_10_s")]
    pub attention: Count,
    pub longer: Count,
}

/// The part of one machine in a merged run. If the machine was lost, only the values that follow from its events of
/// seconds are known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineShare {
    pub machine: String,
    pub clients: Option<u64>,
    pub transactions: Count,
    pub tps: Option<f64>,
    pub cpu_user_s: Option<f64>,
    pub cpu_system_s: Option<f64>,
    pub busiest_thread_share: Option<f64>,
    pub lag_p99_us: Option<f64>,
    /// The time at which the load began, Unix seconds of the machine's clock.
    pub began_at: Option<f64>,
    pub status: Option<u8>,
}
