//! The promises of every simulated run: conditions that the run must fulfil in all modes. The engine's counts are
//! compared with what really happened.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};

use super::scenario::{Kind, Scenario};
use super::truth::ClientTruth;
use super::watch::{AbortedBy, Engine, GIVEN_UP};
use crate::arrivals::Throttle;
use crate::mode::Mode;
use crate::outcome::{Outcome, RunError};
use crate::plan::{Limit, StagedPlan};
use crate::shell::Shell;
use crate::statistics::LoadStatistics;
use crate::worker::Worker;
use ground::clock::{MS, nanos};

/// The name of the promise that each transaction is counted in the second and in the phase in which it ended.
pub const BY_SECOND: &str = "each transaction is counted in its second and its phase";

/// The name of the promise that response times, service times and schedule lags are those of the clients and servers.
pub const TIMES: &str = "times are those which the clients and servers saw";

/// The name of the promise that the time by which the throughput is divided is that in which clients took part.
pub const SLICE_TIME: &str = "the clients took part for as long as the engine says";

/// The name of the promise that the response times of a script are those of its transactions.
pub const SCRIPT_TIMES: &str = "each script has the times of its transactions";

/// The name of the promise that the response times of a client are those of its transactions.
pub const CLIENT_TIMES: &str = "each client has the times of its transactions";

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
pub fn broken_promises(scenario: &Scenario, engines: &[Engine]) -> Vec<Broken> {
    let mut broken = Vec::new();
    for engine in engines {
        Judge { scenario, engine, promise: "", broken: &mut broken }.judge();
    }
    broken.extend(judge_all_tasks(scenario, engines).map(|what| Broken { promise: "each task is counted once", what }));
    let promise = "as many transactions are measured as were asked for";
    broken.extend(judge_events(scenario, engines).map(|what| Broken { promise, what }));
    broken
}

/// Checks that each task is counted once, by one of the engines. Returns a description of the error if it is not.
fn judge_all_tasks(scenario: &Scenario, engines: &[Engine]) -> Option<String> {
    let Kind::Pooled { apps, tasks, .. } = scenario.kind else { return None };
    let is_whole = engines.iter().all(|engine| engine.outcome.is_ok() && !engine.ends.was_interrupted);
    let mut all = BTreeMap::new();
    for (task, count) in engines.iter().flat_map(|engine| &engine.watch.tasks) {
        *all.entry(*task).or_insert(0) += count;
    }
    if let Some((task, count)) = all.iter().find(|(_, count)| **count != 1) {
        return Some(format!("the engines counted the task {task:?} {count} times instead of once"));
    }
    let planned = apps * tasks as usize;
    (is_whole && all.len() != planned).then(|| format!("the engines counted {} of {planned} tasks", all.len()))
}

/// Checks that the engines of a load with a number of transactions measured exactly that number, or fewer if their run
/// ended for another reason. Returns a description of the error if they did not.
fn judge_events(scenario: &Scenario, engines: &[Engine]) -> Option<String> {
    let Kind::Staged(StagedPlan { events, events_each, time, .. }) = scenario.kind else { return None };
    let outcomes: Vec<&Outcome> = engines.iter().filter_map(|engine| engine.outcome.as_ref().ok()).collect();
    let is_cut = engines.iter().any(|engine| engine.ends.was_interrupted || engine.truth.starts.is_empty());
    let is_whole = outcomes.len() == engines.len() && outcomes.iter().all(|outcome| outcome.aborted == 0);
    let ends_otherwise = is_cut || !is_whole || time.is_some() || scenario.extras.is_rich;
    let measured = |outcome: &&Outcome| outcome.measure.counts.transactions() + outcome.drain.counts.transactions();
    let all: u64 = outcomes.iter().map(measured).sum();
    let each = events_each.map(|each| each * scenario.clients as u64);
    let wanted = events.into_iter().chain(each).min()?;
    (all > wanted || (all < wanted && !ends_otherwise))
        .then(|| format!("the engines measured {all} transactions instead of {wanted}"))
}

/// A promise that a run has not kept.
#[derive(Debug)]
pub struct Broken {
    pub promise: &'static str,
    /// The numbers that do not fit the promise.
    pub what: String,
}

impl Display for Broken {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.what)
    }
}

/// Compares the results of one engine with what really happened.
pub struct Judge<'a> {
    pub scenario: &'a Scenario,
    pub engine: &'a Engine,
    /// The name of the promise that is being checked.
    promise: &'static str,
    broken: &'a mut Vec<Broken>,
}

impl<'a> Judge<'a> {
    pub fn promise(&mut self, is_kept: bool, what: impl FnOnce() -> String) {
        if !is_kept {
            self.broken.push(Broken { promise: self.promise, what: what() });
        }
    }

