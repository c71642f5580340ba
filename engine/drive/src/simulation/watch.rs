//! The reports that one engine of a simulated run has made, and how its run ended.

use std::collections::{BTreeMap, BTreeSet};

use super::calendar::PeriodName;
use super::truth::Truth;
use super::world::world;
use crate::outcome::{Abortion, Began, Cause, Observer, Outcome, RunError, Tick};
use crate::statistics::LoadStatistics;
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
    /// The times at which the tasks of each application arrive, in nanoseconds from the start of the load.
    pub arrivals: Vec<Vec<f64>>,
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
    /// The clients that were aborted, in the order of their abortions.
    pub abortions: Vec<AbortedClient>,
    /// The number of notes which say that statements may still be running.
    pub left_running: usize,
    pub ticks: BTreeMap<PeriodName, WatchedTick>,
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

/// The statistics of a second, as the observer received them.
pub struct WatchedTick {
    /// The length of the second, in seconds.
    pub seconds: f64,
    pub statistics: LoadStatistics,
}

/// A client that was aborted.
#[derive(Debug)]
pub struct AbortedClient {
    pub client: usize,
    pub reason: AbortedBy,
    /// The SQLSTATE under which the failed transaction is counted, if there is one.
    sqlstate: Option<String>,
}

/// The part of the system that caused the abortion of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbortedBy {
    /// The client got no connection.
    Connecting,
    /// The client's program ended the client, so that no SQLSTATE counts the transaction.
    Program,
    /// The server, or the connection to it, failed a transaction.
    Server,
}

impl AbortedClient {
    /// Returns true if the client was aborted in a transaction, which counts as failed.
    pub fn is_counted(&self) -> bool {
        self.reason == AbortedBy::Server
    }

    /// Returns the SQLSTATE with which the client got no connection; `None` if the client had one.
    pub fn unconnected(&self) -> Option<&str> {
        self.sqlstate.as_deref().filter(|_| self.reason == AbortedBy::Connecting)
    }
}

impl Watch {
    /// Returns the numbers of the clients that were aborted.
    pub fn aborted(&self) -> BTreeSet<usize> {
        self.abortions.iter().map(|abortion| abortion.client).collect()
    }

    /// Returns the number of aborted clients that got no connection.
    pub fn unconnected(&self) -> u64 {
        self.abortions.iter().filter(|abortion| abortion.unconnected().is_some()).count() as u64
    }
}

impl Observer for Watch {
    fn ready(&mut self, _clients: usize, _seconds: f64) {
        self.ready_at = Some(world(|world| world.main));
    }

    fn phase(&mut self, _phase: Phase, began: Option<&Began>) {
        self.began = self.began.or(began.copied());
    }

    fn tick(&mut self, tick: &Tick) {
        let watched = WatchedTick { seconds: tick.seconds, statistics: tick.statistics.clone() };
        let before = self.ticks.insert((tick.phase, tick.second), watched);
        if before.is_some() {
            self.defects.push(format!("the observer received second {} of {:?} twice", tick.second, tick.phase));
        }
        for task in tick.statistics.of_mode.tasks().into_iter().flat_map(|pooled| &pooled.tasks) {
            *self.tasks.entry((task.app, task.number)).or_default() += 1;
            self.responses.extend(task.failure.is_none().then(|| task.response()));
        }
    }

    fn aborted(&mut self, abortion: &Abortion) {
        let reason = match abortion.cause {
            Cause::Connect(_) => AbortedBy::Connecting,
            Cause::Program(_) => AbortedBy::Program,
            _ => AbortedBy::Server,
        };
        let sqlstate = abortion.cause.counted_sqlstate().map(str::to_owned);
        self.abortions.push(AbortedClient { client: abortion.client, reason, sqlstate });
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
