//! The promises of every simulated run: conditions that the run must fulfil in all modes. The engine's counts are
//! compared with what really happened.

use std::collections::BTreeMap;
use std::time::Duration;

use super::programs::LONGEST_SLEEP;
use super::scenario::{Kind, Scenario};
use super::truth::ClientTruth;
use super::watch::{Engine, GIVEN_UP};
use crate::arrivals::Throttle;
use crate::closed::Limit;
use crate::mode::Mode;
use crate::outcome::{Outcome, RunError};
use crate::shell::Shell;
use crate::slices::Slice;
use crate::staged::StagedPlan;
use crate::statistics::LoadStatistics;
use crate::statistics::replay::ReplayTotals;
use crate::worker::Worker;
use ground::clock::{MS, Nanos, nanos};

impl<M: Mode<S>, S: Shell> Worker<'_, M, S> {
    /// Returns the number of scheduled starts that the clients of this thread took and did not put back. Used only with
    /// a rate.
    pub fn taken(&self) -> u64 {
        self.thread.throttle.as_ref().map_or(0, Throttle::taken)
    }

    /// Checks that the queues and timers of a thread have no more entries than the thread has clients.
    pub fn check(&self) {
        let clients = self.clients.len();
        let timers = &self.thread.timers;
        assert!(timers.len() <= clients, "{} timers for {clients} clients", timers.len());
        assert!(timers.turns() <= clients, "{} waiting entries for {clients} clients", timers.turns());
        assert!(
            self.thread.sockets.queued() <= clients,
            "{} entries in the queue of connections for {clients} clients",
            self.thread.sockets.queued()
        );
    }
}

/// Returns descriptions of the promises that the engines of a scenario broke. A promise is a condition that every run
/// must fulfil.
pub fn broken_promises(scenario: &Scenario, engines: &[Engine]) -> Vec<String> {
    let mut broken = Vec::new();
    for engine in engines {
        Judge { scenario, engine, broken: &mut broken }.judge();
    }
    if let Kind::Pooled { apps, tasks, .. } = scenario.kind {
        let is_whole = engines.iter().all(|engine| engine.outcome.is_ok() && !engine.ends.was_interrupted);
        let mut all = BTreeMap::new();
        engines
            .iter()
            .flat_map(|engine| &engine.watch.tasks)
            .for_each(|(task, count)| *all.entry(*task).or_insert(0) += count);
        if let Some((task, count)) = all.iter().find(|(_, count)| **count != 1) {
            broken.push(format!("the engines counted the task {task:?} {count} times instead of once"));
        }
        if is_whole && all.len() != apps * tasks as usize {
            broken.push(format!("the engines counted {} of {} tasks", all.len(), apps * tasks as usize));
        }
    }
    broken
}

pub struct Judge<'a> {
    pub scenario: &'a Scenario,
    pub engine: &'a Engine,
    broken: &'a mut Vec<String>,
}

