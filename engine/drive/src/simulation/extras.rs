//! Features that only some simulated runs have: a planned start, logs, debugging lines, threads that hang, and rarer
//! actions of the clients' programs.

use std::path::Path;
use std::time::Duration;

use super::scenario::Draw;
use crate::plan::Notes;
use crate::start_at::{Moment, StartAt};
use crate::statistics::log::LogPlan;
use ground::clock::{Clocks, MS, Nanos, nanos};
use ground::random::Random;

/// The time since 1970 that the machine's wall clock shows when the run's clock shows 0.
const WALL: Duration = Duration::from_secs(1_795_000_000);
const MONOTONIC: Nanos = 5_000_000_000_000;

/// A number that is combined with the seed, so that the features are drawn from a random sequence of their own. Drawing
/// more of them does not change the rest of the scenario.
const STREAM: u64 = 0x6a09_e667_f3bc_c908;

/// The features that some simulated runs have and others do not.
#[derive(Debug, Clone, Default)]
pub struct Extras {
    pub start: Option<PlannedStart>,
    pub log: Option<Log>,
    pub notes: Notes,
    /// The time at which thread 0 begins to compute without end.
    pub hangs_at: Option<Nanos>,
    /// The time at which all waits for events begin to fail.
    pub fails_at: Option<Nanos>,
    /// The thread for which the simulated system cannot make an event loop, if there is one.
    pub unmade: Option<usize>,
    /// The probability that, some time after a reply, the server ends the session.
    pub dismissal: f64,
    /// The probability that, some time after a reply, the server sends an unsolicited message.
    pub chatter: f64,
    /// True if servers ignore cancel requests.
    pub is_deaf: bool,
    /// True if programs do rarer actions, too. Scripts need no server or leave a transaction open. Programs like
    /// sysbench's have two connections, prepare statements, count transactions themselves and end early. Recorded
    /// sessions have errors and drop their prepared statements.
    pub is_rich: bool,
    /// True if the run is over once each client has executed the actions that come before its first transaction.
    pub is_command: bool,
    /// True if the load does not use a server.
    pub is_alone: bool,
    /// True if the time of a closed loop begins when its clients begin to connect.
    pub time_includes_connecting: bool,
}

/// A start time on which the engines of a run have agreed.
#[derive(Debug, Clone)]
pub struct PlannedStart {
    /// The start on the run's clock, unless the wall clock is set meanwhile.
    pub at: Nanos,
    pub is_wall: bool,
    /// The time at which somebody sets the wall clock, and the nanoseconds by which it changes.
    pub set: Option<(Nanos, i64)>,
    /// The simulated standard input, if the start time is read from it. `None` if the option has the start time.
    pub input: Option<SimulatedInput>,
}

/// The simulated standard input: the pieces that arrive, and the times at which they arrive.
#[derive(Debug, Clone)]
pub struct SimulatedInput {
    pub parts: Vec<(Nanos, Input)>,
    /// True if the pieces together are a valid start time.
    pub is_time: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    Bytes(String),
    End,
    Failure,
}

/// The options of the transaction log.
#[derive(Debug, Clone)]
pub struct Log {
    pub aggregate: Option<Duration>,
    pub sampling_rate: f64,
    /// True if the log cannot be opened.
    pub is_unopened: bool,
    pub failures_detailed: bool,
}

impl Extras {
    /// Draws the features of the run with this seed.
    pub fn draw(seed: u64) -> Self {
        let mut draw = Draw(Random::seeded(seed ^ STREAM));
        let start = draw.happens(0.15).then(|| PlannedStart::draw(&mut draw));
        let log = draw.happens(0.15).then(|| Log {
            aggregate: draw.happens(0.4).then(|| Duration::from_secs(draw.within(1, 3))),
            sampling_rate: if draw.happens(0.2) { draw.magnitude(0.01, 0.9) } else { 1.0 },
            is_unopened: draw.happens(0.03),
            failures_detailed: draw.happens(0.5),
        });
        Self {
            start,
            log,
            notes: Notes { failures: draw.happens(0.15), steps: draw.happens(0.15) },
            hangs_at: draw.happens(0.03).then(|| draw.within(0, 1500) * MS),
            fails_at: draw.happens(0.02).then(|| draw.within(0, 1500) * MS),
            unmade: draw.happens(0.01).then(|| draw.within(0, 3) as usize),
            dismissal: if draw.happens(0.15) { draw.magnitude(0.001, 0.1) } else { 0.0 },
            chatter: if draw.happens(0.15) { draw.magnitude(0.001, 0.3) } else { 0.0 },
            is_deaf: draw.happens(0.1),
            is_rich: draw.happens(0.5),
            is_command: draw.happens(0.05),
            is_alone: draw.happens(0.02),
            time_includes_connecting: draw.happens(0.5),
        }
    }
}

