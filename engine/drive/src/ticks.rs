//! The statistics of each second of a run, merged from the statistics of its threads.

use std::collections::BTreeMap;

use crate::outcome::Tick;
use crate::schedule::Period;
use crate::statistics::LoadStatistics;
use ground::clock::{Phase, seconds};

/// Merges the statistics of the threads for each second. A second is complete when every running thread has reported
/// it.
pub struct Ticks {
    open: BTreeMap<(Phase, u32), Tick>,
    /// The period (its phase and number) that each thread will report next; `None` for a thread that has finished.
    passed: Vec<Option<(Phase, u32)>>,
    /// The number of threads that have not finished.
    pub running: usize,
}

impl Ticks {
    /// Makes an empty sum for this number of threads.
    pub fn new(jobs: usize) -> Self {
        Self { open: BTreeMap::new(), passed: vec![Some((Phase::Warmup, 0)); jobs], running: jobs }
    }

    /// Adds the statistics of a thread for one period.
    pub fn add(&mut self, thread: usize, period: Period, statistics: &LoadStatistics) {
        let key = (period.phase, period.second);
        let tick = self.open.entry(key).or_insert_with(|| Tick {
            phase: period.phase,
            second: period.second,
            seconds: 0.0,
            slice: period.slice,
            statistics: LoadStatistics::default(),
        });
        tick.seconds = tick.seconds.max(seconds(period.ends - period.begins));
        tick.statistics.merge(statistics);
        self.passed[thread] = Some((period.phase, period.second + 1));
    }

    /// Records that a thread has finished and will report no more periods.
    pub fn finish(&mut self, thread: usize) {
        self.passed[thread] = None;
        self.running -= 1;
    }

    /// Stops waiting for the threads that have not finished, and returns their numbers.
    pub fn give_up(&mut self) -> Vec<usize> {
        let left: Vec<_> = (0..self.passed.len()).filter(|thread| self.passed[*thread].is_some()).collect();
        left.iter().for_each(|thread| self.finish(*thread));
        left
    }

    /// Returns the seconds that have become complete, in their order.
    pub fn complete(&mut self) -> Vec<Tick> {
        let frontier = self.passed.iter().flatten().min().copied();
        let mut complete = Vec::new();
        while let Some(first) = self.open.first_entry() {
            if frontier.is_some_and(|frontier| *first.key() >= frontier) {
                break;
            }
            let mut tick = first.remove();
            tick.statistics.of_mode.complete();
            complete.push(tick);
        }
        complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(phase: Phase, second: u32) -> Period {
        Period { phase, second, begins: 0, ends: 1_000_000_000, slice: None }
    }

    #[test]
    fn a_second_is_complete_when_every_thread_has_passed_it() {
        let mut ticks = Ticks::new(2);
        let mut statistics = LoadStatistics::default();
        statistics.commit(1000);
        ticks.add(0, period(Phase::Measure, 0), &statistics);
        ticks.add(0, period(Phase::Measure, 1), &statistics);
        assert!(ticks.complete().is_empty());
        ticks.add(1, period(Phase::Measure, 0), &statistics);
        let complete = ticks.complete();
        assert_eq!(complete.len(), 1);
        assert_eq!(complete[0].statistics.counts.transactions(), 2);
        ticks.finish(1);
        assert_eq!(ticks.complete().len(), 1);
    }
}
