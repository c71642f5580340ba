//! The phases of a run: warm-up, measured part and drain, which is the time until the last transactions have ended.
//! Each phase is divided into periods that are counted separately: seconds or, if several engines take turns in slices
//! of time, rounds of slices.

use std::time::Duration;

use crate::slices::{Slice, Slices};
use ground::clock::{Nanos, Phase, SECOND, nanos};

/// The times at which the phases begin, in nanoseconds of the run's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    pub start: Nanos,
    pub measure: Nanos,
    /// The end of the measured part; `Nanos::MAX` if no time limits it.
    pub end: Nanos,
    /// The slices of time, if engines take turns. The lengths of the warm-up and of the measured part are then
    /// multiples of a round.
    pub slices: Option<Slices>,
}

impl Schedule {
    /// Makes the schedule of a run that starts at `start`.
    pub fn new(start: Nanos, warmup: Duration, measured: Option<Duration>, slices: Option<Slices>) -> Self {
        let measure = start + nanos(warmup);
        Self { start, measure, end: measured.map_or(Nanos::MAX, |length| measure + nanos(length)), slices }
    }

    /// Makes the load end earlier, at `end` but not before the end of the warm-up, and shortens the current period
    /// `period` accordingly. Returns false and changes nothing if the load already ends by `end`, or if several
    /// engines take turns in slices of time, since the other engines rely on the times of the slices.
    pub fn cut(&mut self, end: Nanos, period: &mut Period) -> bool {
        let end = end.max(self.measure);
        if end >= self.end || self.slices.is_some() {
            return false;
        }
        self.end = end;
        if period.phase == Phase::Measure {
            period.ends = period.ends.min(end).max(period.begins);
        }
        true
    }

    /// Returns the first period of the run.
    pub fn first(&self) -> Period {
        if let Some(slices) = &self.slices {
            return self.round(slices, self.start, slices.slice(0));
        }
        let phase = if self.measure > self.start { Phase::Warmup } else { Phase::Measure };
        self.period(phase, self.start, 0)
    }

    /// Returns the period that follows `period`.
    pub fn after(&self, period: &Period) -> Period {
        if let (Some(slices), Some(slice)) = (&self.slices, period.slice) {
            return self.round(slices, period.ends, slices.slice(slice.round + 1));
        }
        match period.phase {
            Phase::Warmup if period.ends >= self.measure => self.period(Phase::Measure, self.measure, 0),
            Phase::Measure if period.ends >= self.end => self.period(Phase::Drain, period.ends, 0),
            phase => self.period(phase, period.ends, period.second + 1),
        }
    }

    fn period(&self, phase: Phase, begins: Nanos, second: u32) -> Period {
        let limit = match phase {
            Phase::Warmup => self.measure,
            Phase::Measure => self.end,
            Phase::Drain => Nanos::MAX,
        };
        Period { phase, second, begins, ends: limit.min(begins + SECOND), slice: None }
    }

    /// Returns the period that counts a round of slices. It lasts until this engine's next slice begins, or after the
    /// last slice until all transactions have ended. Transactions that overrun a slice are thus counted in its round.
    fn round(&self, slices: &Slices, begins: Nanos, slice: Slice) -> Period {
        let next = self.start.saturating_add(slices.slice(slice.round + 1).begins);
        let ends = if next < self.end { next } else { Nanos::MAX };
        let before = (self.measure - self.start) / slices.round();
        let (phase, first) = if slice.round < before { (Phase::Warmup, 0) } else { (Phase::Measure, before) };
        Period { phase, second: (slice.round - first) as u32, begins, ends, slice: Some(slice) }
    }

    /// Returns the total length of the slices of other engines from the start of the load until this engine's slice in
    /// this period.
    pub fn pause(&self, period: &Period) -> Nanos {
        match (&self.slices, period.slice) {
            (Some(slices), Some(slice)) => slice.begins - slice.round * slices.length,
            _ => 0,
        }
    }

