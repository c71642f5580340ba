//! Tests of the merger. Helper functions make streams of events as engines write them, from lists of transactions.

mod ends;
mod garbage;
mod sums;

use events::{Count, EventLine, Measurement};
use proptest::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

use super::error::MergeError;
use super::merger::Merger;
use ground::clock::Phase;
use latency::Latencies;

pub const PHASES: [Phase; 3] = [Phase::Warmup, Phase::Measure, Phase::Drain];

/// A transaction of a run: the time of its end, its duration, and whether it failed.
#[derive(Debug, Clone, Copy)]
pub struct MergedTransaction {
    pub phase: usize,
    pub second: u32,
    pub latency_ns: u64,
    pub failed: bool,
}

pub fn transactions(most: usize) -> impl Strategy<Value = Vec<MergedTransaction>> {
    let one = (0..3usize, 0..4u32, 0..20_000_000u64, prop::bool::weighted(0.1));
    let one =
        one.prop_map(|(phase, second, latency_ns, failed)| MergedTransaction { phase, second, latency_ns, failed });
    prop::collection::vec(one, 0..most)
}

/// A merged event: the time `t`, the name of the event, and its other keys.
#[derive(Debug, Clone, PartialEq)]
pub struct MergedEvent {
    pub t: f64,
    pub event: String,
    pub body: Value,
}

pub fn line(event: &str, t: f64, body: impl Serialize) -> Vec<u8> {
    let mut line = json!({ "event": event, "t": t });
    extend(&mut line, serde_json::to_value(body).unwrap());
    line.to_string().into_bytes()
}

/// Adds the keys of another JSON object to an object.
pub fn extend(object: &mut Value, other: Value) {
    let (Value::Object(object), Value::Object(other)) = (object, other) else { panic!("not objects") };
    object.extend(other);
}

/// Returns the events that the merger has made since the last call.
pub fn events(merger: &mut Merger) -> Vec<MergedEvent> {
    let event = |line: EventLine| {
        let Value::Object(mut body) = serde_json::to_value(&line).unwrap() else { panic!("{line:?}") };
        let (event, t) = (body.shift_remove("event").unwrap(), body.shift_remove("t").unwrap());
        let event = event.as_str().unwrap().to_owned();
        MergedEvent { t: t.as_f64().unwrap(), event, body: Value::Object(body) }
    };
    merger.take_lines().into_iter().map(event).collect()
}

pub fn hello(plan: Value) -> Vec<u8> {
    let body = json!({
        "protocol": 2, "engine": "0.1.0", "frontend": "pgbench", "pid": 1, "server_version": "18.6",
        "started": "2026-11-20T14:12:03.123456Z", "plan": plan,
    });
    line("hello", 0.1, body)
}

fn measurement(of: &[&MergedTransaction], has_schedule: bool) -> Measurement {
    let mut sum = Measurement { lags: has_schedule.then(Latencies::default), ..Measurement::default() };
    sum.service = sum.lags.clone();
    for MergedTransaction { latency_ns, failed, .. } in of {
        if *failed {
            let kind = if latency_ns % 2 == 0 { "40001" } else { "57014" };
            *sum.counts.failures.entry(kind.to_owned()).or_default() += Count(1);
            sum.counts.retried += Count(u64::from(latency_ns % 3 > 0));
            sum.counts.retries += Count(latency_ns % 3);
            continue;
        }
        sum.counts.transactions += Count(1);
        sum.moments.add(*latency_ns as f64 / 1000.0);
        sum.latencies.record(*latency_ns);
        if let (Some(lags), Some(service)) = (&mut sum.lags, &mut sum.service) {
            lags.record(latency_ns / 3);
            service.record(latency_ns - latency_ns / 3);
        }
    }
    sum
}

/// Returns the lines of events that an engine writes when it runs these transactions. When the load began, the engine's
/// clock showed `clock` seconds. If `has_schedule` is true, the load has a rate.
pub fn engine(of: &[MergedTransaction], clients: u64, clock: f64, has_schedule: bool) -> Vec<Vec<u8>> {
    let mut lines = vec![hello(json!({ "scripts": ["s"], "clients": clients, "duration_s": 4.0 }))];
    lines.push(line("connected", clock - 0.01, json!({ "clients": clients, "connect_s": 0.5 })));
    let mut now = clock;
    let mut summaries = Vec::new();
    for (index, phase) in PHASES.into_iter().enumerate() {
        let mut begins = json!({ "phase": phase });
        if index == 0 {
            extend(&mut begins, json!({ "at": 1_795_270_323.0 + clock }));
        }
        lines.push(line("phase", now, begins));
        let own: Vec<_> = of.iter().filter(|transaction| transaction.phase == index).collect();
        for number in 0..4 {
            now += 1.0;
            let ended: Vec<_> = own.iter().copied().filter(|transaction| transaction.second == number).collect();
            lines.push(line("tick", now, measurement(&ended, has_schedule).tick(phase, number, 1.0)));
        }
        summaries.push(measurement(&own, has_schedule).summary(4.0));
    }
    let drain = &summaries[2].counts;
    let body = json!({
        "status": 0, "interrupted": false, "clients_aborted": 0, "connect_s": 0.5,
        "warmup": summaries[0], "measure": summaries[1],
        "drain": { "duration_s": 4.0, "transactions": drain.transactions, "failures": drain.failures },
        "scripts": [],
        "client": { "cpu_user_s": 1.0, "cpu_system_s": 0.5, "busiest_thread_share": 0.1 * clients as f64,
                    "cpu_per_transaction_us": null, "warnings": [] },
    });
    lines.push(line("done", now, body));
    lines
}

/// Feeds the lines of several streams to the merger. `next` chooses the stream of each line among the streams that have
/// lines left. Returns the merged events and the exit status.
pub fn merged(
    streams: &[Vec<Vec<u8>>],
    mut next: impl FnMut(usize) -> usize,
) -> Result<(Vec<MergedEvent>, u8), MergeError> {
    let mut merger = Merger::new((0..streams.len()).map(|index| format!("m{index}")));
    let mut rest: Vec<_> = streams.iter().map(|lines| lines.iter()).collect();
    let mut open: Vec<usize> = (0..streams.len()).collect();
    while !open.is_empty() {
        let chosen = next(open.len()) % open.len();
        match rest[open[chosen]].next() {
            Some(line) => merger.add_line(open[chosen], line)?,
            None => merger.end_stream(open.remove(chosen))?,
        }
    }
    let status = merger.status().ok_or(MergeError::NoEnd)?;
    Ok((events(&mut merger), status))
}

/// Merges the streams, reading one line of each stream in turn.
pub fn in_turns(streams: &[Vec<Vec<u8>>]) -> Result<(Vec<MergedEvent>, u8), MergeError> {
    let mut turn = 0;
    merged(streams, |_| {
        turn += 1;
        turn
    })
}

pub fn of_kind<'a>(events: &'a [MergedEvent], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event.event == kind).map(|event| &event.body).collect()
}
