//! Defects of counting that tests plant into the reports of a simulated thread, to show that the promises find them.

use std::time::Duration;

use super::scenario::{Kind, Scenario};
use crate::plan::{Limit, StagedPlan};
use crate::report::Report;
use crate::schedule::Period;
use crate::slices::Slices;
use crate::statistics::{LoadStatistics, ModeCounts};
use ground::clock::{MS, Nanos, Phase};
use latency::Latencies;

/// A defect of the way in which transactions are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// A transaction is counted in the second that follows.
    OneSecondLate,
    /// A transaction of the warm-up is counted in the measured part.
    WrongPhase,
    /// A response time is recorded as ten times as long.
    TenTimesTooLong,
    /// The response time of a client is recorded for another one.
    WrongClient,
    /// The time in which clients took part is too long by a slice.
    SliceTooMuch,
    /// The slices of other engines are subtracted twice from the scheduled start of a transaction.
    PauseTwice,
}

/// A defect that is planted into the first report of thread 0 that allows it.
pub struct Planted {
    defect: Defect,
    slices: Option<Slices>,
    /// The response time of the transaction that was taken out of a report and has to be counted with the next one.
    held: Option<Nanos>,
    is_done: bool,
}

impl Planted {
    pub fn new(defect: Defect, slices: Option<Slices>) -> Self {
        Self { defect, slices, held: None, is_done: false }
    }

    /// Falsifies a report, if it is one that allows the defect.
    pub fn falsify(&mut self, report: &mut Report) {
        let Report::Tick { thread: 0, period, statistics } = report else { return };
        self.is_done = self.is_done || self.plant(period, statistics).is_some();
    }

    /// Returns `None` if the defect is not planted yet.
    fn plant(&mut self, period: &Period, statistics: &mut LoadStatistics) -> Option<()> {
        match self.defect {
            Defect::OneSecondLate | Defect::WrongPhase => {
                let from = if self.defect == Defect::WrongPhase { Phase::Warmup } else { Phase::Measure };
                if let Some(latency) = self.held.take() {
                    statistics.commit(latency);
                    return Some(());
                }
                self.held = (period.phase == from).then(|| take_shortest(statistics))?;
                None
            }
            Defect::TenTimesTooLong => {
                let latency = take_shortest(statistics)?;
                statistics.commit(10 * latency);
                Some(())
            }
            Defect::WrongClient => {
                let ModeCounts::Clients(clients) = &mut statistics.of_mode else { return None };
                let (first, others) = clients.totals_mut().split_first_mut()?;
                let other = others.first_mut()?;
                let latency = (first.transactions > 1).then_some(first.longest_ns)?;
                (first.transactions, first.busy_ns) = (first.transactions - 1, first.busy_ns - latency);
                other.add(latency);
                Some(())
            }
            Defect::SliceTooMuch => {
                statistics.slice_time.as_mut()?.client_ns += self.slices?.length;
                Some(())
            }
            Defect::PauseTwice => {
                let (slice, slices) = (period.slice?, self.slices?);
                let pause = slice.begins - slice.round * slices.length;
                let latency = (pause > 0).then(|| take_shortest(statistics))??;
                statistics.commit(latency + pause);
                Some(())
            }
        }
    }
}

/// Takes the transaction with the shortest response time out of the statistics of a second. Returns its response time,
/// or `None` if there is no transaction.
fn take_shortest(statistics: &mut LoadStatistics) -> Option<Nanos> {
    let (shortest, _) = statistics.latencies.buckets().next()?;
    let mut others = Latencies::default();
    for (bucket, (lowest, count)) in statistics.latencies.buckets().enumerate() {
        (u64::from(bucket == 0)..count).for_each(|_| others.record(lowest));
    }
    statistics.latencies = others;
    let (moments, us) = (&mut statistics.counts.moments, shortest as f64 / 1000.0);
    moments.count -= 1;
    moments.sum -= us;
    moments.sum_of_squares -= us * us;
    Some(shortest)
}

/// Returns a scenario whose servers have no faults.
fn quiet(kind: Kind) -> Scenario {
    Scenario { clients: 4, ..Scenario::quiet(1, kind) }
}

fn closed(length: Duration, interval_ns: Option<f64>) -> Kind {
    Kind::closed(Limit::Time(length), interval_ns)
}

fn sliced(interval_ns: Option<f64>) -> Scenario {
    let slices = Slices { length: 40 * MS, index: 0, of: 2, seed: 7 };
    Scenario { slices: Some(slices), ..quiet(closed(Duration::from_millis(480), interval_ns)) }
}

#[test]
fn planted_defects_break_the_promise_that_is_meant_for_them() {
    use super::promises::{BY_SECOND, CLIENT_TIMES, SLICE_TIME, TIMES, broken_promises};
    use super::simulate_planted;

    let seconds = |seconds: f64| Duration::from_secs_f64(seconds);
    let staged = StagedPlan { time: Some(seconds(0.5)), ..StagedPlan::default() };
    let warmed_up = Scenario { warmup: seconds(0.3), ..quiet(closed(seconds(0.4), None)) };
    for (defect, scenario, promise) in [
        (Defect::OneSecondLate, quiet(closed(seconds(2.5), None)), BY_SECOND),
        (Defect::WrongPhase, warmed_up, BY_SECOND),
        (Defect::TenTimesTooLong, quiet(closed(seconds(0.4), None)), TIMES),
        (Defect::TenTimesTooLong, quiet(closed(seconds(0.4), Some(2e6))), TIMES),
        (Defect::WrongClient, quiet(Kind::Staged(staged)), CLIENT_TIMES),
        (Defect::SliceTooMuch, sliced(None), SLICE_TIME),
        (Defect::SliceTooMuch, sliced(Some(2e6)), SLICE_TIME),
        (Defect::PauseTwice, sliced(Some(2e6)), TIMES),
    ] {
        let broken = broken_promises(&scenario, &simulate_planted(&scenario, None));
        assert!(broken.is_empty(), "without {defect:?}: {broken:?}");
        let broken = broken_promises(&scenario, &simulate_planted(&scenario, Some(defect)));
        assert!(broken.iter().any(|broken| broken.promise == promise), "{defect:?}: {broken:?}");
    }
}