    /// Returns the time from which on no transaction may begin in this period: the end of the load or, if several
    /// engines take turns in slices of time, the end of this engine's slice.
    pub fn start_deadline(&self, period: &Period) -> Nanos {
        period.slice.map_or(self.end, |slice| self.start.saturating_add(slice.ends))
    }
}

/// A period whose transactions are counted together: one second of a phase (the last one may be shorter) or, if several
/// engines take turns in slices of time, one round of slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    pub phase: Phase,
    /// The number of the period in its phase, counted from 0.
    pub second: u32,
    pub begins: Nanos,
    pub ends: Nanos,
    pub slice: Option<Slice>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn periods(schedule: Schedule, count: usize) -> Vec<(Phase, u32, Nanos)> {
        let mut period = schedule.first();
        (0..count)
            .map(|_| {
                let current = period;
                period = schedule.after(&current);
                (current.phase, current.second, current.ends - current.begins)
            })
            .collect()
    }

    #[test]
    fn phases_are_cut_into_seconds_and_a_rest() {
        let schedule = Schedule::new(5, Duration::from_millis(1500), Some(Duration::from_secs(2)), None);
        let expected = [
            (Phase::Warmup, 0, SECOND),
            (Phase::Warmup, 1, SECOND / 2),
            (Phase::Measure, 0, SECOND),
            (Phase::Measure, 1, SECOND),
            (Phase::Drain, 0, SECOND),
            (Phase::Drain, 1, SECOND),
        ];
        assert_eq!(periods(schedule, 6), expected);
    }

    #[test]
    fn a_load_can_be_cut_short() {
        let mut schedule = Schedule::new(5, Duration::from_secs(1), Some(Duration::from_secs(9)), None);
        let warmup = schedule.first();
        let mut period = schedule.after(&warmup);
        let end = schedule.measure + SECOND / 4;
        assert!(schedule.cut(end, &mut period));
        assert!(!schedule.cut(end + 1, &mut period));
        assert_eq!((schedule.end, period.ends, schedule.start_deadline(&period)), (end, end, end));
        assert_eq!(schedule.after(&period).phase, Phase::Drain);
        let mut first = warmup;
        assert!(schedule.cut(7, &mut first));
        assert_eq!((schedule.end, first), (schedule.measure, warmup));
        let slices = Slices { length: SECOND, index: 0, of: 2, seed: 0 };
        let mut sliced = Schedule::new(5, Duration::ZERO, Some(Duration::from_secs(4)), Some(slices));
        let mut period = sliced.first();
        assert!(!sliced.cut(7, &mut period));
    }

    #[test]
    fn without_limit_and_warm_up_everything_is_measured() {
        let schedule = Schedule::new(0, Duration::ZERO, None, None);
        assert!(periods(schedule, 5).iter().all(|(phase, _, length)| *phase == Phase::Measure && *length == SECOND));
    }

    #[test]
    fn with_slices_a_period_lasts_until_the_next_own_slice_and_the_last_one_until_the_end_of_its_transactions() {
        let slices = Slices { length: SECOND, index: 0, of: 2, seed: 0 };
        let (warmup, measured) = (Duration::from_secs(2), Duration::from_secs(4));
        let schedule = Schedule::new(7, warmup, Some(measured), Some(slices));
        let mut period = schedule.first();
        let mut begins = 7;
        for (round, (phase, second)) in
            [(Phase::Warmup, 0), (Phase::Measure, 0), (Phase::Measure, 1)].into_iter().enumerate()
        {
            let (own, next) = (slices.slice(round as u64), slices.slice(round as u64 + 1));
            let ends = if round == 2 { Nanos::MAX } else { 7 + next.begins };
            assert_eq!(period, Period { phase, second, begins, ends, slice: Some(own) });
            assert_eq!(schedule.start_deadline(&period), 7 + own.ends);
            assert_eq!(schedule.pause(&period), own.begins - round as u64 * SECOND);
            (period, begins) = (schedule.after(&period), ends);
        }
    }
}
