//! The last event of a part.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Count;
use super::second::{Extent, Spread, moments_of};
use drive::ledger::Counts;
use latency::Moments;

/// What `done` says.
#[derive(Deserialize)]
pub struct Done {
    pub t: f64,
    pub status: u8,
    pub interrupted: bool,
    pub clients_aborted: Count,
    pub connect_s: f64,
    pub warmup: Option<Summary>,
    pub measure: Option<Summary>,
    pub drain: Drain,
    pub scripts: Vec<Script>,
    pub client: Client,
    pub tasks: Option<Tasks>,
}

/// A phase; what else there is of it is in its seconds.
#[derive(Deserialize)]
pub struct Summary {
    pub duration_s: f64,
    pub tps: f64,
    pub transactions: Count,
    lag_us: Option<Lag>,
}

#[derive(Deserialize)]
struct Lag {
    p99: f64,
}

impl Summary {
    /// The p99 of the schedule lag, microseconds; `None` without a rate and without transactions.
    pub fn lag_p99(&self) -> Option<f64> {
        self.lag_us.as_ref().map(|lag| lag.p99)
    }
}

/// What followed the measured part.
#[derive(Deserialize)]
pub struct Drain {
    pub duration_s: f64,
    pub transactions: Count,
}

/// One of several scripts.
#[derive(Deserialize)]
pub struct Script {
    transactions: Count,
    failures: BTreeMap<String, Count>,
    skipped: Count,
    late: Count,
    retried: Count,
    retries: Count,
    latency_us: Option<Spread>,
}

impl Script {
    /// The same as the ledger has it.
    pub fn counts(&self) -> Result<Counts, String> {
        let latency = self.latency_us.map(|figures| figures.moments(self.transactions));
        Ok(Counts {
            moments: moments_of(self.transactions, latency)?,
            failures: self.failures.iter().map(|(kind, count)| (kind.clone(), count.0)).collect(),
            skipped: self.skipped.0,
            late: self.late.0,
            retried: self.retried.0,
            retries: self.retries.0,
            ..Counts::default()
        })
    }
}

/// What the engine used.
#[derive(Deserialize)]
pub struct Client {
    pub cpu_user_s: f64,
    pub cpu_system_s: f64,
    pub busiest_thread_share: f64,
    pub warnings: Vec<Warning>,
}

/// A reason to doubt.
#[derive(Deserialize)]
pub struct Warning {
    pub kind: String,
    pub message: String,
}

/// Tasks on pools of connections, of the whole run.
#[derive(Deserialize)]
pub struct Tasks {
    pub planned: Count,
    pub completed: Count,
    pub failed: Count,
    pub failures: BTreeMap<String, Count>,
    pub unfinished: Count,
    response_us: Option<Response>,
    queue_us: Option<Extent>,
    service_us: Option<Extent>,
    timeout_waited_us: Option<Extent>,
    pub under_5_s: Count,
    pub classes: Classes,
}

#[derive(Deserialize)]
struct Response {
    #[serde(flatten)]
    extent: Extent,
    median: f64,
}

/// How many took how long.
#[derive(Deserialize)]
pub struct Classes {
    #[serde(rename = "up_to_0.1_s")]
    pub instant: Count,
    #[serde(rename = "up_to_1_s")]
    pub flow: Count,
    #[serde(rename = "up_to_10_s")]
    pub attention: Count,
    pub longer: Count,
}

/// Figures of a part's tasks: of the completed ones, and of those that got no connection.
pub struct TaskMoments {
    pub response: Moments,
    pub queue: Moments,
    pub service: Moments,
    pub timeouts: Moments,
}

impl Tasks {
    /// The median of the response times, microseconds; `None` without any.
    pub fn median(&self) -> Option<f64> {
        self.response_us.as_ref().map(|response| response.median)
    }

    /// What can be added up; `timeout` is the kind of failure of a task that got no connection.
    pub fn moments(&self, timeout: &str) -> Result<TaskMoments, String> {
        let completed =
            |extent: Option<Extent>| moments_of(self.completed, extent.map(|extent| extent.moments(self.completed)));
        let timeouts = self.failures.get(timeout).copied().unwrap_or_default();
        Ok(TaskMoments {
            response: completed(self.response_us.as_ref().map(|response| response.extent))?,
            queue: completed(self.queue_us)?,
            service: completed(self.service_us)?,
            timeouts: moments_of(timeouts, self.timeout_waited_us.map(|extent| extent.moments(timeouts)))?,
        })
    }
}
