//! The parts of a simulated run, which are its seconds and its phases: what the engine counted in each of them, and what
//! really happened.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::calendar::{Calendar, PeriodName};
use super::ended::{Commit, Failure};
use super::promises::Judge;
use crate::outcome::Outcome;
use crate::statistics::LoadStatistics;
use ground::clock::{Nanos, Phase};

/// The transactions that ended in one part of a run.
#[derive(Debug, Default, Clone)]
pub struct Part<'a> {
    pub commits: Vec<&'a Commit>,
    /// The transactions that failed, and after which their clients began others.
    pub failed: Vec<Failure>,
    /// The transactions whose failure aborted their clients.
    pub aborted: Vec<Failure>,
    /// The transactions that were open at the end of the run, so that their clients do not know whether they failed.
    pub possible: Vec<Failure>,
}

/// A part of a run as the engine counted it, and as it really was.
pub struct Compared<'a> {
    /// The number of the second; `None` if the part is a whole phase.
    pub period: Option<PeriodName>,
    pub phase: Phase,
    pub counted: Cow<'a, LoadStatistics>,
    pub part: Part<'a>,
}

/// What is known of the end of a transaction that was not committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// It failed, and its client began another one.
    Failed,
    /// Its failure aborted its client.
    Aborted,
    /// It was open at the end of the run. It may have failed, or the run may have ended before.
    Open,
}

impl<'a> Part<'a> {
    fn merge(&mut self, other: &Part<'a>) {
        self.commits.extend_from_slice(&other.commits);
        self.failed.extend_from_slice(&other.failed);
        self.aborted.extend_from_slice(&other.aborted);
        self.possible.extend_from_slice(&other.possible);
    }

    /// Returns the transactions that failed in this part without doubt.
    pub fn certain(&self) -> impl Iterator<Item = &Failure> {
        self.failed.iter().chain(&self.aborted)
    }
}

impl Compared<'_> {
    /// Returns the name of the part for messages.
    pub fn name(&self) -> String {
        match self.period {
            Some((phase, second)) => format!("second {second} of {phase:?}"),
            None => format!("the whole {:?}", self.phase),
        }
    }
}

impl<'a> Judge<'a> {
    /// Returns the calendar of the run, if its load has begun.
    pub fn calendar(&self, outcome: &Outcome) -> Option<Calendar> {
        let (scenario, truth) = (self.scenario, &self.engine.truth);
        let has_begun = !truth.starts.is_empty();
        has_begun.then(|| Calendar::new(truth.start, scenario.warmup, self.time(outcome), scenario.slices))
    }

    /// Returns false if a signal has ended the load. The threads notice such an end late, each at a time of its own, and
    /// count in the measured part what ends until then.
    pub fn is_end_known(&self) -> bool {
        !self.engine.ends.was_alarmed
    }

    /// Returns the seconds and the phases of the run. If a signal has ended the load, the measured part and the drain
    /// are one phase.
    pub fn parts(&self, calendar: &Calendar, outcome: &'a Outcome) -> Vec<Compared<'a>> {
        let mut parts = self.ended_by_period(calendar);
        let ticks = &self.engine.watch.ticks;
        ticks.keys().for_each(|period| {
            parts.entry(*period).or_default();
        });
        let mut phases = [Phase::Warmup, Phase::Measure, Phase::Drain].map(|phase| {
            let mut part = Part::default();
            parts.iter().filter(|((of, _), _)| *of == phase).for_each(|(_, one)| part.merge(one));
            let counted = match phase {
                Phase::Warmup => &outcome.warmup,
                Phase::Measure => &outcome.measure,
                Phase::Drain => &outcome.drain,
            };
            Compared { period: None, phase, counted: Cow::Borrowed(counted), part }
        });
        if !self.is_end_known() {
            parts.retain(|(phase, _), _| *phase == Phase::Warmup);
            let [_, measure, drain] = &mut phases;
            measure.counted.to_mut().merge(&drain.counted);
            measure.part.merge(&std::mem::take(&mut drain.part));
            drain.counted = Cow::default();
        }
        let seconds = parts.into_iter().map(|(period, part)| {
            let counted = ticks.get(&period).map_or_else(Cow::default, |tick| Cow::Borrowed(&tick.statistics));
            Compared { period: Some(period), phase: period.0, counted, part }
        });
        seconds.chain(phases).collect()
    }

    fn ended_by_period(&self, calendar: &Calendar) -> BTreeMap<PeriodName, Part<'a>> {
        let (engine, mut parts) = (self.engine, BTreeMap::<PeriodName, Part<'a>>::new());
        for commit in &engine.truth.commits {
            parts.entry(calendar.period(commit.ended)).or_default().commits.push(commit);
        }
        let failures = engine.truth.failures.iter().map(|failure| (failure.clone(), Known::Failed));
        for (failure, known) in failures.chain(self.open()) {
            let part = parts.entry(calendar.period(failure.at)).or_default();
            match known {
                Known::Failed => part.failed.push(failure),
                Known::Aborted => part.aborted.push(failure),
                Known::Open => part.possible.push(failure),
            }
        }
        parts
    }

    /// Returns the transactions that were open at the end of the run, except those whose clients were aborted by their
    /// programs.
    fn open(&self) -> Vec<(Failure, Known)> {
        let (truth, watch) = (&self.engine.truth, &self.engine.watch);
        let failures = truth.clients.iter().filter_map(|(place, client)| {
            let failure = client.failure(*place)?;
            match watch.abortions.iter().find(|abortion| abortion.client == client.number) {
                Some(abortion) if abortion.is_counted() => Some((failure, Known::Aborted)),
                Some(_) => None,
                None => Some((failure, Known::Open)),
            }
        });
        failures.collect()
    }

    /// Returns the transactions that were committed after the warm-up.
    pub fn measured(&self, calendar: &Calendar) -> impl Iterator<Item = &'a Commit> {
        let calendar = *calendar;
        self.engine.truth.commits.iter().filter(move |commit| calendar.period(commit.ended).0 != Phase::Warmup)
    }

    /// Checks that the event loop read the clock after each transaction. Without that no transaction has an end.
    pub fn judge_readings(&mut self) {
        let unread = self.engine.truth.commits.iter().find(|commit| commit.ended == Nanos::MAX);
        self.promise(unread.is_none(), || format!("the clock was not read after a transaction: {unread:?}"));
    }
}
