//! The JSON Lines protocol: one object a line, documented in docs/engine-events.md. A change that a reader could notice
//! raises [`PROTOCOL`].

mod pools;

pub use pools::extent;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde_json::{Value, json};

use crate::frontend::self_check::Warning;
use drive::ledger::{Counts, Tally};
use drive::plan::{ClosedPlan, Limit, Load, Plan};
use drive::{Abortion, Began, Outcome, Tick};
use ground::clock::{Clock, Phase};
use ground::shard::ClientShare;
use latency::{Latencies, Moments};

/// Version of the protocol.
pub const PROTOCOL: u32 = 1;

/// Writes events; each line is flushed, so that a reader can follow the run.
pub struct EventWriter {
    out: BufWriter<Box<dyn Write>>,
    kind: Kind,
}

/// What kind of load it is that events tell of.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kind {
    /// It has a rate.
    pub paced: bool,
    /// Its statements are counted one by one.
    pub counted: bool,
    /// Tasks share pools of connections.
    pub pooled: bool,
}

/// What the first event says.
pub struct Hello<'a> {
    pub frontend: &'static str,
    pub plan: &'a Plan,
    /// `None` where the tables are not pgbench's.
    pub scale: Option<u32>,
    pub seed: u64,
    /// The server's version, if it is known.
    pub server: Option<&'a str>,
}

impl EventWriter {
    /// Events on standard output.
    pub fn stdout() -> Self {
        Self { out: BufWriter::new(Box::new(io::stdout())), kind: Kind::default() }
    }

    /// Events to a file, which is made anew.
    pub fn file(path: &Path) -> io::Result<Self> {
        Ok(Self { out: BufWriter::new(Box::new(File::create(path)?)), kind: Kind::default() })
    }

    /// The run that follows.
    pub fn hello(&mut self, clock: Clock, hello: &Hello<'_>) -> io::Result<()> {
        let plan = hello.plan;
        self.kind = Kind {
            paced: plan.interval().is_some(),
            counted: matches!(plan.load, Load::Staged(_)),
            pooled: plan.pools().is_some(),
        };
        let duration = plan.duration().map(|duration| duration.as_secs_f64());
        let (each, total) = match &plan.load {
            Load::Closed(ClosedPlan { limit: Limit::Time(_), .. }) => (None, None),
            Load::Closed(ClosedPlan { limit: Limit::Transactions(each), .. }) => (Some(*each), None),
            Load::Staged(staged) => (None, staged.events),
            Load::Pooled(pools, _) => (None, Some(pools.all_tasks())),
        };
        let scripts: Vec<_> = plan.workload.scripts().into_iter().map(|script| script.description).collect();
        let mut described = json!({
            "scripts": scripts,
            "clients": plan.clients,
            "jobs": plan.jobs,
            "query_mode": plan.mode.name(),
            "scale": hello.scale,
            "warmup_s": plan.warmup.as_secs_f64(),
            "duration_s": duration,
            "transactions_per_client": each,
            "transactions": total,
            "random_seed": hello.seed.to_string(),
        });
        let ClientShare { shard, whole, .. } = plan.part;
        if shard.is_part() {
            let shard = json!({ "number": shard.index + 1, "of": shard.of, "clients": whole });
            extend(&mut described, json!({ "shard": shard }));
        }
        if let Some(pools) = plan.pools() {
            extend(&mut described, json!({ "pools": pools::describe(pools) }));
        }
        self.write(
            clock,
            "hello",
            json!({
                "protocol": PROTOCOL,
                "engine": env!("CARGO_PKG_VERSION"),
                "frontend": hello.frontend,
                "pid": std::process::id(),
                "started": timestamp(SystemTime::now()),
                "server_version": hello.server,
                "plan": described,
            }),
        )
    }

    /// All clients are connected, `seconds` after the first began to.
    pub fn connected(&mut self, clock: Clock, clients: usize, seconds: f64) -> io::Result<()> {
        self.write(clock, "connected", json!({ "clients": clients, "connect_s": seconds }))
    }

    /// The same, where they wait for a start that is agreed upon.
    pub fn ready(&mut self, clock: Clock, clients: usize, seconds: f64) -> io::Result<()> {
        self.write(clock, "ready", json!({ "clients": clients, "connect_s": seconds }))
    }

    /// A phase begins, the first one with the moment at which it `began`.
    pub fn phase(&mut self, clock: Clock, phase: Phase, began: Option<&Began>) -> io::Result<()> {
        let mut body = json!({ "phase": phase });
        if let Some(began) = began {
            extend(&mut body, json!({ "at": unix_seconds(began.at) }));
            if let Some(planned) = began.planned {
                extend(&mut body, json!({ "planned_at": unix_seconds(planned) }));
            }
        }
        self.write(clock, "phase", body)
    }

