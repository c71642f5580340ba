//! The events that one machine has reported, and its position (phase and second) in the run.

use events::{Connected, Done, Hello, PhaseStart, Summary, TaskRecord, TickRecord};

use super::error::LineError;
use ground::clock::Phase;

/// A position in the run: the beginning of a phase, or one of its seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub phase: Phase,
    /// The number of the second, counted from 0. `None` means the beginning of the phase.
    pub second: Option<u64>,
}

impl Default for Position {
    fn default() -> Self {
        Self::beginning(Phase::Warmup)
    }
}

impl Position {
    /// Returns the position at the beginning of a phase.
    pub fn beginning(phase: Phase) -> Self {
        Self { phase, second: None }
    }

    /// Returns the position of a second of a phase, counted from 0.
    pub fn of_second(phase: Phase, second: u32) -> Self {
        Self { phase, second: Some(second.into()) }
    }

    /// Returns the next position in the same phase.
    fn next(self) -> Self {
        Self { second: Some(self.second.map_or(0, |second| second + 1)), ..self }
    }
}

/// The state of a machine's stream: whether more events are expected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StreamState {
    #[default]
    Running,
    Done,
    /// The events ended, but the last one was not `done`.
    Lost,
}

/// Sums over the seconds of a phase.
#[derive(Debug, Clone, Copy, Default)]
pub struct PhaseSums {
    pub transactions: u64,
    pub seconds: f64,
}

/// The time at which the load began on a machine, on two clocks.
#[derive(Debug, Clone, Copy)]
pub struct LoadStart {
    /// The time on the clock of the engine's events, in seconds.
    pub t: f64,
    /// The time on the machine's wall clock, in Unix seconds.
    pub at: Option<f64>,
}

/// A task (one transaction of an application) that failed. Times are in seconds since the load began on its machine.
pub struct FailedTask {
    pub arrived: f64,
    pub ended: f64,
    pub task: TaskRecord,
}

/// The events of one machine. If a later step needs an event, its field is a pair of the event's time `t` and the
/// event.
#[derive(Default)]
pub struct MachineStream {
    pub name: String,
    pub state: StreamState,
    /// The next position (phase and second) for which the machine has not sent an event yet.
    pub next: Position,
    pub lines: u64,
    pub hello: Option<(f64, Hello)>,
    pub ready: Option<(f64, Connected)>,
    pub connected: Option<(f64, Connected)>,
    pub began: Option<LoadStart>,
    pub done: Option<(f64, Box<Done>)>,
    /// The tasks that failed in the current second. When the event `tick` of this second is read, they are added to it.
    tasks: Vec<FailedTask>,
    sums: [PhaseSums; 3],
}

impl MachineStream {
    /// Makes the stream of a machine from which no line has been read.
    pub fn new(name: String) -> Self {
        Self { name, ..Self::default() }
    }

    /// Returns true if more events are expected.
    pub fn is_running(&self) -> bool {
        self.state == StreamState::Running
    }

    /// Returns the number of clients that connected on the machine or, before they have connected, the planned number.
    /// `None` if the machine has reported neither.
    pub fn clients(&self) -> Option<u64> {
        let planned = || self.hello.as_ref()?.1.plan.get("clients")?.as_u64();
        self.connected.map(|(_, connected)| connected.clients.0).or_else(planned)
    }

    /// Returns the sums over the seconds of a phase.
    pub fn sums(&self, phase: Phase) -> PhaseSums {
        self.sums[phase as usize]
    }

    /// Converts a time `t` of the machine's events to seconds since the machine's load began. Before the load begins,
    /// `t` is returned unchanged.
    pub fn since_start(&self, t: f64) -> f64 {
        self.began.map_or(t, |began| t - began.t)
    }

    /// Records that a phase begins at the time `t`. Fails if this phase or a later one has begun already.
    pub fn begin_phase(&mut self, t: f64, start: &PhaseStart) -> Result<(), LineError> {
        let position = Position::beginning(start.phase);
        if position < self.next {
            return Err(LineError::LatePhase(phase_name(start.phase)));
        }
        self.began.get_or_insert(LoadStart { t, at: start.at });
        self.next = position.next();
        Ok(())
    }

    /// Records that a second is over, and returns the tasks that failed in this second. Fails if the second does not
    /// follow the seconds before it.
    pub fn end_second(&mut self, tick: &TickRecord) -> Result<Vec<FailedTask>, LineError> {
        let position = Position::of_second(tick.phase, tick.second);
        if tick.phase != self.next.phase || self.began.is_none() || position < self.next {
            return Err(LineError::SecondOutOfOrder { second: tick.second, phase: phase_name(tick.phase) });
        }
        self.next = position.next();
        let sums = &mut self.sums[tick.phase as usize];
        sums.transactions += tick.counts.transactions.0;
        sums.seconds += tick.seconds;
        Ok(self.take_tasks())
    }

    /// Adds a task that failed in the current second, and writes the machine's name into its event.
    pub fn add_task(&mut self, mut task: TaskRecord) {
        let arrived = self.since_start(task.arrived_s);
        let ended = arrived + task.waited_s + task.served_s;
        task.more.insert("machine".to_owned(), self.name.clone().into());
        self.tasks.push(FailedTask { arrived, ended, task });
    }

    /// Returns the tasks that failed in the current second, and removes them from the stream.
    pub fn take_tasks(&mut self) -> Vec<FailedTask> {
        std::mem::take(&mut self.tasks)
    }

    /// Records that the run is over on this machine. Fails if the numbers of transactions in its last event differ from
    /// the sums over its seconds, since events are then missing.
    pub fn finish(&mut self, t: f64, done: Box<Done>) -> Result<(), LineError> {
        let of = |summary: &Option<Summary>| summary.as_ref().map_or(0, |phase| phase.counts.transactions.0);
        for (phase, reported) in [
            (Phase::Warmup, of(&done.warmup)),
            (Phase::Measure, of(&done.measure)),
            (Phase::Drain, done.drain.transactions.0),
        ] {
            let counted = self.sums(phase).transactions;
            if counted != reported {
                return Err(LineError::MissingEvents { reported, counted, phase: phase_name(phase) });
            }
        }
        self.done = Some((t, done));
        self.state = StreamState::Done;
        Ok(())
    }
}

/// Returns the phase's name in events.
pub fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Warmup => "warmup",
        Phase::Measure => "measure",
        Phase::Drain => "drain",
    }
}
