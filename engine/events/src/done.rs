//! The last event: the results of the run.

use serde::{Deserialize, Serialize};

use crate::measured::{Count, CountsRecord, DistributionRecord, Extent, FailuresRecord, Summary};
use crate::replay::ReplayRecord;

/// The last event of a run, with its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// The exit status with which the engine ends.
    pub status: u8,
    pub interrupted: bool,
    pub clients_aborted: Count,
    pub connect_s: f64,
    pub warmup: Option<Summary>,
    pub measure: Option<Summary>,
    pub drain: Drain,
    /// The totals of each script of the load. Empty if the load has only one script.
    pub scripts: Vec<ScriptRecord>,
    pub client: ClientUsage,
    /// The totals of the tasks. Only in a load with connection pools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TasksRecord>,
    /// The totals of the replay. Only in a replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayRecord>,
    /// The totals of each machine. Only in events that were merged from several machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machines: Option<Vec<MachineShare>>,
}

/// Transactions that were under way at the end of the measured phase and that ended after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drain {
    pub duration_s: f64,
    pub transactions: Count,
    pub failures: FailuresRecord,
}

/// The totals of one script over the measured phase and the drain. Only in a load with several scripts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScriptRecord {
    #[serde(flatten)]
    pub counts: CountsRecord,
    pub latency_us: Option<DistributionRecord>,
    /// The encoded latency histogram. It is absent in merged events if one of the machines did not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
}

/// The resources that the engine itself used in the measured phase, and warnings if it was the bottleneck.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientUsage {
    pub cpu_user_s: f64,
    pub cpu_system_s: f64,
    pub busiest_thread_share: f64,
    pub cpu_per_transaction_us: Option<f64>,
    pub warnings: Vec<Warning>,
}

/// A warning that the measurement may be wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The kind of the warning: one word, for programs that read the events.
    pub kind: String,
    /// The warning as a sentence for the user.
    pub message: String,
}

/// The totals of the tasks that ran on connection pools in the whole run. All times except `timeout_waited_us` are
/// times of completed tasks.
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
    /// The waiting times of tasks that got no connection in time, in microseconds.
    pub timeout_waited_us: Option<Extent>,
    pub under_5_s: Count,
    pub classes: ResponseClasses,
}

/// The time from the arrival of a task to its end, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ResponseTime {
    #[serde(flatten)]
    pub extent: Extent,
    pub median: Option<f64>,
}

/// The numbers of tasks in J. Nielsen's classes of response times.
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

/// The totals of one machine in a merged run. If the machine was lost, only the totals that follow from the seconds
/// that it has reported are known.
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
    /// The time at which the load began on this machine, in Unix seconds of its clock.
    pub began_at: Option<f64>,
    pub status: Option<u8>,
}
