//! The programs of simulated clients that run scripts, as pgbench does.

use std::sync::Arc;
use std::time::Duration;

use super::{OPEN_SCRIPT, SCRIPTS, Step, begin, commit, start, truth};
use crate::simulation::truth::{ClientTruth, Place};
use crate::simulation::world::world;
use ground::clock::nanos;
use ground::random::Random;
use wire::statement::Statement;
use wire::value::Value;
use wire::{ResultSet, Rows};
use workload::{AbortReason, Action, Program, ScriptStep, StartPipeline};

/// A simulated client that runs scripts, as pgbench's clients do.
pub struct Script {
    place: Place,
    statements: Arc<Vec<Vec<Statement>>>,
    /// The numbers of the scripts that the client runs.
    pub scripts: Vec<usize>,
    /// True if the client's commands are timed.
    pub is_timed: bool,
    /// True if the engine is told of each command that needs no server before the command runs.
    pub is_announced: bool,
    /// True if the client's scripts fail at times.
    pub is_rich: bool,
    /// True if the client runs tasks of a connection pool, which fail if they leave a transaction open.
    pub is_pooled: bool,
    has_announced: bool,
    steps: &'static [Step],
    script: usize,
    at: usize,
    values: [Value; 1],
    random: Random,
}

impl Script {
    /// Makes a client that runs the first script.
    pub fn new(place: Place, statements: Arc<Vec<Vec<Statement>>>, random: Random) -> Self {
        Self {
            place,
            statements,
            scripts: vec![0],
            is_timed: false,
            is_announced: false,
            is_rich: false,
            is_pooled: false,
            has_announced: false,
            steps: SCRIPTS[0],
            script: 0,
            at: 0,
            values: [Value::Int(0)],
            random,
        }
    }
}

impl Program for Script {
    fn begin(&mut self, choose: &mut Random) -> usize {
        begin(self.place);
        let mut chosen = choose.range(0, self.scripts.len() as i64 - 1) as usize;
        if self.scripts[chosen] == OPEN_SCRIPT && self.random.unit() < 0.98 {
            chosen = 0;
        }
        self.script = self.scripts[chosen];
        self.steps = SCRIPTS[self.script];
        self.at = 0;
        truth(self.place, |client| client.script = chosen);
        chosen
    }

    fn retry(&mut self) {
        truth(self.place, ClientTruth::retry);
        self.at = 0;
    }

    fn pause(&mut self) -> Duration {
        let pause = Duration::from_micros(self.random.range(0, 50_000) as u64);
        world(|world| world.truth.think(self.place, nanos(pause)));
        pause
    }

    fn next_action(&mut self) -> Action<'_> {
        if self.at == 0 {
            start(self.place);
        }
        let Some(step) = self.steps.get(self.at).copied() else {
            if !self.is_pooled || self.script != OPEN_SCRIPT {
                commit(self.place);
            }
            return Action::End;
        };
        let command = self.at;
        if self.is_announced && matches!(step, Step::Sleep | Step::Local | Step::Pause) && !self.has_announced {
            self.has_announced = true;
            return Action::Step(ScriptStep::Announce { command });
        }
        self.has_announced = false;
        self.at += 1;
        match step {
            Step::Local if self.is_timed => Action::Step(ScriptStep::Local { command }),
            Step::Local => self.next_action(),
            Step::Pause => Action::Pause,
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

    /// Checks that the rows answer the current statement and not an older one.
    fn store(&mut self, results: &[ResultSet]) -> Result<(), AbortReason> {
        let mut wanted = Vec::new();
        self.values[0].write_text(&mut wanted);
        let is_right = matches!(results, [result] if result.rows == 1 && result.last == [Some(wanted)]);
        if !is_right {
            world(|world| world.truth.defects.push(format!("a statement got the rows of another one: {results:?}")));
        }
        if self.is_rich && self.random.unit() < 0.002 {
            return Err(AbortReason::Script { reason: "the row does not fit the script".to_owned() });
        }
        Ok(())
    }
}
