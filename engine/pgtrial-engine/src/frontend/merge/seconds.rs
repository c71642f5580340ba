//! The sums over all machines for each phase and second. A second is open until every machine has reported it. Memory
//! does not grow with the number of machines, since each open second has a single sum. If many seconds are open,
//! because one machine is far behind, their histograms are compressed.

use std::collections::BTreeMap;

use events::{EventError, FloatSums, Measurement, PhaseStart, TickRecord};

use super::stream::{FailedTask, Position};
use latency::{Decoder, Latencies, Packed};

/// The number of open seconds and phases above which histograms are compressed after each addition, to some kilobytes
/// for each second.
const UNPACKED: usize = 32;

/// The beginning of a phase or a second, merged over the machines that have reported it.
#[derive(Default)]
pub struct Merged {
    /// The latest time, in seconds since the load began.
    pub since: f64,
    /// The earliest `at` of a phase.
    pub at: Option<f64>,
    /// The longest length of a second.
    pub seconds: f64,
    pub sum: Measurement,
    pub tasks: Vec<FailedTask>,
    /// The histograms, if they are not in the sum.
    packed: Vec<Packed>,
    /// The sums of floating-point numbers by machine. They are added in the order of the machines, so that the result
    /// does not depend on which machine reports first.
    float_sums: BTreeMap<usize, FloatSums>,
}

/// The phases and seconds that some machine has not yet reported.
#[derive(Default)]
pub struct Seconds {
    open: BTreeMap<Position, Merged>,
    decoder: Decoder,
}

impl Seconds {
    /// Notes that a phase begins on a machine, `since` seconds after its load began.
    pub fn begin_phase(&mut self, start: &PhaseStart, since: f64) {
        let merged = self.open.entry(Position::beginning(start.phase)).or_default();
        merged.since = merged.since.max(since);
        merged.at = [merged.at, start.at].into_iter().flatten().reduce(f64::min);
    }

    /// Adds a machine's second, which ended `since` seconds after its load began.
    pub fn add(
        &mut self,
        machine: usize,
        tick: &TickRecord,
        since: f64,
        failed: Vec<FailedTask>,
    ) -> Result<(), EventError> {
        let is_crowded = self.open.len() > UNPACKED;
        let merged = self.open.entry(Position::of_second(tick.phase, tick.second)).or_default();
        merged.unpack();
        merged.since = merged.since.max(since);
        merged.seconds = merged.seconds.max(tick.seconds);
        merged.tasks.extend(failed);
        let float_sums = merged.sum.add_tick(tick, &mut self.decoder)?;
        merged.float_sums.insert(machine, float_sums);
        if is_crowded {
            merged.packed = merged.sum.histograms().map(Latencies::pack).collect();
        }
        Ok(())
    }

    /// Removes the first position before `frontier`; without a frontier any position.
    pub fn next_complete(&mut self, frontier: Option<Position>) -> Option<(Position, Merged)> {
        let first = self.open.first_entry()?;
        if frontier.is_some_and(|frontier| *first.key() >= frontier) {
            return None;
        }
        let (position, mut merged) = first.remove_entry();
        merged.unpack();
        merged.float_sums.values().for_each(|sums| merged.sum.add_float_sums(sums));
        Some((position, merged))
    }
}

impl Merged {
    fn unpack(&mut self) {
        let packed = std::mem::take(&mut self.packed);
        self.sum.histograms().zip(packed).for_each(|(histogram, packed)| histogram.unpack(packed));
    }
}