impl Judge<'_> {
    pub fn promise(&mut self, is_kept: bool, what: impl FnOnce() -> String) {
        if !is_kept {
            self.broken.push(what());
        }
    }

    fn judge(&mut self) {
        self.broken.extend(self.engine.truth.defects.iter().chain(&self.engine.watch.defects).cloned());
        self.judge_begin();
        if let Some(status) = self.engine.ends.given_up {
            return self.judge_giving_up(status);
        }
        self.judge_end();
        self.judge_progress();
        match &self.engine.outcome {
            Ok(outcome) => {
                self.judge_counts(outcome);
                self.judge_times(outcome);
                self.judge_limits(outcome);
                self.judge_rate(outcome);
                self.judge_starts(outcome);
                self.judge_slices();
                self.judge_fairness(outcome);
                self.judge_accounts(outcome);
                self.judge_log(outcome);
                self.judge_notes(outcome);
            }
            Err(RunError::Connect { .. } | RunError::Unready) => {}
            Err(RunError::Start(_)) if self.may_fail_to_start() => {}
            Err(RunError::System(message)) if self.has_no_log() && message.contains("could not open logfile") => {}
            Err(RunError::System(message)) if self.may_fail(message) => {}
            Err(error) => self.broken.push(format!("the run failed: {error}")),
        }
    }

    /// Checks a run that the main thread ended because another thread hung: it ended soon after the interrupt, and the
    /// transactions of the other threads were counted.
    fn judge_giving_up(&mut self, status: u8) {
        let (engine, hangs_at) = (self.engine, self.scenario.extras.hangs_at);
        self.promise(status == GIVEN_UP, || format!("the program ended with status {status} instead of {GIVEN_UP}"));
        self.promise(hangs_at.is_some(), || "the main thread gave up threads that do not hang".to_owned());
        let longest = self.scenario.interrupt_at.unwrap_or(0) + 12_000 * MS + 10 * self.scenario.faults.lateness;
        let ended = engine.ends.ended;
        self.promise(ended <= longest, || {
            format!("the main thread gave up the run at {ended} ns, but it had to do so by {longest} ns")
        });
        let Some((committed, unfinished)) = engine.watch.stuck else {
            return self.promise(false, || "the observer was not told of threads that do not end".to_owned());
        };
        let truth = engine.truth.sum(|client| client.committed);
        self.promise(committed <= truth, || {
            format!("the engine counted {committed} transactions, but only {truth} were committed")
        });
        let is_whole = engine.watch.began.is_some() && self.scenario.extras.fails_at.is_none();
        self.promise(!is_whole || unfinished > 0, || {
            "a thread hangs, but the engine reports that all clients have finished".to_owned()
        });
    }

    /// Returns true if the scenario makes the simulated system fail with this message.
    fn may_fail(&self, message: &str) -> bool {
        let extras = &self.scenario.extras;
        (extras.fails_at.is_some() && message.contains("waiting failed"))
            || (extras.unmade.is_some() && message.contains("no event loop"))
    }

    /// Checks that an interrupt ends the run soon: it takes no longer than the cancelling of statements.
    fn judge_end(&mut self) {
        self.promise(self.engine.ends.are_over, || "the run ended before all of its threads had".to_owned());
        let Some(interrupted_at) = self.scenario.interrupt_at.filter(|_| self.engine.ends.was_interrupted) else {
            return;
        };
        let longest = interrupted_at + 4000 * MS + 10 * self.scenario.faults.lateness;
        let ended = self.engine.ends.ended;
        self.promise(ended <= longest, || {
            format!("the run ended at {ended} ns, too long after the interrupt at {interrupted_at} ns")
        });
        let cancels = self.scenario.faults.silence == 0.0 && !self.scenario.faults.is_deaf;
        self.promise(!cancels || self.engine.watch.left_running == 0, || {
            "the engine reports that statements may still be running, but they were cancelled".to_owned()
        });
    }

    /// Checks that no client hangs if the servers of the scenario always answer, and that a load with a time limit ends
    /// by itself.
    fn judge_progress(&mut self) {
        let (engine, faults) = (self.engine, &self.scenario.faults);
        let Some(interrupted_at) = self.scenario.interrupt_at.filter(|_| engine.ends.was_interrupted) else { return };
        let answers = faults.silence == 0.0 && faults.stall == 0.0;
        let Ok(outcome) = &engine.outcome else { return };
        if !answers || outcome.unfinished == 0 {
            return;
        }
        let patience = 3000 * MS + 2 * faults.lateness;
        if let Some(time) = self.scenario.time() {
            let end = engine.truth.start + nanos(self.scenario.warmup) + nanos(time);
            self.promise(interrupted_at < end + patience, || {
                format!("the load ended at {end} ns, but the run was still going on at {interrupted_at} ns")
            });
            return;
        }
        let is_stuck = |client: &&ClientTruth| {
            client.is_open
                && client.last_activity + patience < interrupted_at
                && !engine.watch.aborted.contains(&client.number)
        };
        let stuck = engine.truth.clients.values().find(is_stuck);
        self.promise(stuck.is_none(), || format!("a client hangs within a transaction: {stuck:?}"));
    }

    /// Checks that every transaction is counted once, and as what it was: committed, failed or retried.
    fn judge_counts(&mut self, outcome: &Outcome) {
        let (truth, watch) = (&self.engine.truth, &self.engine.watch);
        let phases = [&outcome.warmup, &outcome.measure, &outcome.drain];
        let sum = |of: &dyn Fn(&LoadStatistics) -> u64| phases.iter().map(|statistics| of(statistics)).sum::<u64>();
        let counted = sum(&|statistics| statistics.counts.transactions());
        let committed = truth.sum(|client| client.committed);
        self.promise(counted == committed, || {
            format!("the engine counted {counted} transactions, but {committed} were committed")
        });
        let recorded = sum(&|statistics| statistics.latencies.total());
        self.promise(recorded == counted, || {
            format!("the histograms have {recorded} latencies, but {counted} transactions were counted")
        });
        let watched: u64 = watch.ticks.values().map(|statistics| statistics.counts.transactions()).sum();
        self.promise(watched == counted, || {
            format!("the single seconds add up to {watched} transactions, but the outcome has {counted}")
        });
        let has_begun = !truth.starts.is_empty();
        self.promise(outcome.aborted == watch.aborted.len() || !has_begun, || {
            format!(
                "the outcome has {} aborted clients, but the observer was told of {:?}",
                outcome.aborted, watch.aborted
            )
        });
        let failed = sum(&|statistics| statistics.counts.failures.values().sum());
        let (given_up, open) = (truth.sum(|client| client.given_up), truth.sum(|client| u64::from(client.is_open)));
        let refused = outcome.own.get::<ReplayTotals>().map_or(0, |replay| replay.sessions.refused);
        let timeouts = sum(&|statistics| {
            statistics.counts.failures.get(crate::statistics::tasks::POOL_TIMEOUT).copied().unwrap_or(0)
        });
        let is_stopped = |client: &&ClientTruth| client.is_open && watch.stopped.contains(&client.number);
        let stopped = truth.clients.values().filter(is_stopped).count() as u64;
        let of_started = (failed + stopped).saturating_sub(watch.unconnected + refused + timeouts);
        match self.scenario.kind {
            Kind::Staged(_) => {}
            _ => self.promise((given_up..=given_up + open).contains(&of_started), || {
                format!(
                    "the engine counted {of_started} failed transactions instead of {given_up} to {}",
                    given_up + open
                )
            }),
        }
        let is_cut =
            self.engine.ends.was_interrupted || self.engine.ends.was_alarmed || outcome.ended_by_thread.is_some();
        if matches!(self.scenario.kind, Kind::Closed { limit: Limit::Transactions(_), .. } | Kind::Pooled { .. })
            && !is_cut
        {
            self.promise(of_started == given_up + open, || {
                format!("the engine counted {of_started} failed transactions instead of {}", given_up + open)
            });
        }
        if outcome.scripts.len() > 1 {
            let by_script: u64 = outcome.scripts.iter().map(|script| script.whole.moments.count).sum();
            let measured = outcome.measure.counts.transactions() + outcome.drain.counts.transactions();
            let is_measured = self.scenario.warmup.is_zero() || measured > 0;
            self.promise(by_script == measured || !is_measured, || {
                format!("the scripts' totals add up to {by_script} transactions instead of {measured}")
            });
        }
        let retries = sum(&|statistics| statistics.counts.retries);
        let (retried, most) =
            (truth.sum(|client| client.retries), truth.clients.values().map(|client| client.most_tries).max());
        if let (Some(tries), true) = (self.scenario.options.tries, !matches!(self.scenario.kind, Kind::Staged(_))) {
            self.promise(retries <= retried, || {
                format!("the engine counted {retries} retries, but the clients made {retried}")
            });
            self.promise(most.unwrap_or(0) < u64::from(tries), || {
                format!("a transaction was retried {most:?} times, but {tries} tries are allowed")
            });
        }
    }

    /// Checks that the response times are in sum not shorter than the times that the servers took. If transactions have
    /// scheduled starts, also checks that no schedule lag is longer than the longest response time, and that each
    /// committed transaction has a service time.
    fn judge_times(&mut self, outcome: &Outcome) {
        let phases = [&outcome.warmup, &outcome.measure, &outcome.drain];
        let response_us: f64 = phases
            .iter()
            .map(|statistics| statistics.counts.moments.mean() * statistics.counts.transactions() as f64)
            .sum();
        let service_us = self.engine.truth.sum(|client| client.service) as f64 / 1000.0;
        self.promise(response_us >= service_us * (1.0 - 1e-9) - 1.0, || {
            format!("the response times add up to {response_us} us, less than the servers' {service_us} us")
        });
        for statistics in phases {
            let (Some(schedule), false) = (&statistics.schedule, matches!(self.scenario.kind, Kind::Replayed { .. }))
            else {
                continue;
            };
            let moments = &statistics.counts.moments;
            self.promise(statistics.counts.lag.max <= moments.max + 1.0, || {
                "a schedule lag is longer than the longest response time".to_owned()
            });
            let service: u64 = schedule.service.total();
            let is_detailed = matches!(self.scenario.kind, Kind::Closed { .. } | Kind::Staged(_));
            self.promise(service == moments.count || !is_detailed, || {
                format!("the histogram has {service} service times, but {} transactions were committed", moments.count)
            });
        }
    }

    /// Returns the length of the measured part, or `None` without a limit. If the time of the load includes the
    /// connecting, the time for connecting is subtracted.
    fn time(&self, outcome: &Outcome) -> Option<Duration> {
        let counts = self.scenario.extras.time_includes_connecting;
        let spent = if counts { Duration::from_secs_f64(outcome.connect_s) } else { Duration::ZERO };
        self.scenario.time().map(|time| time.saturating_sub(spent))
    }

    /// Checks that no more transactions ran than the options allow, that no transaction began after the end of the
    /// load, and that the run ended with its last transaction.
    fn judge_limits(&mut self, outcome: &Outcome) {
        let engine = self.engine;
        let is_cut = engine.ends.was_interrupted || engine.ends.was_alarmed || outcome.ended_by_thread.is_some();
        let measured = |of: &dyn Fn(&LoadStatistics) -> u64| of(&outcome.measure) + of(&outcome.drain);
        let done = measured(&|statistics| {
            statistics.counts.transactions() + statistics.counts.failed() + statistics.counts.skipped
        });
        match self.scenario.kind {
            Kind::Closed { limit: Limit::Transactions(each), .. } => {
                let wanted = each * engine.clients as u64;
                self.promise(done <= wanted, || format!("the clients ran {done} transactions, more than {wanted}"));
                self.promise(is_cut || outcome.aborted > 0 || done == wanted, || {
                    format!("the clients ran {done} of {wanted} transactions, although none was aborted")
                });
            }
            Kind::Staged(StagedPlan { events: Some(_), .. }) if engine.truth.clients.is_empty() => {}
            _ => {}
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
    fn judge_rate(&mut self, outcome: &Outcome) {
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
    fn judge_starts(&mut self, outcome: &Outcome) {
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
    fn judge_slices(&mut self) {
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
    fn judge_fairness(&mut self, outcome: &Outcome) {
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
