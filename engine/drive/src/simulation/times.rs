//! Checks of simulated runs: that response times, service times and schedule lags are those which the clients and
//! servers of the run saw, in each second and phase, for each script and for each client.

use std::collections::BTreeMap;

use super::calendar::Calendar;
use super::distribution::Distribution;
use super::ended::{Bounds, Commit};
use super::parts::Compared;
use super::promises::Judge;
use super::scenario::Kind;
use super::truth::Place;
use crate::outcome::Outcome;
use crate::plan::ReplayTiming;
use crate::statistics::tasks::Task;
use ground::clock::{Nanos, nanos};

/// The times for which the transactions of a run were planned.
pub struct Timetable {
    calendar: Calendar,
    /// The arrival of the task that ended at a time, by the number of the application and this time.
    arrivals: BTreeMap<(usize, Nanos), Nanos>,
    /// The numbers that the clients have within their engine.
    numbers: BTreeMap<Place, usize>,
    /// The number of connections of each pool.
    pool: usize,
}

impl Judge<'_> {
    /// Returns the times for which the transactions of the run were planned.
    pub fn timetable(&self, calendar: Calendar) -> Timetable {
        let engine = self.engine;
        let mut arrivals = BTreeMap::new();
        for task in self.tasks().filter(|task| task.failure.is_none()) {
            arrivals.insert((task.app, task.ended()), task.arrived);
        }
        let numbers = engine.truth.clients.keys().copied().zip(0..).collect();
        let pool = match self.scenario.kind {
            Kind::Pooled { apps, .. } => engine.clients / apps,
            _ => 1,
        };
        Timetable { calendar, arrivals, numbers, pool }
    }

    /// Returns the tasks that have ended. Used only with connection pools.
    fn tasks(&self) -> impl Iterator<Item = &Task> {
        let ticks = self.engine.watch.ticks.values();
        ticks.filter_map(|tick| tick.statistics.of_mode.tasks()).flat_map(|pooled| &pooled.tasks)
    }

    /// Returns the time on the run's clock for which a transaction was planned, or `None` if it started when its client
    /// was free.
    fn planned(&self, commit: &Commit, timetable: &Timetable) -> Option<Nanos> {
        let calendar = &timetable.calendar;
        match &self.scenario.kind {
            Kind::Closed { .. } | Kind::Staged(_) => {
                commit.planned.map(|start| start + calendar.pause(commit.began.most))
            }
            Kind::Pooled { .. } => {
                let app = timetable.numbers[&commit.place] / timetable.pool;
                timetable.arrivals.get(&(app, commit.ended)).copied()
            }
            Kind::Replayed { timing: ReplayTiming::Recorded { speed }, .. } => {
                commit.planned.map(|micros| calendar.start + (micros as f64 * 1000.0 / speed) as Nanos)
            }
            Kind::Replayed { timing: ReplayTiming::BackToBack, .. } => None,
        }
    }

    /// Returns the bounds of the response time, the service time and the schedule lag of a transaction.
    fn times(&self, commit: &Commit, timetable: &Timetable) -> [Bounds; 3] {
        let (began, ended) = (commit.began, commit.ended);
        let planned = self.planned(commit, timetable).map_or(began, |planned| match self.scenario.kind {
            // A replay that is over does not wait for the recorded time.
            Kind::Replayed { .. } => Bounds { least: planned.min(began.least), most: planned.min(began.most) },
            _ => Bounds::exactly(planned),
        });
        let lag =
            Bounds { least: began.least.saturating_sub(planned.most), most: began.most.saturating_sub(planned.least) };
        [planned.until(ended), began.until(ended), lag]
    }

    /// Checks the times of a part of the run.
    pub fn judge_times_of(&mut self, one: &Compared<'_>, timetable: &Timetable) {
        let counted = &one.counted;
        let times = one.part.commits.iter().map(|commit| self.times(commit, timetable)).collect::<Vec<_>>();
        let of = |kind: usize| Distribution::new(times.iter().map(|times| times[kind]));
        let (responses, services, lags) = (of(0), of(1), of(2));
        let mut checks = vec![
            ("response times", responses.differs_from(&counted.latencies)),
            ("response times", responses.differs_from_moments(&counted.counts.moments)),
        ];
        if one.period.is_none() {
            checks.push(("percentiles of the response times", responses.differs_from_percentiles(&counted.latencies)));
        }
        if let Some(schedule) = &counted.schedule {
            checks.push(("service times", services.differs_from(&schedule.service)));
            checks.push(("schedule lags", lags.differs_from(&schedule.lags)));
            checks.push(("schedule lags", lags.differs_from_moments(&counted.counts.lag)));
        }
        if let Some(pooled) = counted.of_mode.tasks() {
            checks.push(("service times of tasks", services.differs_from(&pooled.service)));
            checks.push(("waiting times of tasks", lags.differs_from(&pooled.queue)));
        }
        for (what, difference) in checks {
            self.promise(difference.is_none(), || {
                format!("{}: the {what} are not those of the clients: {}", one.name(), difference.unwrap_or_default())
            });
        }
        let Some(limit) = self.scenario.options.latency_limit.map(nanos) else { return };
        let late = responses.above(limit);
        self.promise((late.least..=late.most).contains(&counted.counts.late), || {
            format!("{}: the engine counted {} late transactions instead of {late:?}", one.name(), counted.counts.late)
        });
    }

    /// Checks the times and counts of each script. The totals of scripts are those of the measured part and the drain.
    pub fn judge_scripts(&mut self, outcome: &Outcome, timetable: &Timetable) {
        if outcome.scripts.len() < 2 {
            return;
        }
        let mut times = vec![Vec::new(); outcome.scripts.len()];
        let mut retries = vec![0; outcome.scripts.len()];
        for commit in self.measured(&timetable.calendar) {
            times[commit.script].push(self.times(commit, timetable)[0]);
            retries[commit.script] += commit.retries;
        }
        for (number, (script, times)) in outcome.scripts.iter().zip(times).enumerate() {
            let responses = Distribution::new(times.into_iter());
            let difference = responses.differs_from(&script.latencies);
            let difference = difference.or_else(|| responses.differs_from_moments(&script.whole.moments));
            self.promise(difference.is_none(), || {
                format!("script {number}: the response times are not those of the clients: {difference:?}")
            });
            let (counted, is_retried) = (script.whole.retries, !matches!(self.scenario.kind, Kind::Staged(_)));
            self.promise(counted >= retries[number] || !is_retried, || {
                format!("script {number}: the engine counted {counted} retries, but {} were made", retries[number])
            });
        }
    }

    /// Checks the times of each client of a load like sysbench's, in the measured part and the drain.
    pub fn judge_clients(&mut self, outcome: &Outcome, timetable: &Timetable) {
        let mut clients = vec![Vec::new(); timetable.numbers.len()];
        for commit in self.measured(&timetable.calendar) {
            clients[timetable.numbers[&commit.place]].push(self.times(commit, timetable)[0]);
        }
        let all = [&outcome.measure, &outcome.drain].map(|statistics| statistics.of_mode.clients());
        for (number, times) in clients.into_iter().enumerate() {
            let responses = Distribution::new(times.into_iter());
            let totals = all.iter().flatten().filter_map(|clients| clients.totals().get(number));
            let (mut transactions, mut busy_ns, mut extremes) = (0, 0, Vec::new());
            for one in totals.filter(|one| one.transactions > 0) {
                transactions += one.transactions;
                busy_ns += one.busy_ns;
                extremes.extend([one.shortest_ns, one.longest_ns]);
            }
            let extremes = extremes.iter().min().copied().zip(extremes.iter().max().copied());
            let difference = responses.differs_from_totals(transactions, busy_ns, extremes);
            self.promise(difference.is_none(), || {
                format!("client {number}: the totals are not those of the client: {}", difference.unwrap_or_default())
            });
        }
    }

    /// Checks that each task arrived when its schedule says, waited until a client of its application began a
    /// transaction, and ended when this transaction did.
    pub fn judge_task_times(&mut self, timetable: &Timetable) {
        let engine = self.engine;
        let mut commits = BTreeMap::new();
        for commit in &engine.truth.commits {
            commits.insert((timetable.numbers[&commit.place] / timetable.pool, commit.ended), commit);
        }
        let tasks: Vec<Task> = self.tasks().cloned().collect();
        for task in tasks {
            let planned = engine.arrivals.get(task.app).and_then(|arrivals| arrivals.get(task.number as usize));
            let planned = planned.map(|after| engine.truth.start as f64 + after);
            let is_planned = planned.is_some_and(|planned| (planned - task.arrived as f64).abs() <= 2.0);
            self.promise(is_planned, || format!("{task:?} should have arrived at {planned:?}"));
            if task.failure.is_some() {
                continue;
            }
            let began = commits.remove(&(task.app, task.ended())).map(|commit| commit.began);
            let is_right = began.is_some_and(|began| began.contains(task.arrived + task.waited));
            self.promise(is_right, || format!("{task:?} began at {began:?} and ended then, as the clients saw it"));
        }
        self.promise(commits.is_empty(), || format!("transactions of tasks were not reported: {:?}", commits.values()));
    }

    /// Checks the lines of the transaction log, for each client in the order of its transactions.
    pub fn judge_log_times(&mut self, timetable: &Timetable) {
        let engine = self.engine;
        if self.scenario.extras.log.as_ref().is_none_or(|log| log.aggregate.is_some() || log.sampling_rate < 1.0) {
            return;
        }
        let mut lines = BTreeMap::<u64, Vec<Vec<u64>>>::new();
        for line in engine.logs.iter().flat_map(|log| log.lines()) {
            // The words of failed and skipped transactions are no numbers.
            let Ok(words) = line.split(' ').map(str::parse).collect::<Result<Vec<u64>, _>>() else { continue };
            lines.entry(words[0]).or_default().push(words);
        }
        let mut commits = BTreeMap::<u64, Vec<&Commit>>::new();
        for commit in self.measured(&timetable.calendar) {
            commits.entry(engine.truth.clients[&commit.place].number as u64).or_default().push(commit);
        }
        let clients: Vec<u64> = lines.keys().chain(commits.keys()).copied().collect();
        for client in clients {
            let (Some(lines), Some(commits)) = (lines.remove(&client), commits.remove(&client)) else { continue };
            self.promise(lines.len() == commits.len(), || {
                format!("client {client}: the log has {} transactions instead of {}", lines.len(), commits.len())
            });
            let wrong = lines.iter().zip(&commits).find(|(line, commit)| !self.is_line_of(line, commit, timetable));
            self.promise(wrong.is_none(), || {
                format!("client {client}: a line is not that of its transaction: {wrong:?}")
            });
        }
        let left: Vec<_> = lines.keys().chain(commits.keys()).collect();
        self.promise(left.is_empty(), || {
            format!("the clients {left:?} have lines in the log or transactions, not both")
        });
    }

    /// Returns true if a line of the log, without failed and skipped transactions, has the numbers of a transaction.
    fn is_line_of(&self, line: &[u64], commit: &Commit, timetable: &Timetable) -> bool {
        let us = |ns: Nanos| (ns + 500) / 1000;
        let is_within = |us_found: u64, bounds: Bounds| (us(bounds.least)..=us(bounds.most)).contains(&us_found);
        let [response, _, lag] = self.times(commit, timetable);
        let ended_us = super::extras::clocks(commit.ended, None).wall.as_micros() as u64;
        let (lags, retries) = match line[6..] {
            [lag, retries] => (Some(lag), retries),
            [retries] => (None, retries),
            _ => return false,
        };
        is_within(line[2], response)
            && line[3] == commit.script as u64
            && (line[4] * 1_000_000 + line[5]).abs_diff(ended_us) <= 1
            && lags.is_none_or(|found| is_within(found, lag))
            && retries == commit.retries
    }
}
