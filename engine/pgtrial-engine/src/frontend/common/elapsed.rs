//! Counts the elapsed time of the measured part from the ticks of a run (one tick for each second). Reports use it to
//! find out when an interval is complete.

use std::ops::RangeInclusive;

use drive::Tick;
use drive::plan::Plan;
use ground::clock::{Nanos, SECOND, seconds};

/// The time since the beginning of the measured part. If engines take turns in slices of time, the slices of the other
/// engines are included.
pub struct Elapsed {
    /// The length of a round, in which each engine has one slice. `None` if engines do not take turns.
    round: Option<Nanos>,
    time: Nanos,
}

impl Elapsed {
    /// Makes a counter that is 0 at the start of the measured part.
    pub fn new(plan: &Plan) -> Self {
        Self { round: plan.slices.map(|slices| slices.round()), time: 0 }
    }

    /// Adds the time of one tick, which is a second or, if engines take turns, a round in which each engine has one
    /// slice of time. Returns the numbers of the seconds that this tick completes, counted from 1. An incomplete second
    /// at the end of a run is not counted.
    pub fn add(&mut self, tick: &Tick) -> RangeInclusive<u64> {
        let before = self.time / SECOND;
        match self.round {
            Some(round) => self.time = round.saturating_mul(Nanos::from(tick.second) + 1),
            None if tick.seconds >= 1.0 => self.time += SECOND,
            None => {}
        }
        before + 1..=self.time / SECOND
    }

    /// Returns the elapsed time in seconds.
    pub fn seconds(&self) -> f64 {
        seconds(self.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drive::statistics::LoadStatistics;
    use ground::clock::Phase;

    fn ended(round: Option<Nanos>, lengths: &[f64]) -> Vec<Vec<u64>> {
        let mut elapsed = Elapsed { round, time: 0 };
        let ticks = lengths.iter().zip(0..).map(|(length, second)| Tick {
            phase: Phase::Measure,
            second,
            seconds: *length,
            slice: None,
            statistics: LoadStatistics::default(),
        });
        ticks.map(|tick| elapsed.add(&tick).collect()).collect()
    }

    #[test]
    fn a_second_ends_with_its_tick_and_a_rest_ends_none() {
        assert_eq!(ended(None, &[1.0, 1.0, 0.4]), [vec![1], vec![2], vec![]]);
    }

    #[test]
    fn a_round_of_slices_ends_as_many_seconds_as_it_completes() {
        assert_eq!(ended(Some(SECOND / 5 * 2), &[0.1; 5]), [vec![], vec![], vec![1], vec![], vec![2]]);
        assert_eq!(ended(Some(SECOND * 5 / 2), &[3.0, 2.0]), [vec![1, 2], vec![3, 4, 5]]);
    }
}
