//! The events before the first second: the plan of the run, the connections, and the beginning of a phase.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::measured::Count;
use crate::replay::ReplayPlanRecord;
use crate::suite::SuitePlanRecord;
use ground::clock::Phase;

/// The version of the event protocol, which consists of the events and their keys. It is raised with each change that a
/// reader of the events could notice.
pub const PROTOCOL: u32 = 2;

/// The oldest version of the event protocol that can be read. Histograms and percentiles of version 1 are in whole
/// microseconds.
pub(crate) const OLDEST_PROTOCOL: u32 = 1;

/// The first event: a description of the engine and of the plan of its run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    pub engine: String,
    pub frontend: String,
    pub pid: u32,
    /// The time at which the engine started, in the format of [`timestamp`].
    pub started: String,
    pub server_version: Option<String>,
    /// The keys of [`PlanRecord`], and keys that a later version of the protocol adds.
    pub plan: Map<String, Value>,
    /// The names of the machines. Only in events that were merged from several machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machines: Option<Vec<String>>,
}

/// The plan of an engine's run. If several engines share a run, the numbers are those of this engine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlanRecord {
    pub scripts: Vec<String>,
    pub clients: usize,
    pub jobs: usize,
    pub query_mode: String,
    pub scale: Option<u32>,
    pub warmup_s: f64,
    pub duration_s: Option<f64>,
    pub transactions_per_client: Option<u64>,
    pub transactions: Option<u64>,
    pub random_seed: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pools: Option<Pools>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slices: Option<SlicesRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayPlanRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite: Option<SuitePlanRecord>,
}

/// Converts a struct to the keys of a JSON object, such as the keys of the plan in [`Hello`].
pub fn to_map(keys: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(keys) {
        Ok(Value::Object(map)) => map,
        other => unreachable!("a struct is written as an object: {other:?}"),
    }
}

/// The part of a run that this engine does, if several engines share the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardRecord {
    /// The engine's number, counted from 1.
    pub number: u64,
    pub of: u64,
    /// The number of clients of the whole run.
    pub clients: u64,
}

/// The slices of time in which this engine's clients act, if several engines take turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlicesRecord {
    pub length_s: f64,
    /// The engine's number, counted from 1.
    pub number: u64,
    pub of: u64,
    pub seed: String,
}

/// The applications of a load with connection pools: their tasks, and the pool that the tasks of each application
/// share.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pools {
    pub apps: usize,
    pub tasks: u32,
    pub arrival: String,
    pub size: usize,
    pub timeout_s: f64,
    pub lifetime_s: Option<f64>,
}

/// The number of connected clients, and the time that connecting took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Connected {
    pub clients: Count,
    /// The time from the first attempt of a client to connect until all clients were connected, in seconds.
    pub connect_s: f64,
}

/// The beginning of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PhaseStart {
    pub phase: Phase,
    /// The time at which the load began, in Unix seconds of the machine's clock. Only in the first phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
    /// The time at which the load was planned to begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_at: Option<f64>,
}

/// Returns a time in UTC in the format of ISO 8601, with microseconds.
pub fn timestamp(time: SystemTime) -> String {
    let utc = OffsetDateTime::from(time);
    let (date, (hour, minute, second, micro)) = (utc.date(), utc.to_hms_micro());
    let (year, month, day) = (date.year(), u8::from(date.month()), date.day());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micro:06}Z")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn timestamps_are_iso_8601() {
        let at = |seconds| timestamp(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(at(951_827_696), "2000-02-29T12:34:56.000000Z");
        assert_eq!(at(1_795_270_323), "2026-11-21T14:12:03.000000Z");
    }
}
