//! The reports that one engine of a simulated run has made, and how its run ended.

use std::collections::{BTreeMap, BTreeSet};

use super::truth::Truth;
use super::world::world;
use crate::outcome::{Abortion, Began, Cause, Observer, Outcome, RunError, Tick};
use crate::statistics::LoadStatistics;
use crate::statistics::tasks::PooledTasks;
use ground::clock::{Nanos, Phase};

/// The reports of one engine of a simulated run, and what really happened.
pub struct Engine {
    pub outcome: Result<Outcome, RunError>,
    pub watch: Watch,
    pub truth: Truth,
    pub ends: Ends,
    /// The transaction logs of the engine's threads.
    pub logs: Vec<String>,
    pub clients: usize,
}

/// The facts about the end of a run.
pub struct Ends {
    pub ended: Nanos,
    /// True if all threads of the run had ended when the run ended.
    pub are_over: bool,
    pub was_interrupted: bool,
    pub was_alarmed: bool,
    /// The exit status with which the program was ended because its threads did not end. `None` if they did.
    pub given_up: Option<u8>,
}

/// The events that the observer of a simulated run has received.
#[derive(Default)]
pub struct Watch {
    /// The clients that were aborted.
    pub aborted: BTreeSet<usize>,
    /// The number of aborted clients that got no connection.
    pub unconnected: u64,
    /// The clients that were aborted by their programs, so that no SQLSTATE counts them.
    pub stopped: BTreeSet<usize>,
    /// The number of notes which say that statements may still be running.
    pub left_running: usize,
    pub ticks: BTreeMap<Phase, LoadStatistics>,
    /// The number of times that each task ended, which must be 1. A task is identified by its application and its
    /// number.
    pub tasks: BTreeMap<(usize, u32), usize>,
    /// The response times of the completed tasks.
    pub responses: Vec<Nanos>,
    /// The time at which all clients were ready.
    pub ready_at: Option<Nanos>,
    /// The time at which the load began.
    pub began: Option<Began>,
    /// The numbers of committed transactions and of clients that had not finished, if the main thread ended the run
    /// because other threads did not end. `None` otherwise.
    pub stuck: Option<(u64, usize)>,
    /// Descriptions of the errors of the engine that were found.
    pub defects: Vec<String>,
}

impl Observer for Watch {
    fn ready(&mut self, _clients: usize, _seconds: f64) {
        self.ready_at = Some(world(|world| world.main));
    }

    fn phase(&mut self, _phase: Phase, began: Option<&Began>) {
        self.began = self.began.or(began.copied());
    }

    fn tick(&mut self, tick: &Tick) {
        self.ticks.entry(tick.phase).or_default().merge(&tick.statistics);
        for task in tick.statistics.own.get::<PooledTasks>().into_iter().flat_map(|pooled| &pooled.tasks) {
            *self.tasks.entry((task.app, task.number)).or_default() += 1;
            self.responses.extend(task.failure.is_none().then(|| task.response()));
        }
    }

    fn aborted(&mut self, abortion: &Abortion) {
        self.aborted.insert(abortion.client);
        self.unconnected += u64::from(matches!(abortion.cause, Cause::Connect(_)));
        if matches!(abortion.cause, Cause::Program(_)) {
            self.stopped.insert(abortion.client);
        }
        let (kind, sqlstate) = (abortion.cause.kind(), abortion.cause.sqlstate());
        let has_sqlstate = sqlstate.is_some_and(|sqlstate| sqlstate.len() == 5);
        if has_sqlstate == (kind == "script") {
            self.defects.push(format!(
                "the kind {kind} of an aborted client does not fit SQLSTATE {sqlstate:?}: {}",
                abortion.cause
            ));
        }
    }

    fn note(&mut self, text: &str) {
        self.left_running += usize::from(text.contains("may still be running"));
    }

    fn stuck(&mut self, outcome: &Outcome) -> u8 {
        let phases = [&outcome.warmup, &outcome.measure, &outcome.drain];
        let committed = phases.iter().map(|statistics| statistics.counts.transactions()).sum();
        self.stuck = Some((committed, outcome.unfinished));
        GIVEN_UP
    }
}

/// The exit status of a program that ends because its threads do not end.
pub const GIVEN_UP: u8 = 77;
