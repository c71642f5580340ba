//! The JSON Lines protocol: one object a line, documented in docs/engine-events.md. A change that a reader could notice
//! raises [`PROTOCOL`].

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::SystemTime;

use serde::Serialize;
use serde_json::{Value, json};

use crate::ledger::Tally;
use crate::plan::{Limit, Plan};
use crate::reactor::{Abortion, Clock, Outcome, Phase, Tick};

/// Version of the protocol.
pub const PROTOCOL: u32 = 1;

/// Writes events; each line is flushed, so that a reader can follow the run.
pub struct EventWriter {
    out: BufWriter<Box<dyn Write>>,
}

/// What the first event says.
pub struct Hello<'a> {
    pub frontend: &'static str,
    pub plan: &'a Plan,
    pub scale: u32,
    pub seed: u64,
    pub server: &'a str,
}

impl EventWriter {
    /// Events on standard output.
    pub fn stdout() -> Self {
        Self { out: BufWriter::new(Box::new(io::stdout())) }
    }

    /// Events to a file, which is made anew.
    pub fn file(path: &Path) -> io::Result<Self> {
        Ok(Self { out: BufWriter::new(Box::new(File::create(path)?)) })
    }

    /// The run that follows.
    pub fn hello(&mut self, clock: Clock, hello: &Hello<'_>) -> io::Result<()> {
        let plan = hello.plan;
        let (duration, transactions) = match plan.limit {
            Limit::Time(duration) => (Some(duration.as_secs_f64()), None),
            Limit::Transactions(each) => (None, Some(each)),
        };
        let scripts: Vec<_> = plan.workload.scripts().into_iter().map(|script| script.description).collect();
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
                "plan": {
                    "scripts": scripts,
                    "clients": plan.clients,
                    "jobs": plan.jobs,
                    "query_mode": plan.mode.name(),
                    "scale": hello.scale,
                    "warmup_s": plan.warmup.as_secs_f64(),
                    "duration_s": duration,
                    "transactions_per_client": transactions,
                    "random_seed": hello.seed.to_string(),
                },
            }),
        )
    }

    /// All clients are connected, `seconds` after the first began to.
    pub fn connected(&mut self, clock: Clock, clients: usize, seconds: f64) -> io::Result<()> {
        self.write(clock, "connected", json!({ "clients": clients, "connect_s": seconds }))
    }

    /// A phase begins.
    pub fn phase(&mut self, clock: Clock, phase: Phase) -> io::Result<()> {
        self.write(clock, "phase", json!({ "phase": phase }))
    }

    /// A second is over.
    pub fn tick(&mut self, clock: Clock, tick: &Tick) -> io::Result<()> {
        self.write(
            clock,
            "tick",
            json!({
                "phase": tick.phase,
                "second": tick.second,
                "seconds": tick.seconds,
                "transactions": tick.tally.transactions(),
                "failures": tick.tally.failures,
                "latency_us": latency(&tick.tally),
                "histogram": tick.tally.latencies.encode(),
            }),
        )
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
    pub fn done(&mut self, clock: Clock, outcome: &Outcome, status: u8) -> io::Result<()> {
        self.write(
            clock,
            "done",
            json!({
                "status": status,
                "interrupted": outcome.interrupted,
                "clients_aborted": outcome.aborted,
                "connect_s": outcome.connect_s,
                "warmup": (outcome.warmup_s > 0.0).then(|| summary(&outcome.warmup, outcome.warmup_s)),
                "measure": (outcome.measure_s > 0.0).then(|| summary(&outcome.measure, outcome.measure_s)),
                "drain": {
                    "duration_s": (outcome.elapsed_s - outcome.measure_s).max(0.0),
                    "transactions": outcome.drain.transactions(),
                    "failures": outcome.drain.failures,
                },
                "client": {
                    "cpu_user_s": outcome.cpu.user.as_secs_f64(),
                    "cpu_system_s": outcome.cpu.system.as_secs_f64(),
                    "busiest_thread_share": outcome.busiest_thread,
                },
            }),
        )
    }

    fn write(&mut self, clock: Clock, event: &str, body: Value) -> io::Result<()> {
        let mut line = json!({ "event": event, "t": clock.now() as f64 / 1e9 });
        if let (Value::Object(line), Value::Object(body)) = (&mut line, body) {
            line.extend(body);
        }
        serde_json::to_writer(&mut self.out, &line)?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }
}

fn summary(tally: &Tally, seconds: f64) -> Value {
    json!({
        "duration_s": seconds,
        "transactions": tally.transactions(),
        "failures": tally.failures,
        "tps": tally.transactions() as f64 / seconds,
        "latency_us": latency(tally),
        "histogram": tally.latencies.encode(),
    })
}

#[derive(Serialize)]
struct Latency {
    mean: f64,
    stddev: f64,
    min: f64,
    #[serde(flatten)]
    percentiles: crate::ledger::Percentiles,
    max: f64,
}

fn latency(tally: &Tally) -> Option<Latency> {
    let moments = tally.moments;
    let percentiles = tally.latencies.percentiles()?;
    Some(Latency { mean: moments.mean(), stddev: moments.stddev(), min: moments.min, percentiles, max: moments.max })
}

/// UTC in ISO 8601 with microseconds.
fn timestamp(time: SystemTime) -> String {
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
    use std::time::Duration;

    #[test]
    fn timestamps_are_iso_8601() {
        let at = |seconds| timestamp(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(at(951_827_696), "2000-02-29T12:34:56.000000Z");
        assert_eq!(at(1_795_270_323), "2026-11-21T14:12:03.000000Z");
    }
}
