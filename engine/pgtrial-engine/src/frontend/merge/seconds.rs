//! The seconds of the whole run. Each second that some machine has not yet reported has one sum, however many machines
//! there are. If many seconds are open, because one machine is far behind, their histograms are packed.

use std::collections::BTreeMap;

use events::{PhaseStart, moments_of};

use super::position::Position;
use super::stream::FailedTask;
use crate::event::Sections;
use drive::Tick;
use drive::ledger::{Counts, Tally};
use ground::clock::Phase;
use latency::{Decoder, Latencies, Moments};
use workload::statistics::Queries;

/// If more seconds than this are open, the histograms of a second are packed after each addition: some kilobytes each.
const UNPACKED: usize = 32;

/// A phase has begun, or a second is over, on all machines. `since` is in seconds from the beginning of the load.
pub enum Complete {
    /// `at` is the beginning of the load by the machines' clocks, the earliest, in the first phase only.
    Phase {
        phase: Phase,
        since: f64,
        at: Option<f64>,
    },
    Second {
        tick: Box<Tick>,
        since: f64,
        tasks: Vec<FailedTask>,
    },
}

/// The phases and seconds that some machine has not yet reported.
#[derive(Default)]
pub struct Seconds {
    /// The latest beginning since the load began, and the earliest `at`.
    phases: BTreeMap<Position, (f64, Option<f64>)>,
    open: BTreeMap<Position, OpenSecond>,
    decoder: Decoder,
    /// Which keys the machines' seconds have.
    pub sections: Sections,
}

impl Seconds {
    /// A phase begins on a machine, `since` seconds after its load began.
    pub fn begin_phase(&mut self, start: &PhaseStart, since: f64) {
        let (latest, earliest) = self.phases.entry(Position::beginning(start.phase)).or_insert((since, start.at));
        *latest = latest.max(since);
        *earliest = [*earliest, start.at].into_iter().flatten().reduce(f64::min);
    }

    /// Adds a machine's second, which ended `since` seconds after its load began. The error continues a sentence.
    pub fn add(
        &mut self,
        machine: usize,
        tick: &events::Tick,
        since: f64,
        failed: Vec<FailedTask>,
    ) -> Result<(), String> {
        let pools = tick.times.queue_histogram.is_some();
        self.sections.queries |= tick.counts.queries.is_some();
        self.sections.pools |= pools;
        self.sections.pace |= tick.times.lag_histogram.is_some() && !pools;
        let many = self.open.len() > UNPACKED;
        let position = Position::of_second(tick.phase, tick.second);
        let open = self.open.entry(position).or_insert_with(|| OpenSecond::new(tick));
        open.unpack();
        open.since = open.since.max(since);
        open.tick.seconds = open.tick.seconds.max(tick.seconds);
        open.tasks.extend(failed);
        let sums = add_tick(tick, &mut open.tick.tally, &mut self.decoder)?;
        open.float_sums.insert(machine, sums);
        if many {
            open.pack();
        }
        Ok(())
    }

    /// Removes the next phase or second before `frontier`; without a frontier all are complete.
    pub fn next_complete(&mut self, frontier: Option<Position>) -> Option<Complete> {
        let is_complete = |position: &Position| frontier.is_none_or(|frontier| *position < frontier);
        let phase = self.phases.first_key_value().map(|(position, _)| *position).filter(is_complete);
        let second = self.open.first_key_value().map(|(position, _)| *position).filter(is_complete);
        if second.is_some_and(|second| phase.is_none_or(|phase| second < phase)) {
            return self.open.pop_first().map(|(_, open)| open.complete());
        }
        let (Position { phase, .. }, (since, at)) = phase.and_then(|_| self.phases.pop_first())?;
        Some(Complete::Phase { phase, since, at })
    }
}

/// A second that some machine has not yet reported.
struct OpenSecond {
    tick: Box<Tick>,
    since: f64,
    tasks: Vec<FailedTask>,
    /// The histograms, if they are not in the tick.
    packed: Vec<latency::Packed>,
    /// Added in the order of the machines when the second is complete, because the last digits of a sum of fractions
    /// depend on the order.
    float_sums: BTreeMap<usize, FloatSums>,
}

