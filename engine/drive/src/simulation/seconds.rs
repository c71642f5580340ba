//! Checks of simulated runs: that each transaction is counted in the second and the phase in which it ended, that
//! failures are counted by their SQLSTATEs, and retries with their transactions.

use std::collections::BTreeMap;

use super::calendar::Calendar;
use super::ended::Failure;
use super::parts::Compared;
use super::promises::Judge;
use super::scenario::Kind;
use crate::statistics::tasks::{POOL_TIMEOUT, SCRIPT};
use ground::clock::Nanos;

impl Judge<'_> {
    /// Checks the counts of a part of the run.
    pub fn judge_part(&mut self, one: &Compared<'_>) {
        let (transactions, commits) = (one.counted.counts.transactions(), one.part.commits.len() as u64);
        self.promise(transactions == commits, || {
            format!("{}: the engine counted {transactions} transactions, but {commits} were committed", one.name())
        });
        let in_histogram = one.counted.latencies.total();
        self.promise(in_histogram == commits, || {
            format!("{}: the histogram has {in_histogram} latencies, but {commits} were committed", one.name())
        });
        // With connection pools the clients do not see when their failed tasks ended.
        if one.period.is_none() || !matches!(self.scenario.kind, Kind::Pooled { .. }) {
            self.judge_failures(one);
            self.judge_retries(one);
        }
        self.judge_failed_tasks(one);
    }

    /// Checks the failures of a part by their SQLSTATEs. Clients that got no connection count as failed transactions,
    /// too, but no program knows when.
    fn judge_failures(&mut self, one: &Compared<'_>) {
        let (Compared { counted, part, .. }, engine) = (one, self.engine);
        let unconnected: Vec<&str> = engine.watch.abortions.iter().filter_map(|one| one.unconnected()).collect();
        let is_replay = matches!(self.scenario.kind, Kind::Replayed { .. });
        let refused = if is_replay { engine.truth.replay.refused } else { 0 };
        let failures = || counted.counts.failures.iter().filter(|(kind, _)| *kind != POOL_TIMEOUT);
        let is =
            |failure: &Failure, kind: &str| kind == SCRIPT || failure.sqlstates.iter().any(|sqlstate| sqlstate == kind);
        for (kind, count) in failures() {
            let happened = part.certain().chain(&part.possible).filter(|failure| is(failure, kind)).count() as u64;
            let of_clients = unconnected.iter().filter(|sqlstate| *sqlstate == kind).count() as u64;
            let most = happened + of_clients + refused;
            self.promise(*count <= most, || {
                format!("{}: the engine counted {count} failures with {kind}, but {most} happened at most", one.name())
            });
        }
        let mut least = BTreeMap::<&str, u64>::new();
        for failure in part.certain() {
            let Some(sqlstate) = failure.sqlstates.first() else { continue };
            if failure.sqlstates.iter().all(|other| other == sqlstate) {
                *least.entry(sqlstate).or_default() += 1;
            }
        }
        for (kind, least) in least {
            let count = counted.counts.failures.get(kind).copied().unwrap_or(0);
            self.promise(count >= least, || {
                format!("{}: the engine counted {count} failures with {kind}, but {least} happened", one.name())
            });
        }
        let count: u64 = failures().map(|(_, count)| count).sum();
        let least = part.certain().count() as u64;
        let most = least + part.possible.len() as u64 + unconnected.len() as u64 + refused;
        self.promise((least..=most).contains(&count), || {
            format!("{}: the engine counted {count} failures, but {least} to {most} happened", one.name())
        });
    }

    /// Checks that retries are counted when their transactions end. Those of a client that is aborted do not count.
    fn judge_retries(&mut self, one: &Compared<'_>) {
        if matches!(self.scenario.kind, Kind::Staged(_)) {
            return;
        }
        let part = &one.part;
        let sum = |retries: &mut dyn Iterator<Item = u64>| {
            retries.fold((0, 0), |(sum, retried), retries| (sum + retries, retried + u64::from(retries > 0)))
        };
        let commits = part.commits.iter().map(|commit| commit.retries);
        let ended = sum(&mut commits.chain(part.failed.iter().map(|failure| failure.retries)));
        let more = sum(&mut part.possible.iter().map(|failure| failure.retries));
        let counted = (one.counted.counts.retries, one.counted.counts.retried);
        let is_right =
            (ended.0..=ended.0 + more.0).contains(&counted.0) && (ended.1..=ended.1 + more.1).contains(&counted.1);
        self.promise(is_right, || {
            format!(
                "{}: the engine counted the retries and retried transactions {counted:?}, but the clients made {ended:?} \
                 and perhaps {more:?} more",
                one.name()
            )
        });
    }

    /// Checks that the failures of a second are those of its tasks. Used only with connection pools.
    fn judge_failed_tasks(&mut self, one: &Compared<'_>) {
        let Some(pooled) = one.counted.of_mode.tasks().filter(|_| one.period.is_some()) else { return };
        let mut failures = BTreeMap::<String, u64>::new();
        for failure in pooled.tasks.iter().filter_map(|task| task.failure.as_deref()) {
            *failures.entry(failure.to_owned()).or_default() += 1;
        }
        self.promise(failures == one.counted.counts.failures, || {
            let counted = &one.counted.counts.failures;
            format!("{}: tasks failed with {failures:?}, but the engine counted {counted:?}", one.name())
        });
    }

    /// Checks that each second has its planned length, and that only the last one may be shorter.
    pub fn judge_lengths(&mut self, calendar: &Calendar) {
        if !self.is_end_known() {
            return;
        }
        let ticks = &self.engine.watch.ticks;
        let last = ticks.keys().next_back();
        for (period, tick) in ticks {
            let Some(length) = calendar.length(*period) else { continue };
            let ns = (tick.seconds * 1e9).round() as Nanos;
            self.promise(ns == length || (Some(period) == last && ns < length), || {
                format!("the engine reports that {period:?} lasted {ns} ns instead of {length} ns")
            });
        }
    }
}
