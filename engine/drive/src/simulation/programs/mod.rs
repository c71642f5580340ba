//! The programs of simulated clients: scripts, programs that manage their connections as sysbench's do, and recorded sessions. They
//! note the truth about their transactions, and judge what they are given.

use std::sync::Arc;
use std::time::Duration;

use super::scenario::Scenario;
use super::truth::ClientTruth;
use super::world::world;
use ground::clock::Nanos;
use ground::random::Random;
use wire::statement::{Hole, QueryMode, Statement};
use wire::value::Value;
use wire::{ResultSet, Rows};
use workload::recorded::{Expected, Recorded, Scheduled};
use workload::{
    AbortReason, Action, ActionResult, CommandInfo, Management, Program, RecordedRequest, ReplayActions, ScriptActions,
    ScriptInfo, ScriptStep, SessionStep, StagedActions, StagedRequest, StartPipeline, Workload,
};

/// A step of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Begin,
    Select { kept: bool },
    Update,
    End,
    Sleep,
    Local,
    StartPipeline,
    SyncPipeline,
    EndPipeline,
}

/// The scripts: the first is one statement, the second a transaction with a wanted row, the third has a pipeline where the protocol
/// allows one.
const SCRIPTS: [&[Step]; 3] = [
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
];

/// What the clients of a scenario do.
pub struct Workloads {
    mode: QueryMode,
    scripts: usize,
    is_timed: bool,
    statements: Arc<Vec<Vec<Statement>>>,
}

impl Workloads {
    /// Those of `scenario`.
    pub fn of(scenario: &Scenario) -> Self {
        let statements = SCRIPTS.iter().enumerate().map(|(number, steps)| {
            let all = steps.iter().enumerate().map(|(index, step)| statement(number * 10 + index, *step));
            all.collect()
        });
        Self {
            mode: scenario.mode,
            scripts: if scenario.mode == QueryMode::Simple { scenario.scripts.min(2) } else { scenario.scripts },
            is_timed: scenario.options.timed_commands,
            statements: Arc::new(statements.collect()),
        }
    }
}

/// The statement of a step. Its number returns with its row.
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
        let command =
            |step: &Step| CommandInfo { line: format!("{step:?}"), is_sql: !matches!(step, Step::Sleep | Step::Local) };
        let scripts = SCRIPTS.iter().take(self.scripts).map(|steps| ScriptInfo {
            description: "simulated".to_owned(),
            weight: 1,
            commands: steps.iter().map(command).collect(),
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
        let (statements, scripts) = (Arc::clone(&self.statements), self.scripts);
        let (steps, is_timed, values) = (SCRIPTS[0], self.is_timed, [Value::Int(0)]);
        Box::new(Script { place, statements, scripts, is_timed, steps, script: 0, at: 0, values, random })
    }
}

impl Workload<StagedActions> for Workloads {
    fn scripts(&self) -> Vec<ScriptInfo> {
        self.infos()
    }

    fn client(&self, client: usize, random: Random) -> Box<dyn Program<StagedActions>> {
        Box::new(Staged {
            place: world(|world| world.truth.place(client)),
            statements: Arc::clone(&self.statements),
            random,
            stage: StagedStage::Start,
            at: 0,
            is_connected: false,
            was_refused: false,
            has_tried: false,
            rolls_back: false,
            values: [Value::Int(0)],
        })
    }
}

impl Workload<ReplayActions> for Workloads {
    fn scripts(&self) -> Vec<ScriptInfo> {
        self.infos()
    }

    fn client(&self, client: usize, random: Random) -> Box<dyn Program<ReplayActions>> {
        let (place, statements) = (world(|world| world.truth.place(client)), Arc::clone(&self.statements));
        Box::new(Replay { place, statements, mode: self.mode, random, at: ReplayPlace::default() })
    }
}

/// Changes the truth about a client.
fn truth<R>(place: (usize, usize), change: impl FnOnce(&mut ClientTruth) -> R) -> R {
    world(|world| change(world.truth.client(place)))
}

/// A transaction begins: after an answer the clock must have been read.
fn begin(place: (usize, usize)) {
    world(|world| {
        let readings = world.strands[place.0].readings;
        let client = world.truth.client(place);
        if client.readings.take() == Some(readings) {
            let defect = "the clock was not read between an answer and the next transaction".to_owned();
            world.truth.defects.push(defect);
        }
        world.truth.client(place).begin();
    });
}

/// A program is asked for an action of its transaction, the first one or a later one.
fn start(place: (usize, usize)) {
    world(|world| {
        let now = world.strands[place.0].now;
        world.truth.start(place, now);
    });
}