    /// Sets the name of the promise that is checked next.
    fn next(&mut self, promise: &'static str) -> &mut Self {
        self.promise = promise;
        self
    }

    fn judge(&mut self) {
        let engine = self.engine;
        self.next("the engine acts as its programs and servers expect");
        engine.truth.defects.iter().chain(&engine.watch.defects).for_each(|what| self.promise(false, || what.clone()));
        self.next("the load begins when it should").judge_begin();
        if let Some(status) = engine.ends.given_up {
            return self.next("threads that hang are given up").judge_giving_up(status);
        }
        self.next("the run ends when it should").judge_end();
        self.next("no client hangs").judge_progress();
        match &engine.outcome {
            Ok(outcome) => self.judge_outcome(outcome),
            Err(RunError::Connect { .. } | RunError::Unready) => {}
            Err(RunError::Start(_)) if self.may_fail_to_start() => {}
            Err(RunError::System(message)) if self.has_no_log() && message.contains("could not open logfile") => {}
            Err(RunError::System(message)) if self.may_fail(message) => {}
            Err(error) => self.next("the run succeeds").promise(false, || format!("the run failed: {error}")),
        }
    }

    fn judge_outcome(&mut self, outcome: &'a Outcome) {
        self.next("every transaction is counted once").judge_counts(outcome);
        self.judge_calendar(outcome);
        self.next("times are not shorter than those of the servers").judge_times(outcome);
        self.next("no more transactions run than the options allow").judge_limits(outcome);
        self.next("transactions start at the rate of the load").judge_rate(outcome);
        self.next("each scheduled start is begun or skipped").judge_starts(outcome);
        self.next("no transaction begins in the slices of other engines").judge_slices();
        self.next("clients run about the same number of transactions").judge_fairness(outcome);
        self.next("the counters of the mode are right").judge_accounts(outcome);
        self.next("the transaction log is right").judge_log(outcome);
        self.next("the debugging lines are right").judge_notes(outcome);
    }

    /// Checks the run part by part, if its load has begun.
    fn judge_calendar(&mut self, outcome: &'a Outcome) {
        let Some(calendar) = self.calendar(outcome) else { return };
        let parts = self.parts(&calendar, outcome);
        self.next("the clock is read after each transaction").judge_readings();
        parts.iter().for_each(|part| self.next(BY_SECOND).judge_part(part));
        self.next("each second has its length").judge_lengths(&calendar);
        self.next("the measured time is that of the load").judge_measured_time(outcome, &calendar);
        self.next(SLICE_TIME).judge_slice_time(&calendar);
        let timetable = self.timetable(calendar);
        parts.iter().for_each(|part| self.next(TIMES).judge_times_of(part, &timetable));
        self.next(SCRIPT_TIMES).judge_scripts(outcome, &timetable);
        match self.scenario.kind {
            Kind::Staged(_) => self.next(CLIENT_TIMES).judge_clients(outcome, &timetable),
            Kind::Pooled { .. } => self.next("tasks have their times").judge_task_times(&timetable),
            Kind::Closed { .. } | Kind::Replayed { .. } => {}
        }
        self.next("the lines of the transaction log are those of the clients").judge_log_times(&timetable);
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
                && !engine.watch.aborted().contains(&client.number)
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
        let watched: u64 = watch.ticks.values().map(|tick| tick.statistics.counts.transactions()).sum();
        self.promise(watched == counted, || {
            format!("the single seconds add up to {watched} transactions, but the outcome has {counted}")
        });
        let has_begun = !truth.starts.is_empty();
        self.promise(outcome.aborted == watch.aborted().len() || !has_begun, || {
            format!(
                "the outcome has {} aborted clients, but the observer was told of {:?}",
                outcome.aborted, watch.abortions
            )
        });
        let failed = sum(&|statistics| statistics.counts.failures.values().sum());
        let (given_up, open) = (truth.sum(|client| client.given_up), truth.sum(|client| u64::from(client.is_open)));
        let refused = outcome.of_mode.replay().map_or(0, |replay| replay.sessions.refused);
        let timeouts = sum(&|statistics| {
            statistics.counts.failures.get(crate::statistics::tasks::POOL_TIMEOUT).copied().unwrap_or(0)
        });
        let by_program = watch.abortions.iter().filter(|abortion| abortion.reason == AbortedBy::Program);
        let stopped: BTreeSet<usize> = by_program.map(|abortion| abortion.client).collect();
        let is_stopped = |client: &&ClientTruth| client.is_open && stopped.contains(&client.number);
        let stopped = truth.clients.values().filter(is_stopped).count() as u64;
        let of_started = (failed + stopped).saturating_sub(watch.unconnected() + refused + timeouts);
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
}
