//! Checks of simulated runs: that the load starts when it should, and that the counters which only one mode has are
//! right.

use super::extras::clocks;
use super::promises::Judge;
use super::scenario::Kind;
use super::truth::ReplayTruth;
use crate::outcome::Outcome;
use ground::clock::{MS, Nanos};

impl Judge<'_> {
    /// Returns true if the engine is expected to reject the start time of this scenario: the text is not a valid time,
    /// or the time is past and several engines take turns in slices of time.
    pub fn may_fail_to_start(&self) -> bool {
        let Some(start) = &self.scenario.extras.start else { return false };
        let is_time = start.input.as_ref().is_none_or(|input| input.is_time);
        let is_past = self.scenario.slices.is_some() && start.comes(0) <= self.engine.ends.ended;
        !is_time || is_past
    }

    /// Checks that a load begins at its planned time, and that the engine reports how late it began.
    pub fn judge_begin(&mut self) {
        let (Some(start), Some(began)) = (&self.scenario.extras.start, self.engine.watch.began) else { return };
        let Some(ready_at) = self.engine.watch.ready_at else { return };
        let input_at = start.input.iter().flat_map(|input| &input.parts).map(|(at, _)| *at).max().unwrap_or(0);
        let from = ready_at.max(input_at);
        let (begins, comes) = (self.engine.truth.start, start.comes(from));
        // Threads get the schedule 20 ms before the start. If the wall clock is set after that, the start does not
        // move.
        let is_set_late =
            start.set.is_some_and(|(at, _)| at.abs_diff(comes) < 80 * MS || at.abs_diff(start.at) < 80 * MS);
        let patience = 60 * MS * (1 + start.input.iter().map(|input| input.parts.len() as Nanos).sum::<Nanos>());
        // The start time is written as seconds since 1970 with decimals, which are exact to less than a microsecond.
        let is_punctual = (comes.saturating_sub(1000)..=comes + patience).contains(&begins);
        self.promise(is_set_late || is_punctual, || {
            format!("the load began at {begins} ns instead of the planned {comes} ns")
        });
        let planned = clocks(start.at, None);
        if start.set.is_none() {
            let planned_s = began.planned.unwrap_or_default().as_secs_f64();
            let is_right = (planned_s - planned.wall.as_secs_f64()).abs() < 0.01;
            self.promise(is_right, || {
                format!(
                    "the engine reports a planned start {planned_s} s after 1970, but the plan has another time: {began:?}"
                )
            });
            let is_late = begins > start.at + 1000 * MS;
            let says_late = began.lateness().is_some();
            self.promise(is_late <= says_late, || {
                format!("the load began late, at {begins} ns, and the engine does not report it: {began:?}")
            });
        }
    }

    /// Checks that the counters that only one mode of the load has are right: they must agree with what the programs
    /// did.
    pub fn judge_accounts(&mut self, outcome: &Outcome) {
        match self.scenario.kind {
            Kind::Pooled { .. } => self.judge_tasks(outcome),
            Kind::Replayed { .. } => self.judge_replay(outcome),
            Kind::Staged(_) => self.judge_counts_of_programs(outcome),
            Kind::Closed { .. } => {}
        }
    }

    fn judge_tasks(&mut self, outcome: &Outcome) {
        let Some(tasks) = outcome.of_mode.tasks() else {
            return self.promise(false, || "the outcome of a run of tasks has no totals of tasks".to_owned());
        };
        let watch = &self.engine.watch;
        let (completed, failed) = (tasks.completed(), tasks.failed());
        self.promise(completed + failed == watch.tasks.len() as u64, || {
            format!(
                "the totals have {completed} completed and {failed} failed tasks, the observer saw {}",
                watch.tasks.len()
            )
        });
        let unfinished = tasks.planned - completed - failed;
        self.promise(tasks.unfinished() == unfinished, || {
            format!("the totals have {} unfinished tasks instead of {unfinished}", tasks.unfinished())
        });
        let mut responses = watch.responses.clone();
        responses.sort_unstable();
        let middle = responses.len() / 2;
        let median = match responses.len() {
            0 => None,
            odd if odd % 2 == 1 => Some(responses[middle] as f64 / 1000.0),
            _ => Some((responses[middle - 1] + responses[middle]) as f64 / 2000.0),
        };
        self.promise(tasks.median() == median, || {
            format!("the totals have the median response time {:?} us instead of {median:?} us", tasks.median())
        });
        let below = |limit: Nanos| responses.iter().filter(|response| **response < limit).count() as u64;
        let (early, of_classes) = (below(5_000 * MS), tasks.classes().iter().sum::<u64>());
        self.promise(tasks.under_five_seconds() == early && of_classes == completed, || {
            format!(
                "the totals have {} tasks below 5 s instead of {early}, and {of_classes} in all classes instead of {completed}",
                tasks.under_five_seconds()
            )
        });
        let parts = tasks.queue.mean() + tasks.service.mean();
        self.promise((parts - tasks.response.mean()).abs() <= 1e-6 * parts, || {
            format!("the mean waiting and service times add up to {parts} us instead of {} us", tasks.response.mean())
        });
    }

    fn judge_replay(&mut self, outcome: &Outcome) {
        let Some(totals) = outcome.of_mode.replay() else {
            return self.promise(false, || "the outcome of a replay has no totals of the replay".to_owned());
        };
        let sum = |of: &std::collections::BTreeMap<String, u64>| of.values().sum::<u64>();
        let counted = ReplayTruth {
            begun: totals.sessions.begun,
            finished: totals.sessions.finished,
            refused: totals.sessions.refused,
            lost: totals.sessions.lost,
            expected: sum(&totals.expected),
            unexpected: sum(&totals.unexpected),
            missing: sum(&totals.missing),
            succeeded: totals.statements().0.saturating_sub(sum(&totals.expected) + sum(&totals.unexpected)),
            other_rows: totals.other_rows(),
            consequences: totals.accounts.iter().map(|account| sum(&account.consequences)).sum(),
        };
        let truth = self.engine.truth.replay;
        self.promise(counted == truth, || format!("the engine counted {counted:?}, but the programs saw {truth:?}"));
        let by_account: u64 = totals.accounts.iter().map(|account| account.unexpected()).sum();
        self.promise(by_account == truth.unexpected, || {
            format!(
                "the counts of the templates add up to {by_account} unexpected errors instead of {}",
                truth.unexpected
            )
        });
    }

    fn judge_counts_of_programs(&mut self, outcome: &Outcome) {
        let phases = [&outcome.warmup, &outcome.measure, &outcome.drain];
        let events: u64 = phases.iter().map(|statistics| statistics.counts.more_events).sum();
        let truth = &self.engine.truth;
        self.promise(events == truth.more_events, || {
            format!(
                "the programs counted {} transactions by themselves, but the engine counted {events}",
                truth.more_events
            )
        });
        let totals = phases.iter().filter_map(|statistics| statistics.of_mode.clients());
        let of_clients: u64 = totals.flat_map(|clients| clients.totals()).map(|client| client.transactions).sum();
        let measured = outcome.measure.counts.transactions() + outcome.drain.counts.transactions();
        self.promise(of_clients == measured, || {
            format!("the clients' totals add up to {of_clients} transactions instead of {measured}")
        });
        if self.scenario.extras.is_command {
            self.promise(truth.starts.is_empty(), || "a command began transactions".to_owned());
        }
    }
}
