//! The last event of the whole: the phases from their seconds, the rest from the machines' own last events.

mod tasks;

use serde_json::{Value, json};

use super::said::{Done, Summary};
use super::stream::{State, Stream};
use crate::event;
use crate::event::Kind;
use drive::Tick;
use drive::ledger::{Counts, Tally};
use ground::clock::Phase;

/// All that happened, by phase.
#[derive(Default)]
pub struct Totals {
    phases: [Tally; 3],
    seconds: [f64; 3],
}

impl Totals {
    /// Adds a second of the whole.
    pub fn add(&mut self, tick: &Tick) {
        self.phases[tick.phase as usize].merge(&tick.tally);
        self.seconds[tick.phase as usize] += tick.seconds;
    }

    pub fn of(&self, phase: Phase) -> &Tally {
        &self.phases[phase as usize]
    }
}

/// The body of the last event. Lost machines have their seconds in it, and nothing else. The error is a sentence.
pub fn done(streams: &[Stream], totals: &Totals, kind: Kind, status: u8) -> Result<Value, String> {
    let reports: Vec<_> = streams.iter().filter_map(|stream| Some((stream, stream.done.as_deref()?))).collect();
    let longest = |of: fn(&Done) -> f64| reports.iter().map(|(_, done)| of(done)).fold(0.0, f64::max);
    let drain = &totals.of(Phase::Drain).counts;
    let mut body = json!({
        "status": status,
        "interrupted": reports.iter().any(|(_, done)| done.interrupted),
        "clients_aborted": reports.iter().map(|(_, done)| done.clients_aborted.0).sum::<u64>(),
        "connect_s": longest(|done| done.connect_s),
        "warmup": phase(&reports, totals, Phase::Warmup, kind),
        "measure": phase(&reports, totals, Phase::Measure, kind),
        "drain": {
            "duration_s": longest(|done| done.drain.duration_s),
            "transactions": drain.transactions(),
            "failures": drain.failures,
        },
        "scripts": scripts(&reports)?,
        "client": client(&reports),
    });
    let of_tasks: Vec<_> = reports.iter().filter_map(|(stream, done)| Some((*stream, done.tasks.as_ref()?))).collect();
    if !of_tasks.is_empty() {
        event::extend(&mut body, json!({ "tasks": tasks::whole(&of_tasks, &totals.of(Phase::Measure).latencies)? }));
    }
    event::extend(&mut body, json!({ "machines": streams.iter().map(machine).collect::<Vec<_>>() }));
    Ok(body)
}

type Reports<'a> = [(&'a Stream, &'a Done)];

fn summary_of(done: &Done, phase: Phase) -> Option<&Summary> {
    match phase {
        Phase::Warmup => done.warmup.as_ref(),
        Phase::Measure => done.measure.as_ref(),
        Phase::Drain => None,
    }
}

/// A phase is as long as on the machine where it was longest. Of machines of which none came to the end the seconds tell.
fn phase(reports: &Reports<'_>, totals: &Totals, phase: Phase, kind: Kind) -> Option<Value> {
    let durations = reports.iter().filter_map(|(_, done)| Some(summary_of(done, phase)?.duration_s));
    let told = totals.seconds[phase as usize];
    let duration = durations.reduce(f64::max).or(Some(told).filter(|_| reports.is_empty() && told > 0.0))?;
    Some(event::summary(totals.of(phase), duration, kind))
}

fn scripts(reports: &Reports<'_>) -> Result<Vec<Value>, String> {
    let mut whole: Vec<Counts> = Vec::new();
    for (stream, done) in reports {
        if whole.is_empty() {
            whole.resize_with(done.scripts.len(), Counts::default);
        }
        if whole.len() != done.scripts.len() {
            return Err(format!(
                "machine {} reports {} scripts, the machines before it {}",
                stream.name,
                done.scripts.len(),
                whole.len()
            ));
        }
        for (mine, theirs) in whole.iter_mut().zip(&done.scripts) {
            let theirs = theirs.counts().map_err(|problem| format!("machine {}: a script {problem}", stream.name))?;
            mine.merge(&theirs);
        }
    }
    Ok(whole.iter().map(event::script).collect())
}

/// What the engines used, and what speaks against them.
fn client(reports: &Reports<'_>) -> Value {
    let sum = |of: fn(&Done) -> f64| reports.iter().map(|(_, done)| of(done)).sum::<f64>();
    let (user, system) = (sum(|done| done.client.cpu_user_s), sum(|done| done.client.cpu_system_s));
    let transactions = sum(|done| done.measure.as_ref().map_or(0.0, |phase| phase.transactions.0 as f64));
    let busiest = reports.iter().map(|(_, done)| done.client.busiest_thread_share).fold(0.0, f64::max);
    let warnings = reports.iter().flat_map(|(stream, done)| {
        done.client
            .warnings
            .iter()
            .map(|warning| json!({ "kind": warning.kind, "message": format!("{}: {}", stream.name, warning.message) }))
    });
    json!({
        "cpu_user_s": user,
        "cpu_system_s": system,
        "busiest_thread_share": busiest,
        "cpu_per_transaction_us": (transactions > 0.0).then(|| (user + system) * 1e6 / transactions),
        "warnings": warnings.collect::<Vec<_>>(),
    })
}

/// A machine's share. Of a lost one the seconds tell, and what only its last event would have told is null.
fn machine(stream: &Stream) -> Value {
    let counted = stream.counted(Phase::Measure);
    let done = stream.done.as_deref();
    let measure = done.and_then(|done| done.measure.as_ref());
    let lost = stream.state == State::Lost;
    let tps_so_far = (lost && counted.seconds > 0.0).then(|| counted.transactions as f64 / counted.seconds);
    json!({
        "machine": stream.name,
        "clients": stream.clients(),
        "transactions": counted.transactions,
        "tps": measure.map(|measure| measure.tps).or(tps_so_far),
        "cpu_user_s": done.map(|done| done.client.cpu_user_s),
        "cpu_system_s": done.map(|done| done.client.cpu_system_s),
        "busiest_thread_share": done.map(|done| done.client.busiest_thread_share),
        "lag_p99_us": measure.and_then(Summary::lag_p99),
        "began_at": stream.began.and_then(|began| began.at),
        "status": done.map(|done| done.status),
    })
}
