//! One machine: what it has said so far, and how far it has come.

use serde_json::{Map, Value};

use super::said::{Clients, Done, Hello, PhaseBegins, Second, Summary, Task};
use ground::clock::Phase;

/// A place in the run: a phase's beginning, or after it one of its seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub phase: Phase,
    /// 0 is the beginning, second `s` is `s + 1`.
    step: u64,
}

impl Place {
    pub const START: Self = Self::beginning(Phase::Warmup);

    /// Where a phase begins.
    pub const fn beginning(phase: Phase) -> Self {
        Self { phase, step: 0 }
    }

    /// A second of a phase.
    pub fn second(phase: Phase, second: u32) -> Self {
        Self { phase, step: u64::from(second) + 1 }
    }

    /// What comes next.
    fn after(self) -> Self {
        Self { step: self.step + 1, ..self }
    }

    /// The number of the second, if it is one.
    pub fn number(self) -> Option<u64> {
        self.step.checked_sub(1)
    }
}

/// Whether more is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Running,
    Done,
    Lost,
}

/// What the seconds of a phase came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counted {
    pub transactions: u64,
    pub seconds: f64,
}

/// The beginning of the load.
#[derive(Debug, Clone, Copy)]
pub struct Began {
    /// On the clock of the engine's own events.
    pub t: f64,
    /// On the machine's clock.
    pub at: Option<f64>,
}

/// A task that failed, on a clock that begins with the load, seconds.
pub struct FailedTask {
    pub arrived: f64,
    pub ended: f64,
    pub body: Map<String, Value>,
}

/// A machine's part.
pub struct Stream {
    pub name: String,
    pub state: State,
    /// Everything before this has been said.
    pub next: Place,
    pub lines: u64,
    pub hello: Option<Hello>,
    pub ready: Option<Clients>,
    pub connected: Option<Clients>,
    pub began: Option<Began>,
    pub done: Option<Box<Done>>,
    /// Failed tasks of the second that is not yet over.
    tasks: Vec<FailedTask>,
    counted: [Counted; 3],
}

impl Stream {
    /// A machine that has said nothing.
    pub fn new(name: String) -> Self {
        Self {
            name,
            state: State::Running,
            next: Place::START,
            lines: 0,
            hello: None,
            ready: None,
            connected: None,
            began: None,
            done: None,
            tasks: Vec::new(),
            counted: Default::default(),
        }
    }

    /// Whether more is to come.
    pub fn is_running(&self) -> bool {
        self.state == State::Running
    }

    /// How many clients it has, as far as it has said so.
    pub fn clients(&self) -> Option<u64> {
        let planned = || self.hello.as_ref()?.plan.get("clients")?.as_u64();
        self.connected.map(|connected| connected.clients.0).or_else(planned)
    }

    /// What the seconds of a phase came to.
    pub fn counted(&self, phase: Phase) -> Counted {
        self.counted[phase as usize]
    }

    /// A time of its events as seconds since its load began; as it is if the load has not begun.
    pub fn since_beginning(&self, t: f64) -> f64 {
        self.began.map_or(t, |began| t - began.t)
    }

    /// A phase begins. The error is the rest of a sentence.
    pub fn begin(&mut self, phase: &PhaseBegins) -> Result<(), String> {
        let place = Place::beginning(phase.phase);
        if place < self.next {
            return Err(format!("begins the phase {} a second time or too late", name_of(phase.phase)));
        }
        self.began.get_or_insert(Began { t: phase.t, at: phase.at });
        self.next = place.after();
        Ok(())
    }

    /// A second is over. The error is the rest of a sentence.
    pub fn pass(&mut self, second: &Second<'_>) -> Result<(), String> {
        let place = second.place();
        if second.phase != self.next.phase || self.began.is_none() || place < self.next {
            return Err(format!("has second {} of {} out of its order", second.second, name_of(second.phase)));
        }
        self.next = place.after();
        let counted = &mut self.counted[second.phase as usize];
        counted.transactions += second.transactions.0;
        counted.seconds += second.seconds;
        Ok(())
    }

    /// A task has failed in the second that is not yet over.
    pub fn keep(&mut self, task: Task) {
        let Task { arrived_s, waited_s, served_s, mut body } = task;
        let arrived = self.since_beginning(arrived_s);
        body.insert("machine".to_owned(), self.name.clone().into());
        self.tasks.push(FailedTask { arrived, ended: arrived + waited_s + served_s, body });
    }

    /// The tasks that have failed since they were last taken.
    pub fn take_tasks(&mut self) -> Vec<FailedTask> {
        std::mem::take(&mut self.tasks)
    }

    /// The run is over here. The error is the rest of a sentence: events that are missing.
    pub fn end(&mut self, done: Box<Done>) -> Result<(), String> {
        let of = |summary: &Option<Summary>| summary.as_ref().map_or(0, |phase| phase.transactions.0);
        for (phase, reported) in [
            (Phase::Warmup, of(&done.warmup)),
            (Phase::Measure, of(&done.measure)),
            (Phase::Drain, done.drain.transactions.0),
        ] {
            let counted = self.counted(phase).transactions;
            if counted != reported {
                return Err(format!(
                    "reports {reported} transactions of {}, and its seconds have {counted}: events are missing",
                    name_of(phase)
                ));
            }
        }
        self.done = Some(done);
        self.state = State::Done;
        Ok(())
    }
}

/// As the events have it.
pub fn name_of(phase: Phase) -> &'static str {
    match phase {
        Phase::Warmup => "warmup",
        Phase::Measure => "measure",
        Phase::Drain => "drain",
    }
}
