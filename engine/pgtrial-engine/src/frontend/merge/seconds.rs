//! Seconds of the whole run, added up from the machines' own as they come: of each second that is not yet complete there
//! is one sum, however many machines there are, and where one machine is far behind sums are kept packed.

use std::collections::BTreeMap;

use super::said::{Fractions, PhaseBegins, Second};
use super::stream::{FailedTask, Place};
use crate::event::Kind;
use drive::Tick;
use drive::ledger::Tally;
use ground::clock::Phase;
use latency::{Decoder, Latencies};

/// While more seconds than this are open those that are added to are packed: some kilobytes each.
const UNPACKED: usize = 32;

/// What has become complete.
pub enum Complete {
    /// A phase has begun on all machines, the first one on the first of them `at` this time of its clock.
    Phase { phase: Phase, since: f64, at: Option<f64> },
    /// A second is over, so long after the load's beginning; with the tasks that failed in it.
    Second { tick: Box<Tick>, since: f64, tasks: Vec<FailedTask> },
}

/// Adds up.
#[derive(Default)]
pub struct Seconds {
    phases: BTreeMap<Place, (f64, Option<f64>)>,
    open: BTreeMap<Place, Open>,
    decoder: Decoder,
    /// What kind of load it is.
    pub kind: Kind,
}

impl Seconds {
    /// A phase begins on a machine, `since` seconds after its load did.
    pub fn begin(&mut self, begins: &PhaseBegins, since: f64) {
        let (last, first) = self.phases.entry(Place::beginning(begins.phase)).or_insert((since, begins.at));
        *last = last.max(since);
        *first = [*first, begins.at].into_iter().flatten().reduce(f64::min);
    }

    /// A machine's second, that is over `since` seconds after its load began. The error is the rest of a sentence.
    pub fn add(
        &mut self,
        machine: usize,
        second: &Second<'_>,
        since: f64,
        failed: Vec<FailedTask>,
    ) -> Result<(), String> {
        self.kind.counted |= second.queries.is_some();
        self.kind.pooled |= second.queue_histogram.is_some();
        self.kind.paced |= second.lag_histogram.is_some() && second.queue_histogram.is_none();
        let many = self.open.len() > UNPACKED;
        let open = self.open.entry(second.place()).or_insert_with(|| Open::new(second));
        open.unpack();
        open.since = open.since.max(since);
        open.tick.seconds = open.tick.seconds.max(second.seconds);
        open.tasks.extend(failed);
        let fractions = second.add_to(&mut open.tick.tally, &mut self.decoder)?;
        open.fractions.insert(machine, fractions);
        if many {
            open.pack();
        }
        Ok(())
    }

    /// What is before this place, in its order, is complete; all that there is if there is none.
    pub fn complete(&mut self, frontier: Option<Place>) -> Vec<Complete> {
        let mut complete = Vec::new();
        loop {
            let is_due = |place: &Place| frontier.is_none_or(|frontier| *place < frontier);
            let phase = self.phases.first_key_value().map(|(place, _)| *place).filter(is_due);
            let second = self.open.first_key_value().map(|(place, _)| *place).filter(is_due);
            if phase.is_some_and(|phase| second.is_none_or(|second| phase < second)) {
                let begun = self.phases.pop_first();
                complete.extend(begun.map(|(place, (since, at))| Complete::Phase { phase: place.phase, since, at }));
            } else if second.is_some() {
                complete.extend(self.open.pop_first().map(|(_, open)| open.whole()));
            } else {
                return complete;
            }
        }
    }
}

/// A second that is not yet complete.
struct Open {
    tick: Box<Tick>,
    since: f64,
    tasks: Vec<FailedTask>,
    /// The histograms, if they are not in the tick.
    packed: Vec<Vec<u8>>,
    /// What machines said in fractions: added up in the order of the machines at the end, so that the same comes out
    /// however they took turns.
    fractions: BTreeMap<usize, Fractions>,
}

impl Open {
    fn new(second: &Second<'_>) -> Self {
        let tick = Tick { phase: second.phase, second: second.second, seconds: 0.0, tally: Tally::default() };
        let (tasks, packed, fractions) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self { tick: Box::new(tick), since: 0.0, tasks, packed, fractions }
    }

    fn pack(&mut self) {
        self.packed = histograms(&mut self.tick.tally).map(Latencies::pack).collect();
    }

    fn unpack(&mut self) {
        let packed = std::mem::take(&mut self.packed);
        histograms(&mut self.tick.tally).zip(packed).for_each(|(histogram, packed)| histogram.unpack(&packed));
    }

    fn whole(mut self) -> Complete {
        self.unpack();
        let tally = &mut self.tick.tally;
        for Fractions { latency, timeouts } in self.fractions.values() {
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
