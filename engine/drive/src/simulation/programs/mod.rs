//! The programs of simulated clients: scripts, programs that manage their connections as sysbench's do, and recorded
//! sessions. They record what really happened in their transactions, and check that the engine hands them the right
//! answers.

mod replay;
mod script;
mod staged;

use std::sync::Arc;

use super::scenario::{Kind, Scenario};
use super::truth::{ClientTruth, Place};
use super::world::world;
use ground::clock::Nanos;
use ground::random::Random;
use replay::Replay;
use script::Script;
use staged::Staged;
use wire::statement::{Hole, QueryMode, Statement};
use workload::{CommandInfo, Program, ReplayActions, ScriptActions, ScriptInfo, StagedActions, Workload};

/// A step of a simulated script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Begin,
    Select { kept: bool },
    Update,
    End,
    Sleep,
    Local,
    Pause,
    StartPipeline,
    SyncPipeline,
    EndPipeline,
}

/// The simulated scripts. The first is a single statement; the second is a transaction that uses the rows of its
/// queries; the third has a pipeline, and is used where the protocol allows pipelines; the fourth needs no server; the
/// fifth leaves a transaction open.
const SCRIPTS: [&[Step]; 5] = [
    &[Step::Local, Step::Select { kept: false }],
    &[Step::Begin, Step::Select { kept: true }, Step::Sleep, Step::Update, Step::Select { kept: true }, Step::End],
    &[
        Step::Select { kept: true },
        Step::StartPipeline,
        Step::Begin,
        Step::Update,
        Step::SyncPipeline,
        Step::Select { kept: false },
        Step::End,
        Step::EndPipeline,
    ],
    &[Step::Local, Step::Pause, Step::Sleep],
    &[Step::Begin, Step::Select { kept: true }],
];

/// The index of the script that leaves a transaction open.
const OPEN_SCRIPT: usize = 4;

/// The workloads of a scenario's clients.
pub struct Workloads {
    mode: QueryMode,
    /// The indexes of the scripts that the scenario uses.
    scripts: Vec<usize>,
    is_timed: bool,
    is_announced: bool,
    is_rich: bool,
    is_pooled: bool,
    statements: Arc<Vec<Vec<Statement>>>,
}

impl Workloads {
    /// Makes the workloads of `scenario`.
    pub fn of(scenario: &Scenario) -> Self {
        let statements = SCRIPTS.iter().enumerate().map(|(number, steps)| {
            let all = steps.iter().enumerate().map(|(index, step)| statement(number * 10 + index, *step));
            all.collect()
        });
        let most = if scenario.mode == QueryMode::Simple { 2 } else { 3 };
        let others = if scenario.extras.is_rich { 3..SCRIPTS.len() } else { 0..0 };
        Self {
            mode: scenario.mode,
            scripts: (0..scenario.scripts.min(most)).chain(others).collect(),
            is_timed: scenario.options.timed_commands,
            is_announced: scenario.extras.notes.steps,
            is_rich: scenario.extras.is_rich,
            is_pooled: matches!(scenario.kind, Kind::Pooled { .. }),
            statements: Arc::new(statements.collect()),
        }
    }
}

/// Returns the statement of a step. The parameter of a SELECT is a number that the server returns in a row, by which
/// the program recognizes the answer to its own statement.
fn statement(id: usize, step: Step) -> Statement {
    let hole = || vec![Hole { slot: 0, name: "number".to_owned() }];
    let (pieces, holes): (Vec<&str>, _) = match step {
        Step::Begin => (vec!["BEGIN"], Vec::new()),
        Step::End => (vec!["END"], Vec::new()),
        Step::Update => (vec!["UPDATE ", ""], hole()),
        _ => (vec!["SELECT ", ""], hole()),
    };
    let pieces = pieces.into_iter().map(|piece| piece.as_bytes().to_vec()).collect();
    Statement::new(id, &format!("P{id}"), pieces, holes)
}

impl Workloads {
    fn infos(&self) -> Vec<ScriptInfo> {
        let command = |step: &Step| CommandInfo {
            line: format!("\\{step:?}"),
            is_sql: !matches!(step, Step::Sleep | Step::Local | Step::Pause),
        };
        let scripts = self.scripts.iter().map(|number| ScriptInfo {
            description: "simulated".to_owned(),
            weight: 1,
            commands: SCRIPTS[*number].iter().map(command).collect(),
        });
        scripts.collect()
    }
}

impl Workload<ScriptActions> for Workloads {
    fn scripts(&self) -> Vec<ScriptInfo> {
        self.infos()
    }

    fn client(&self, client: usize, random: Random) -> Box<dyn Program<ScriptActions>> {
        let place = world(|world| world.truth.place(client));
        let mut script = Script::new(place, Arc::clone(&self.statements), random);
        script.scripts.clone_from(&self.scripts);
        (script.is_timed, script.is_announced) = (self.is_timed, self.is_announced);
        (script.is_rich, script.is_pooled) = (self.is_rich, self.is_pooled);
        Box::new(script)
    }
}

impl Workload<StagedActions> for Workloads {
    fn scripts(&self) -> Vec<ScriptInfo> {
        self.infos()
    }

    fn client(&self, client: usize, random: Random) -> Box<dyn Program<StagedActions>> {
        let place = world(|world| world.truth.place(client));
        Box::new(Staged::new(place, Arc::clone(&self.statements), random, self.is_rich))
    }
}

impl Workload<ReplayActions> for Workloads {
    fn scripts(&self) -> Vec<ScriptInfo> {
        self.infos()
    }

    fn client(&self, client: usize, random: Random) -> Box<dyn Program<ReplayActions>> {
        let place = world(|world| world.truth.place(client));
        Box::new(Replay::new(place, Arc::clone(&self.statements), random, self.mode, self.is_rich))
    }
}

/// Changes the record of what really happened to a client. `place` has the indexes of the client's thread and of the
/// client in the thread.
fn truth<R>(place: Place, change: impl FnOnce(&mut ClientTruth) -> R) -> R {
    world(|world| change(world.truth.client(place)))
}

/// Records that a transaction begins. Also checks that the engine has read the clock since the last answer.
fn begin(place: Place) {
    world(|world| {
        let readings = world.threads[place.0].readings;
        let client = world.truth.client(place);
        if client.readings.take() == Some(readings) {
            let defect = "the clock was not read between an answer and the next transaction".to_owned();
            world.truth.defects.push(defect);
        }
        world.truth.begin(place);
    });
}

/// Records that the engine asks a program for an action of its transaction. The first such action begins the
/// transaction.
fn start(place: Place) {
    world(|world| {
        let now = world.threads[place.0].now;
        world.truth.start(place, now);
    });
}

/// Records that a program has committed its transaction.
fn commit(place: Place) {
    world(|world| world.truth.end(place));
}

/// The longest time for which a simulated program sleeps.
pub const LONGEST_SLEEP: Nanos = 50_000_000;