    /// A second is over.
    pub fn tick(&mut self, clock: Clock, tick: &Tick) -> io::Result<()> {
        self.failed_tasks(clock, &tick.tally)?;
        self.write(clock, "tick", second(tick, self.kind))
    }

    /// The tasks that failed in a second.
    fn failed_tasks(&mut self, clock: Clock, tally: &Tally) -> io::Result<()> {
        let Some(pooled) = &tally.pooled else { return Ok(()) };
        for task in pooled.tasks.iter().filter(|task| task.failure.is_some()) {
            self.write(clock, "task", pools::task(task))?;
        }
        Ok(())
    }

    /// A client is given up.
    pub fn aborted(&mut self, clock: Clock, abortion: &Abortion) -> io::Result<()> {
        self.write(
            clock,
            "error",
            json!({
                "client": abortion.client,
                "script": abortion.script,
                "command": abortion.command,
                "kind": abortion.cause.kind(),
                "sqlstate": abortion.cause.sqlstate(),
                "message": abortion.cause.to_string(),
            }),
        )
    }

    /// The run is over.
    pub fn done(&mut self, clock: Clock, outcome: &Outcome, status: u8, warnings: &[Warning]) -> io::Result<()> {
        // With a single script the whole is the script.
        let several = outcome.scripts.iter().filter(|_| outcome.scripts.len() > 1);
        let scripts: Vec<_> = several.map(|account| script(&account.whole)).collect();
        let mut body = json!({
            "status": status,
            "interrupted": outcome.interrupted,
            "clients_aborted": outcome.aborted,
            "connect_s": outcome.connect_s,
            "warmup": (outcome.warmup_s > 0.0).then(|| summary(&outcome.warmup, outcome.warmup_s, self.kind)),
            "measure": (outcome.measure_s > 0.0).then(|| summary(&outcome.measure, outcome.measure_s, self.kind)),
            "drain": {
                "duration_s": (outcome.elapsed_s - outcome.measure_s).max(0.0),
                "transactions": outcome.drain.counts.transactions(),
                "failures": outcome.drain.counts.failures,
            },
            "scripts": scripts,
            "client": {
                "cpu_user_s": outcome.cpu.user.as_secs_f64(),
                "cpu_system_s": outcome.cpu.system.as_secs_f64(),
                "busiest_thread_share": outcome.busiest_thread,
                "cpu_per_transaction_us": cpu_per_transaction_us(outcome),
                "warnings": warnings,
            },
        });
        if let Some(all) = &outcome.tasks {
            extend(&mut body, json!({ "tasks": pools::tasks(all) }));
        }
        self.write(clock, "done", body)
    }

    fn write(&mut self, clock: Clock, event: &str, body: Value) -> io::Result<()> {
        self.write_at(clock.now() as f64 / 1e9, event, body)
    }

    /// Writes any event, of which `body` are the keys beside those that all have.
    pub fn write_at(&mut self, t: f64, event: &str, body: Value) -> io::Result<()> {
        let mut line = json!({ "event": event, "t": t });
        extend(&mut line, body);
        serde_json::to_writer(&mut self.out, &line)?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }
}

/// Adds the keys of another object.
pub fn extend(object: &mut Value, other: Value) {
    if let (Value::Object(object), Value::Object(other)) = (object, other) {
        object.extend(other);
    }
}

/// The body of a tick.
pub fn second(tick: &Tick, kind: Kind) -> Value {
    let mut body = json!({ "phase": tick.phase, "second": tick.second, "seconds": tick.seconds });
    extend(&mut body, happened(&tick.tally.counts, kind));
    extend(&mut body, times(&tick.tally, kind));
    body
}

/// A phase of so many seconds.
pub fn summary(tally: &Tally, seconds: f64, kind: Kind) -> Value {
    let mut summary = json!({ "duration_s": seconds });
    extend(&mut summary, happened(&tally.counts, kind));
    extend(&mut summary, json!({ "tps": tally.counts.transactions() as f64 / seconds }));
    extend(&mut summary, times(tally, kind));
    summary
}

/// A script's account.
pub fn script(whole: &Counts) -> Value {
    let mut script = counts(whole);
    let Moments { count, min, max, .. } = whole.moments;
    let (mean, stddev) = (whole.moments.mean(), whole.moments.stddev());
    let latency = (count > 0).then(|| json!({ "mean": mean, "stddev": stddev, "min": min, "max": max }));
    extend(&mut script, json!({ "latency_us": latency }));
    script
}

/// What became of transactions and, where they are counted, of statements.
fn happened(all: &Counts, kind: Kind) -> Value {
    let mut happened = counts(all);
    if kind.counted {
        extend(&mut happened, json!({ "queries": all.queries }));
    }
    happened
}

