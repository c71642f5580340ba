//! Seconds of the whole run, added up from the threads' own.

use std::collections::BTreeMap;

use super::{Tick, seconds};
use crate::ledger::Tally;
use crate::ledger::tasks::Task;
use crate::schedule::Stretch;
use ground::clock::Phase;

/// Adds up the threads' seconds; a second is complete when every running thread has passed it.
pub struct Ticks {
    open: BTreeMap<(Phase, u32), Tick>,
    /// For each thread the last stretch it has handed over; `None` when it has finished.
    passed: Vec<Option<(Phase, u32)>>,
    /// Threads that have not finished.
    pub running: usize,
}

impl Ticks {
    /// Of so many threads.
    pub fn new(jobs: usize) -> Self {
        Self { open: BTreeMap::new(), passed: vec![Some((Phase::Warmup, 0)); jobs], running: jobs }
    }

    /// A thread has handed over a stretch.
    pub fn add(&mut self, worker: usize, stretch: Stretch, tally: &Tally) {
        let key = (stretch.phase, stretch.second);
        let tick = self.open.entry(key).or_insert_with(|| Tick {
            phase: stretch.phase,
            second: stretch.second,
            seconds: 0.0,
            tally: Tally::default(),
        });
        tick.seconds = tick.seconds.max(seconds(stretch.ends - stretch.begins));
        tick.tally.merge(tally);
        // One past the stretch, so that it counts as complete.
        self.passed[worker] = Some((stretch.phase, stretch.second + 1));
    }

    /// A thread has finished.
    pub fn finish(&mut self, worker: usize) {
        self.passed[worker] = None;
        self.running -= 1;
    }

    /// The seconds that have become complete, in their order.
    pub fn complete(&mut self) -> Vec<Tick> {
        let frontier = self.passed.iter().flatten().min().copied();
        let open = std::mem::take(&mut self.open);
        let (complete, open) = open.into_iter().partition(|(key, _)| frontier.is_none_or(|frontier| *key < frontier));
        self.open = open;
        let complete: BTreeMap<_, Tick> = complete;
        complete.into_values().map(in_order).collect()
    }
}

/// Tasks of several threads in the order in which they ended.
fn in_order(mut tick: Tick) -> Tick {
    if let Some(pooled) = &mut tick.tally.pooled {
        pooled.tasks.sort_by_key(Task::ended);
    }
    tick
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(phase: Phase, second: u32) -> Stretch {
        Stretch { phase, second, begins: 0, ends: 1_000_000_000 }
    }

    #[test]
    fn a_second_is_complete_when_every_thread_has_passed_it() {
        let mut ticks = Ticks::new(2);
        let mut tally = Tally::default();
        tally.commit(1000);
        ticks.add(0, stretch(Phase::Measure, 0), &tally);
        ticks.add(0, stretch(Phase::Measure, 1), &tally);
        assert!(ticks.complete().is_empty());
        ticks.add(1, stretch(Phase::Measure, 0), &tally);
        let complete = ticks.complete();
        assert_eq!(complete.len(), 1);
        assert_eq!(complete[0].tally.counts.transactions(), 2);
        ticks.finish(1);
        assert_eq!(ticks.complete().len(), 1);
    }
}
