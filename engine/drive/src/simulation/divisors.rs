//! Checks of simulated runs: that the times by which reports divide the number of transactions are those of the load.

use std::collections::BTreeMap;

use super::calendar::Calendar;
use super::ended::Bounds;
use super::promises::Judge;
use super::scenario::Kind;
use super::truth::Place;
use crate::outcome::Outcome;
use crate::plan::{Limit, StagedPlan};
use ground::clock::{MS, Nanos, nanos};

/// The time in which a client did nothing but run one transaction after the other.
struct Stretch {
    began: Bounds,
    ended: Nanos,
    is_committed: bool,
}

impl Judge<'_> {
    /// Checks the lengths of the warm-up and of the measured part. If all clients ran to the end of the load, the
    /// measured part has its planned length. Otherwise it ends with the last transaction, or soon after it. As in
    /// pgbench, a closed loop with a rate ends when its last scheduled transaction has ended.
    pub fn judge_measured_time(&mut self, outcome: &Outcome, calendar: &Calendar) {
        let engine = self.engine;
        let last = engine.truth.commits.iter().map(|commit| commit.ended).max().unwrap_or(0);
        // A thread may be ahead of the main thread: by a wait that ends late, or by its sleep until the start of the load.
        let late = 30 * MS + self.scenario.faults.lateness;
        let ended = Bounds { least: last, most: engine.ends.ended + late };
        let between = |from: Nanos, to: Nanos| Bounds {
            least: ended.least.clamp(from, to) - from,
            most: ended.most.clamp(from, to) - from,
        };
        let ns = |seconds: f64| (seconds * 1e9).round() as Nanos;
        let lengths = [
            ("warm-up", ns(outcome.warmup_s), between(calendar.start, calendar.measure)),
            ("measured part", ns(outcome.measure_s), between(calendar.measure, calendar.end)),
            ("time from the measured part to the end", ns(outcome.elapsed_s), between(calendar.measure, Nanos::MAX)),
        ];
        let is_end_known = self.is_end_known();
        for (what, length, bounds) in lengths {
            self.promise(!is_end_known || bounds.contains(length), || {
                format!("the engine reports {length} ns as the length of the {what} instead of {bounds:?}")
            });
        }
        let is_by_time = matches!(
            self.scenario.kind,
            Kind::Closed { limit: Limit::Time(_), interval_ns: None, .. }
                | Kind::Staged(StagedPlan { time: Some(_), events: None, events_each: None, .. })
        );
        let is_cut = engine.ends.was_interrupted || engine.ends.was_alarmed || outcome.ended_by_thread.is_some();
        let has_left = outcome.aborted > 0 || self.scenario.extras.is_rich;
        let Some(time) = self.time(outcome).map(nanos).filter(|_| is_by_time && !is_cut && !has_left) else { return };
        let length = ns(outcome.measure_s);
        self.promise(length == time, || {
            format!("the engine reports {length} ns as the measured time instead of {time}")
        });
    }

    /// Checks for how long the clients took part in the slices of this engine, which is the divisor of the throughput
    /// if several engines take turns. A client takes part from its first transaction in a slice to the end of its last
    /// one, and with a rate as long as the slice lasts.
    pub fn judge_slice_time(&mut self, calendar: &Calendar) {
        let (Some(slices), engine, scenario) = (self.scenario.slices, self.engine, self.scenario) else { return };
        let ticks = engine.watch.ticks.values();
        let counted: Nanos = ticks.filter_map(|tick| tick.statistics.slice_time).map(|time| time.client_ns).sum();
        let slice_at = |at: Nanos| slices.slice(calendar.round_number(&slices, at));
        let (mut least, mut most) = (0, 0);
        for stretches in self.stretches().into_values() {
            let (mut sure_until, mut until) = (0, 0);
            for Stretch { began, ended, is_committed } in stretches {
                let slice = slice_at(began.most);
                if is_committed {
                    let end = if scenario.has_rate() { ended.min(calendar.start + slice.ends) } else { ended };
                    let from = began.most.max(sure_until);
                    least += end.saturating_sub(from);
                    sure_until = sure_until.max(end);
                }
                let from = (calendar.start + slice.begins).max(until);
                most += ended.saturating_sub(from);
                until = until.max(ended);
            }
        }
        let rounds = engine.watch.ticks.len() as Nanos;
        let clients = engine.clients as Nanos;
        if scenario.has_rate() {
            most = rounds * clients * slices.length;
        }
        most += rounds * clients * (MS / 10) * (1 + clients);
        let waits = matches!(
            scenario.kind,
            Kind::Closed { thinks: true, .. }
                | Kind::Closed { reconnect: true, .. }
                | Kind::Closed { wait_for_server: Some(_), .. }
        );
        let is_right = least <= counted && (counted <= most || (waits && !scenario.has_rate()));
        self.promise(is_right, || {
            format!("the engine counted {counted} ns in which clients took part, instead of {least} to {most} ns")
        });
    }

    /// Returns the transactions of each client, in their order.
    fn stretches(&self) -> BTreeMap<Place, Vec<Stretch>> {
        let (truth, ends) = (&self.engine.truth, &self.engine.ends);
        let mut stretches = BTreeMap::<Place, Vec<Stretch>>::new();
        for commit in &truth.commits {
            let stretch = Stretch { began: commit.began, ended: commit.ended, is_committed: true };
            stretches.entry(commit.place).or_default().push(stretch);
        }
        for failure in &truth.failures {
            let stretch = Stretch { began: failure.began, ended: failure.at, is_committed: false };
            stretches.entry(failure.place).or_default().push(stretch);
        }
        for (place, client) in &truth.clients {
            let open = client.failure(*place);
            let open = open.map(|open| Stretch { began: open.began, ended: ends.ended + MS, is_committed: false });
            stretches.entry(*place).or_default().extend(open);
        }
        stretches.values_mut().for_each(|all| all.sort_by_key(|stretch| stretch.began.least));
        stretches
    }
}