impl PlannedStart {
    fn draw(draw: &mut Draw) -> Self {
        let at = if draw.happens(0.2) { 0 } else { draw.within(0, 1500) * MS };
        let is_wall = draw.happens(0.5);
        let set = (is_wall && draw.happens(0.3)).then(|| {
            let by = draw.within(0, 2000) as i64 - 1000;
            (draw.within(0, 1000) * MS, by * MS as i64)
        });
        let mut start = Self { at, is_wall, set, input: None };
        start.input = draw.happens(0.5).then(|| start.draw_input(draw));
        start
    }

    fn draw_input(&self, draw: &mut Draw) -> SimulatedInput {
        let (mut text, is_time) = match draw.within(0, 11) {
            0 => ("soon\n".to_owned(), false),
            1 => ("x".repeat(300), false),
            2 => (format!("{}\n", WALL.as_secs() + 3600), false),
            3 => (String::new(), false),
            _ => (format!("{}\n", self.text()), true),
        };
        let (mut parts, mut at) = (Vec::new(), 0);
        while !text.is_empty() {
            at += draw.within(0, 400) * MS;
            let rest = if draw.happens(0.3) {
                text.split_off(draw.within(1, text.len() as u64) as usize)
            } else {
                String::new()
            };
            parts.push((at, Input::Bytes(text)));
            text = rest;
        }
        if !is_time && parts.is_empty() {
            parts.push((draw.within(0, 1000) * MS, if draw.happens(0.5) { Input::End } else { Input::Failure }));
        }
        SimulatedInput { parts, is_time }
    }

    fn text(&self) -> String {
        let seconds = |time: Nanos| format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
        if self.is_wall {
            seconds(nanos(WALL) + self.at)
        } else {
            format!("monotonic:{}", seconds(MONOTONIC + self.at))
        }
    }

    /// Returns the start time as the plan of a run contains it.
    pub fn plan(&self) -> StartAt {
        match (&self.input, self.is_wall) {
            (Some(_), _) => StartAt::StandardInput,
            (None, true) => StartAt::At(Moment::Wall(WALL + Duration::from_nanos(self.at))),
            (None, false) => StartAt::At(Moment::Monotonic(Duration::from_nanos(MONOTONIC + self.at))),
        }
    }

    /// Returns the time on the run's clock at which the planned start is reached, but not before `from`.
    pub fn comes(&self, from: Nanos) -> Nanos {
        let Some((set_at, by)) = self.set else { return self.at.max(from) };
        // Before the clock is set it shows the time of the run, and after that it shows `by` more.
        let after = self.at.saturating_add_signed(-by).max(set_at);
        if self.at < set_at && from < set_at { self.at.max(from) } else { after.max(from) }
    }
}

/// Returns the time that each of the machine's clocks shows when the run's clock shows `now`. `set` says when and by
/// how much the wall clock is set.
pub fn clocks(now: Nanos, set: Option<(Nanos, i64)>) -> Clocks {
    let by = set.filter(|(at, _)| *at <= now).map_or(0, |(_, by)| by);
    let wall = WALL + Duration::from_nanos(now);
    let wall =
        if by < 0 { wall - Duration::from_nanos(by.unsigned_abs()) } else { wall + Duration::from_nanos(by as u64) };
    Clocks { run: now, wall, monotonic: MONOTONIC + now }
}

impl Log {
    /// Returns the options of a transaction log whose files are in `directory`.
    pub fn plan(&self, directory: &Path, throttled: bool) -> LogPlan {
        let name = if self.is_unopened { "missing/log" } else { "log" };
        LogPlan {
            prefix: directory.join(name).display().to_string(),
            aggregate: self.aggregate,
            sampling_rate: self.sampling_rate,
            throttled,
            limited: true,
            retried: true,
            failures_detailed: self.failures_detailed,
            other_failures: true,
            origin: WALL,
        }
    }
}