/// The sums of one machine's second that are not whole numbers.
struct FloatSums {
    latency: Moments,
    timeouts: Moments,
}

impl OpenSecond {
    fn new(tick: &events::Tick) -> Self {
        let tick = Tick { phase: tick.phase, second: tick.second, seconds: 0.0, tally: Tally::default() };
        let (tasks, packed, float_sums) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self { tick: Box::new(tick), since: 0.0, tasks, packed, float_sums }
    }

    fn pack(&mut self) {
        self.packed = histograms(&mut self.tick.tally).map(Latencies::pack).collect();
    }

    fn unpack(&mut self) {
        let packed = std::mem::take(&mut self.packed);
        histograms(&mut self.tick.tally).zip(packed).for_each(|(histogram, packed)| histogram.unpack(packed));
    }

    fn complete(mut self) -> Complete {
        self.unpack();
        let tally = &mut self.tick.tally;
        for FloatSums { latency, timeouts } in self.float_sums.values() {
            tally.counts.moments.merge(latency);
            if let Some(pooled) = &mut tally.pooled {
                pooled.timeouts.merge(timeouts);
            }
        }
        Complete::Second { tick: self.tick, since: self.since, tasks: self.tasks }
    }
}

fn histograms(tally: &mut Tally) -> impl Iterator<Item = &mut Latencies> {
    let pace = tally.pace.as_deref_mut().map(|pace| [&mut pace.service, &mut pace.lags]);
    let pooled = tally.pooled.as_deref_mut().map(|pooled| [&mut pooled.service, &mut pooled.queue]);
    std::iter::once(&mut tally.latencies).chain(pace.into_iter().flatten()).chain(pooled.into_iter().flatten())
}

/// Adds counts and histograms of a machine's second to `tally`, and returns the other sums. The error continues a sentence
/// that begins with the machine and the line.
fn add_tick(tick: &events::Tick, tally: &mut Tally, decoder: &mut Decoder) -> Result<FloatSums, String> {
    let events::Tick { counts, times, .. } = tick;
    let mut add = |encoded: &str, to: &mut Latencies, key: &str| {
        decoder.add(encoded.as_bytes(), to).map_err(|problem| format!("cannot be added: its {key} {problem}"))
    };
    let added = add(&times.histogram, &mut tally.latencies, "histogram")?;
    if added != counts.transactions.0 {
        return Err(format!("has {} transactions, but {added} in its histogram", counts.transactions.0));
    }
    let mut service = None;
    if let Some(queue) = &times.queue_histogram {
        let pooled = tally.pooled.get_or_insert_default();
        add(queue, &mut pooled.queue, "queue_histogram")?;
        service = Some(&mut pooled.service);
    } else if let Some(lags) = &times.lag_histogram {
        let pace = tally.pace.get_or_insert_default();
        add(lags, &mut pace.lags, "lag_histogram")?;
        service = Some(&mut pace.service);
    }
    if let (Some(encoded), Some(service)) = (&times.service_histogram, service) {
        add(encoded, service, "service_histogram")?;
    }
    tally.counts.merge(&ledger_counts(counts, Moments::default()));
    let latency = times.latency_us.map(|latency| latency.moments(counts.transactions));
    let timeouts = times.pool_timeouts.map_or(Ok(Moments::default()), |timeouts| {
        moments_of(timeouts.count, timeouts.waited_us.map(|waited| waited.moments(timeouts.count)))
    })?;
    Ok(FloatSums { latency: moments_of(counts.transactions, latency)?, timeouts })
}

/// An event's counts as the ledger has them; `moments` are those of the latencies.
pub fn ledger_counts(counts: &events::Counts, moments: Moments) -> Counts {
    let queries = counts.queries.unwrap_or_default();
    Counts {
        moments,
        failures: counts.failures.iter().map(|(kind, count)| (kind.clone(), count.0)).collect(),
        skipped: counts.skipped.0,
        late: counts.late.0,
        retried: counts.retried.0,
        retries: counts.retries.0,
        queries: Queries {
            reads: queries.reads.0,
            writes: queries.writes.0,
            others: queries.others.0,
            errors: queries.errors.0,
            reconnects: queries.reconnects.0,
        },
        ..Counts::default()
    }
}