/// A client of pgbench's kind.
struct Script {
    place: (usize, usize),
    statements: Arc<Vec<Vec<Statement>>>,
    scripts: usize,
    is_timed: bool,
    steps: &'static [Step],
    script: usize,
    at: usize,
    values: [Value; 1],
    random: Random,
}

impl Program for Script {
    fn begin(&mut self, choose: &mut Random) -> usize {
        begin(self.place);
        self.script = choose.range(0, self.scripts as i64 - 1) as usize;
        self.steps = SCRIPTS[self.script];
        self.at = 0;
        self.script
    }

    fn retry(&mut self) {
        truth(self.place, ClientTruth::retry);
        self.at = 0;
    }

    fn pause(&mut self) -> Duration {
        Duration::from_micros(self.random.range(0, 50_000) as u64)
    }

    fn next_action(&mut self) -> Action<'_> {
        if self.at == 0 {
            start(self.place);
        }
        let Some(step) = self.steps.get(self.at).copied() else {
            truth(self.place, ClientTruth::commit);
            return Action::End;
        };
        let command = self.at;
        self.at += 1;
        match step {
            Step::Local if self.is_timed => Action::Step(ScriptStep::Local { command }),
            Step::Local => self.next_action(),
            Step::Sleep => Action::Sleep { command, time: Duration::from_micros(self.random.range(0, 3000) as u64) },
            Step::StartPipeline => {
                Action::Request(StartPipeline { command, statements: &self.statements[self.script][command + 1..] })
            }
            Step::SyncPipeline => Action::Step(ScriptStep::SyncPipeline { command }),
            Step::EndPipeline => Action::Step(ScriptStep::EndPipeline { command }),
            Step::Begin | Step::Select { .. } | Step::Update | Step::End => {
                let last = self.at == self.steps.len();
                truth(self.place, |client| client.is_last = last);
                self.values = [Value::Int(self.random.range(0, 1_000_000_000))];
                let rows = if step == (Step::Select { kept: true }) { Rows::Kept } else { Rows::Skipped };
                let statement = &self.statements[self.script][command];
                Action::Query { command, statement, values: &self.values, rows, last }
            }
        }
    }

    /// The row is that of the statement, and no older one.
    fn store(&mut self, results: &[ResultSet]) -> Result<(), AbortReason> {
        let mut wanted = Vec::new();
        self.values[0].write_text(&mut wanted);
        let is_right = matches!(results, [result] if result.rows == 1 && result.last == [Some(wanted)]);
        if !is_right {
            world(|world| world.truth.defects.push(format!("a statement got rows that are not its own: {results:?}")));
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StagedStage {
    Start,
    Load,
    Stop,
}

/// Why a client gives up.
static NO_CONNECTION: AbortReason = AbortReason::Script { reason: String::new() };

/// A client of sysbench's kind.
struct Staged {
    place: (usize, usize),
    statements: Arc<Vec<Vec<Statement>>>,
    random: Random,
    stage: StagedStage,
    at: usize,
    is_connected: bool,
    was_refused: bool,
    has_tried: bool,
    rolls_back: bool,
    values: [Value; 1],
}

impl Staged {
    fn restart(&mut self) {
        if self.stage == StagedStage::Load {
            truth(self.place, ClientTruth::retry);
        }
        self.at = 0;
    }
}

impl Program<StagedActions> for Staged {
    fn begin(&mut self, _choose: &mut Random) -> usize {
        begin(self.place);
        self.stage = StagedStage::Load;
        self.at = 0;
        0
    }

    fn stop(&mut self) {
        self.stage = StagedStage::Stop;
        self.at = 0;
    }

    fn next_action(&mut self) -> Action<'_, StagedActions> {
        match self.stage {
            StagedStage::Start if self.was_refused => {
                return Action::Abort(&NO_CONNECTION);
            }
            StagedStage::Start if self.has_tried => return Action::End,
            StagedStage::Start => {
                self.has_tried = true;
                return Action::Step(Management::Connect(0));
            }
            StagedStage::Stop if std::mem::take(&mut self.is_connected) => {
                return Action::Step(Management::Disconnect(0));
            }
            StagedStage::Stop => return Action::End,
            StagedStage::Load => {}
        }
        start(self.place);
        if std::mem::take(&mut self.was_refused) {
            if self.random.unit() < 0.2 {
                return Action::Abort(&NO_CONNECTION);
            }
            return Action::Sleep { command: 0, time: Duration::from_millis(20) };
        }
        if !self.is_connected {
            return Action::Step(Management::Connect(0));
        }
        if std::mem::take(&mut self.rolls_back) {
            return Action::Request(StagedRequest::Text { sql: "ROLLBACK", rows: Rows::Skipped });
        }
        let at = self.at;
        self.at += 1;
        self.values = [Value::Int(self.random.range(0, 1_000_000_000))];
        let (statement, values) = (&self.statements[1], &self.values);
        match at {
            0 => Action::Request(StagedRequest::Text { sql: "BEGIN", rows: Rows::Skipped }),
            1 => Action::Query { command: 0, statement: &statement[1], values, rows: Rows::Handed, last: false },
            2 => Action::Query { command: 0, statement: &statement[3], values, rows: Rows::Counted, last: false },
            3 if self.random.unit() < 0.3 => {
                truth(self.place, |client| client.is_last = true);
                Action::Query { command: 0, statement: &statement[5], values: &[], rows: Rows::Counted, last: true }
            }
            3 => Action::Request(StagedRequest::Text { sql: "END", rows: Rows::Skipped }),
            _ => {
                truth(self.place, ClientTruth::commit);
                Action::End
            }
        }
    }

    fn complete(&mut self, result: ActionResult<'_>) {
        match result {
            ActionResult::Done(_) => self.is_connected = true,
            ActionResult::Failed(_) => {
                self.restart();
                self.rolls_back = true;
            }
            ActionResult::Lost(_) => {
                self.restart();
                (self.is_connected, self.rolls_back) = (false, false);
            }
            ActionResult::Refused(_) => self.was_refused = true,
        }
    }
}

/// A client that runs recorded sessions.
struct Replay {
    place: (usize, usize),
    statements: Arc<Vec<Vec<Statement>>>,
    mode: QueryMode,
    random: Random,
    at: ReplayPlace,
}

#[derive(Debug, Clone, Copy, Default)]
struct ReplayPlace {
    session: usize,
    statement: usize,
    step: ReplayStep,
    /// The recorded time, microseconds.
    time: u64,
    is_stopped: bool,
    is_connected: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ReplayStep {
    #[default]
    Wait,
    Connect,
    Schedule,
    Send,
}

const SESSIONS: usize = 3;
const STATEMENTS: usize = 8;

impl Program<ReplayActions> for Replay {
    fn begin(&mut self, _choose: &mut Random) -> usize {
        0
    }

    fn stop(&mut self) {
        self.at.is_stopped = true;
    }

    fn next_action(&mut self) -> Action<'_, ReplayActions> {
        let at = &mut self.at;
        let is_over = at.is_stopped || at.statement >= STATEMENTS;
        if is_over && std::mem::take(&mut at.is_connected) {
            (at.session, at.statement, at.step) = (at.session + 1, 0, ReplayStep::Wait);
            return Action::Step(SessionStep::Disconnect);
        }
        if at.is_stopped || at.session >= SESSIONS {
            return Action::Step(SessionStep::Leave);
        }
        match at.step {
            ReplayStep::Wait => {
                at.time += self.random.range(0, 100_000) as u64;
                at.step = ReplayStep::Connect;
                Action::Step(SessionStep::Schedule(Scheduled { at: at.time, statement: None }))
            }
            ReplayStep::Connect => {
                at.step = ReplayStep::Schedule;
                Action::Step(SessionStep::Connect)
            }
            ReplayStep::Schedule => {
                at.time += self.random.range(0, 20_000) as u64;
                at.step = ReplayStep::Send;
                let ends_block = at.statement % 4 == 3;
                let expected = Expected { rows: None, ends_block, ..Expected::default() };
                Action::Step(SessionStep::Schedule(Scheduled { at: at.time, statement: Some(expected) }))
            }
            ReplayStep::Send => {
                let texts: [&[u8]; 4] = [b"BEGIN", b"SELECT 7", b"UPDATE 7", b"END"];
                let number = at.statement % 4;
                (at.statement, at.step) = (at.statement + 1, ReplayStep::Schedule);
                truth(self.place, ClientTruth::begin);
                start(self.place);
                truth(self.place, |client| (client.is_last, client.ends_anywhere) = (true, true));
                let recorded = match (number, self.mode) {
                    (1, QueryMode::Prepared) => Recorded::Values {
                        statement: &self.statements[1][1],
                        mode: QueryMode::Prepared,
                        values: &[Value::Int(7)],
                    },
                    (_, QueryMode::Extended) => Recorded::Unnamed(texts[number]),
                    _ => Recorded::Query(texts[number]),
                };
                Action::Request(RecordedRequest { recorded, rows: Rows::Counted })
            }
        }
    }

    fn complete(&mut self, result: ActionResult<'_>) {
        let at = &mut self.at;
        match result {
            ActionResult::Done(_) => at.is_connected = true,
            ActionResult::Failed(_) => {}
            ActionResult::Lost(_) | ActionResult::Refused(_) => {
                (at.session, at.statement, at.step) = (at.session + 1, 0, ReplayStep::Wait);
                at.is_connected = false;
            }
        }
    }
}

/// The longest time for which a program sleeps.
pub const LONGEST_SLEEP: Nanos = 50_000_000;
