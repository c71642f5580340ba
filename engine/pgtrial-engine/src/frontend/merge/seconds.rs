//! Adds up the events of all machines for each second of the run. A second is open until every machine has reported it.
//! An open second is stored as one sum over its machines, so that memory does not grow with the number of machines. If
//! many seconds are open because one machine is far behind, their histograms are compressed.

use std::collections::BTreeMap;

use events::{EventError, FloatSums, Measurement, PhaseStart, TickRecord};

use super::stream::{FailedTask, Position};
use latency::{Decoder, Latencies, Packed};

/// The number of open seconds and phases above which histograms are compressed whenever a machine's second has been
/// added. A compressed second takes a few kilobytes.
const UNPACKED: usize = 32;

/// One second of the run, or the beginning of a phase, merged over the machines that have reported it so far.
#[derive(Default)]
pub struct Merged {
    /// The latest time at which a machine reported this second or phase. Each machine's time is in seconds since the
    /// load began on this machine.
    pub since: f64,
    /// The earliest time at which the phase began on a machine, in Unix seconds. `None` for a second.
    pub at: Option<f64>,
    /// The greatest length that this second had on any machine, in seconds.
    pub seconds: f64,
    pub sum: Measurement,
    pub tasks: Vec<FailedTask>,
    /// The compressed histograms of `sum`. If it is empty, `sum` itself contains the histograms.
    packed: Vec<Packed>,
    /// For each machine, the sums of its floating-point numbers. They are added up when the second is complete, in the
    /// order of the machines, so that rounding does not depend on which machine reports first.
    float_sums: BTreeMap<usize, FloatSums>,
}

/// The open phases and seconds, which at least one machine has not reported yet.
#[derive(Default)]
pub struct Seconds {
    open: BTreeMap<Position, Merged>,
    decoder: Decoder,
}

impl Seconds {
    /// Records that a phase began on a machine, `since` seconds after the load began there.
    pub fn begin_phase(&mut self, start: &PhaseStart, since: f64) {
        let merged = self.open.entry(Position::beginning(start.phase)).or_default();
        merged.since = merged.since.max(since);
        merged.at = [merged.at, start.at].into_iter().flatten().reduce(f64::min);
    }

    /// Adds one second of a machine. The second ended `since` seconds after the load began on this machine. `failed`
    /// are the tasks (transactions of applications) that failed in this second.
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

    /// Removes and returns the first second or phase before `frontier`, the first position that some running machine
    /// has not reported yet. If `frontier` is `None`, because no machine is running any more, every second is complete.
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