fn counts(counts: &Counts) -> Value {
    json!({
        "transactions": counts.transactions(),
        "failures": counts.failures,
        "skipped": counts.skipped,
        "late": counts.late,
        "retried": counts.retried,
        "retries": counts.retries,
    })
}

/// Latencies; with a rate, service times and schedule lags as well; with pools, service times and times in the queue.
fn times(tally: &Tally, kind: Kind) -> Value {
    let mut times = json!({
        "latency_us": distribution(&tally.counts.moments, &tally.latencies),
        "histogram": tally.latencies.encode(),
    });
    if kind.paced {
        let pace = tally.pace.as_deref().cloned().unwrap_or_default();
        let pace = json!({
            "service_us": pace.service.percentiles(),
            "service_histogram": pace.service.encode(),
            "lag_us": pace.lags.percentiles(),
            "lag_histogram": pace.lags.encode(),
        });
        extend(&mut times, pace);
    }
    if kind.pooled {
        extend(&mut times, pools::times(tally.pooled.as_deref()));
    }
    times
}

/// CPU time of the load threads by committed transaction of the measured part.
fn cpu_per_transaction_us(outcome: &Outcome) -> Option<f64> {
    let transactions = outcome.measure.counts.transactions();
    (transactions > 0).then(|| outcome.cpu.total().as_secs_f64() * 1e6 / transactions as f64)
}

#[derive(Serialize)]
struct Distribution {
    mean: f64,
    stddev: f64,
    min: f64,
    #[serde(flatten)]
    percentiles: latency::Percentiles,
    max: f64,
}

fn distribution(moments: &Moments, latencies: &Latencies) -> Option<Distribution> {
    let percentiles = latencies.percentiles()?;
    let (mean, stddev) = (moments.mean(), moments.stddev());
    Some(Distribution { mean, stddev, min: moments.min, percentiles, max: moments.max })
}

/// To the microsecond.
fn unix_seconds(time: Duration) -> f64 {
    (time.as_nanos() as f64 / 1e3).round() / 1e6
}

/// UTC in ISO 8601 with microseconds.
pub fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (seconds, micros) = (since.as_secs(), since.subsec_micros());
    let (year, month, day) = civil_from_days((seconds / 86_400) as i64);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// Year, month and day of a day counted from 1970-01-01 (H. Hinnant's `civil_from_days`,
/// <https://howardhinnant.github.io/date_algorithms.html>).
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use drive::ledger::Pace;

    #[test]
    fn service_times_and_lags_are_there_with_a_rate_only() {
        let (unpaced, paced) = (Kind::default(), Kind { paced: true, ..Kind::default() });
        let mut tally = Tally::default();
        tally.commit(2_000_000);
        assert!(times(&tally, unpaced).get("lag_us").is_none());
        assert!(times(&Tally::default(), paced)["lag_us"].is_null());
        let mut pace = Pace::default();
        pace.service.record(1_500_000);
        pace.lags.record(500_000);
        tally.pace = Some(Box::new(pace));
        let times = times(&tally, paced);
        assert_eq!(
            (&times["latency_us"]["p50"], &times["service_us"]["p50"], &times["lag_us"]["p99"]),
            (&json!(2000), &json!(1500), &json!(500))
        );
        assert!(times["lag_histogram"].is_string() && times["service_histogram"].is_string());
    }

    #[test]
    fn statements_are_there_where_they_are_counted() {
        let mut tally = Tally::default();
        tally.counts.queries.writes = 3;
        let kind = Kind { counted: true, ..Kind::default() };
        let queries = json!({ "reads": 0, "writes": 3, "others": 0, "errors": 0, "reconnects": 0 });
        assert_eq!(summary(&tally, 1.0, kind)["queries"], queries);
        assert!(summary(&tally, 1.0, Kind::default()).get("queries").is_none());
    }

    #[test]
    fn the_cost_of_a_transaction_is_that_of_the_measured_part() {
        let mut outcome = Outcome::default();
        assert_eq!(cpu_per_transaction_us(&outcome), None);
        outcome.measure.commit(1000);
        outcome.measure.commit(1000);
        outcome.cpu.user = Duration::from_micros(30);
        outcome.cpu.system = Duration::from_micros(10);
        assert_eq!(cpu_per_transaction_us(&outcome), Some(20.0));
    }

    #[test]
    fn unix_seconds_are_read_back_to_the_microsecond() {
        let time = Duration::from_nanos(1_795_270_323_123_456_789);
        assert_eq!(json!(unix_seconds(time)).to_string(), "1795270323.123457");
    }

    #[test]
    fn timestamps_are_iso_8601() {
        let at = |seconds| timestamp(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(at(951_827_696), "2000-02-29T12:34:56.000000Z");
        assert_eq!(at(1_795_270_323), "2026-11-21T14:12:03.000000Z");
    }
}
