//! The calendar of a simulated run: to which phase and second a time belongs. It is computed from the options of the run
//! alone, so that the engine's own schedule can be compared with it.

use std::time::Duration;

use crate::slices::Slices;
use ground::clock::{Nanos, Phase, SECOND, nanos};

/// A second of a phase or, if several engines take turns in slices of time, a round of slices. The number counts from 0
/// in each phase.
pub type PeriodName = (Phase, u32);

/// The times at which the phases and periods of a run begin.
#[derive(Debug, Clone, Copy)]
pub struct Calendar {
    pub start: Nanos,
    /// The time at which the measured part begins.
    pub measure: Nanos,
    /// The time at which the measured part ends; `Nanos::MAX` if no time limits it.
    pub end: Nanos,
    slices: Option<Slices>,
}

impl Calendar {
    /// Makes the calendar of a load that starts at `start` and whose measured part has the length `time`.
    pub fn new(start: Nanos, warmup: Duration, time: Option<Duration>, slices: Option<Slices>) -> Self {
        let measure = start + nanos(warmup);
        Self { start, measure, end: time.map_or(Nanos::MAX, |time| measure + nanos(time)), slices }
    }

    /// Returns the period to which `at` belongs.
    pub fn period(&self, at: Nanos) -> PeriodName {
        if let Some(slices) = &self.slices {
            return self.round(slices, at);
        }
        let (phase, begins) = match at {
            at if at < self.measure => (Phase::Warmup, self.start),
            at if at < self.end => (Phase::Measure, self.measure),
            _ => (Phase::Drain, self.end),
        };
        (phase, (at.saturating_sub(begins) / SECOND) as u32)
    }

    fn round(&self, slices: &Slices, at: Nanos) -> PeriodName {
        let (round, warmup) = (self.round_number(slices, at) as u32, self.rounds(slices, self.measure) as u32);
        if round < warmup { (Phase::Warmup, round) } else { (Phase::Measure, round - warmup) }
    }

    /// Returns the number of the round of slices to which `at` belongs. A round is counted from the beginning of this
    /// engine's slice to the beginning of its next slice, and the last round until all transactions have ended.
    pub fn round_number(&self, slices: &Slices, at: Nanos) -> u64 {
        let has_begun = |round: &u64| at >= self.start + slices.slice(*round).begins;
        (1..self.rounds(slices, self.end)).rev().find(has_begun).unwrap_or(0)
    }

    /// Returns the total length of the slices of other engines between the start of the load and the slice of this engine
    /// to whose round `at` belongs.
    pub fn pause(&self, at: Nanos) -> Nanos {
        let Some(slices) = &self.slices else { return 0 };
        let round = self.round_number(slices, at);
        slices.slice(round).begins - round * slices.length
    }

    fn rounds(&self, slices: &Slices, until: Nanos) -> u64 {
        (until - self.start) / slices.round()
    }

    /// Returns the length in nanoseconds that a period has if the run lasts to its end. Returns `None` for the last
    /// round of slices, which lasts until all transactions have ended.
    pub fn length(&self, (phase, number): PeriodName) -> Option<Nanos> {
        let Some(slices) = &self.slices else {
            let (begins, ends) = match phase {
                Phase::Warmup => (self.start, self.measure),
                Phase::Measure => (self.measure, self.end),
                Phase::Drain => (self.end, Nanos::MAX),
            };
            return Some(SECOND.min((ends - begins).saturating_sub(Nanos::from(number) * SECOND)));
        };
        let warmup = self.rounds(slices, self.measure);
        let round = Nanos::from(number) + if phase == Phase::Warmup { 0 } else { warmup };
        let begins = if round == 0 { 0 } else { slices.slice(round).begins };
        (round + 1 < self.rounds(slices, self.end)).then(|| slices.slice(round + 1).begins - begins)
    }
}
