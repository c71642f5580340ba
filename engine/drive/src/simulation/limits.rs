//! Checks of simulated runs: that no more transactions run than the options allow, that they start at the rate of the
//! load and in the slices of this engine, and that all clients get their share of the work.

use std::time::Duration;

use super::programs::LONGEST_SLEEP;
use super::promises::Judge;
use super::scenario::Kind;
use crate::outcome::Outcome;
use crate::plan::{Limit, StagedPlan};
use crate::slices::Slice;
use crate::statistics::LoadStatistics;
use ground::clock::{MS, Nanos, nanos};

impl Judge<'_> {
    /// Returns the length of the measured part, or `None` without a limit. If the time of the load includes the
    /// connecting, the time for connecting is subtracted.
    pub fn time(&self, outcome: &Outcome) -> Option<Duration> {
        let counts = self.scenario.extras.time_includes_connecting;
        let spent = if counts { Duration::from_secs_f64(outcome.connect_s) } else { Duration::ZERO };
        self.scenario.time().map(|time| time.saturating_sub(spent))
    }

    /// Checks that no more transactions ran than the options allow, that no transaction began after the end of the
    /// load, and that the run ended with its last transaction.
    pub fn judge_limits(&mut self, outcome: &Outcome) {
        let engine = self.engine;
        let is_cut = engine.ends.was_interrupted || engine.ends.was_alarmed || outcome.ended_by_thread.is_some();
        let measured = |of: &dyn Fn(&LoadStatistics) -> u64| of(&outcome.measure) + of(&outcome.drain);
        let done = measured(&|statistics| {
            statistics.counts.transactions() + statistics.counts.failed() + statistics.counts.skipped
        });
        if let Kind::Closed { limit: Limit::Transactions(each), .. } = self.scenario.kind {
            let wanted = each * engine.clients as u64;
            self.promise(done <= wanted, || format!("the clients ran {done} transactions, more than {wanted}"));
            self.promise(is_cut || outcome.aborted > 0 || done == wanted, || {
                format!("the clients ran {done} of {wanted} transactions, although none was aborted")
            });
        }
        let Some(time) = self.time(outcome) else { return };
        if self.engine.truth.starts.is_empty() {
            return;
        }
        let end = engine.truth.start + nanos(self.scenario.warmup) + nanos(time);
        let last = engine.truth.starts.iter().max().copied().unwrap_or(0);
        if !matches!(self.scenario.kind, Kind::Replayed { .. }) {
            self.promise(last <= end + 5 * MS, || {
                format!("a transaction began at {last} ns, after the end of the load at {end} ns")
            });
        }
        if !engine.ends.was_interrupted {
            let longest =
                end.max(engine.truth.last_activity + LONGEST_SLEEP) + 300 * MS + 5 * self.scenario.faults.lateness;
            let ended = engine.ends.ended;
            self.promise(ended <= longest, || {
                format!("the run ended at {ended} ns, but must end with its last transaction, by {longest} ns")
            });
        }
    }

    /// Checks that the number of scheduled starts fits the rate of the load.
    pub fn judge_rate(&mut self, outcome: &Outcome) {
        let interval_ns = match self.scenario.kind {
            Kind::Closed { interval_ns: Some(interval_ns), .. } => interval_ns,
            Kind::Staged(StagedPlan { interval_ns: Some(interval_ns), .. }) => interval_ns,
            _ => return,
        };
        let Some(time) = self.time(outcome) else { return };
        let turns = self.scenario.slices.map_or(1, |slices| slices.of) as f64;
        let share = self.engine.clients as f64 / self.scenario.clients as f64;
        let expected = nanos(self.scenario.warmup + time) as f64 / turns / interval_ns * share;
        let phases = [&outcome.warmup, &outcome.measure, &outcome.drain];
        let count = |statistics: &&LoadStatistics| {
            statistics.counts.transactions()
                + statistics.counts.failures.values().sum::<u64>()
                + statistics.counts.skipped
        };
        let done: u64 = phases.iter().map(count).sum();
        let spread = 6.0 * expected.sqrt() + 6.0;
        self.promise(done as f64 <= expected + spread, || {
            format!("at its rate the load should run about {expected} transactions, but {done} ran")
        });
        let faults = &self.scenario.faults;
        let is_idle =
            expected / nanos(time).max(1) as f64 * faults.service.1 as f64 * 100.0 < self.engine.clients as f64;
        let is_whole = self.is_quiet() && is_idle && !self.engine.ends.was_alarmed && !self.engine.ends.was_interrupted;
        let is_limited = matches!(
            self.scenario.kind,
            Kind::Staged(StagedPlan { events: Some(_), .. } | StagedPlan { events_each: Some(_), .. })
        );
        let least = expected - spread - self.engine.clients as f64;
        self.promise(!is_whole || is_limited || outcome.aborted > 0 || done as f64 >= least, || {
            format!("at its rate the load should run about {expected} transactions, but only {done} ran")
        });
    }

    /// Checks that a scheduled start which one client puts back is taken by another client, so that each scheduled
    /// start is either begun or skipped. Used only if several engines take turns in slices of time.
    pub fn judge_starts(&mut self, outcome: &Outcome) {
        let keeps_connections = match self.scenario.kind {
            Kind::Closed { interval_ns: Some(_), reconnect, .. } => !reconnect,
            Kind::Staged(StagedPlan { interval_ns: Some(_), events, events_each, .. }) => {
                (events, events_each) == (None, None)
            }
            _ => false,
        };
        let (truth, faults) = (&self.engine.truth, &self.scenario.faults);
        let is_whole = !self.engine.ends.was_interrupted && outcome.aborted == 0 && outcome.ended_by_thread.is_none();
        let all = [faults.refusal, faults.silence, faults.fracture, faults.stall, faults.dismissal];
        let breaks = all.iter().any(|fault| *fault > 0.0);
        if self.scenario.slices.is_none() || !keeps_connections || !is_whole || breaks {
            return;
        }
        let skipped: u64 = [&outcome.warmup, &outcome.measure, &outcome.drain]
            .map(|statistics| statistics.counts.skipped)
            .iter()
            .sum();
        let begun = truth.starts.len() as u64;
        let taken = truth.taken;
        self.promise(begun + skipped == taken, || {
            format!("clients took {taken} scheduled starts, but began {begun} transactions and skipped {skipped}")
        });
    }

    /// Returns true if the scenario has no faults because of which transactions fail or take long.
    fn is_quiet(&self) -> bool {
        let faults = &self.scenario.faults;
        let all = [faults.refusal, faults.silence, faults.error, faults.rejection, faults.fracture, faults.stall];
        let more = [faults.dismissal, faults.chatter];
        all.iter().chain(&more).all(|fault| *fault == 0.0) && faults.lateness <= MS
    }

    /// Checks that no transaction begins in the slices of other engines. Used only if several engines take turns in
    /// slices of time.
    pub fn judge_slices(&mut self) {
        let Some(slices) = self.scenario.slices else { return };
        let truth = &self.engine.truth;
        // If a round of the event loop began in time, the transactions of all clients that it serves may begin.
        let round_ns = MS / 10 * self.scenario.clients as Nanos;
        let is_within = |slice: Slice, at: Nanos| (slice.begins..slice.ends).contains(&at);
        let is_own = |at: &Nanos| {
            let slice = slices.slice(at.saturating_sub(round_ns) / slices.round());
            is_within(Slice { ends: slice.ends + round_ns, ..slice }, *at)
                || is_within(slices.slice(at / slices.round()), *at)
        };
        let outside = truth.starts.iter().map(|at| at.saturating_sub(truth.start)).find(|at| !is_own(at));
        self.promise(outside.is_none(), || {
            format!("a transaction began {outside:?} ns after the start, in the slice of another engine")
        });
    }

    /// Checks that the clients of a closed loop run about the same number of transactions each, if the server is
    /// equally fast for all of them.
    pub fn judge_fairness(&mut self, outcome: &Outcome) {
        let Kind::Closed { limit: Limit::Time(_), interval_ns: None, thinks: false, .. } = self.scenario.kind else {
            return;
        };
        if !self.is_quiet() || self.engine.ends.was_interrupted || self.engine.ends.was_alarmed || outcome.aborted > 0 {
            return;
        }
        let done: Vec<u64> = self.engine.truth.clients.values().map(|client| client.committed).collect();
        let mean = done.iter().sum::<u64>() / done.len().max(1) as u64;
        let least = done.iter().min().copied().unwrap_or(0);
        self.promise(mean < 40 || least * 4 >= mean, || {
            format!("a client committed only {least} transactions, but the mean is {mean}")
        });
    }
}
