//! The programs of simulated clients that manage their connections by themselves, as sysbench's do.

use std::sync::Arc;
use std::time::Duration;

use super::{begin, commit, start, truth};
use crate::simulation::truth::{ClientTruth, Place};
use crate::simulation::world::world;
use ground::random::Random;
use wire::Rows;
use wire::statement::Statement;
use wire::value::Value;
use workload::queries::Queries;
use workload::{AbortReason, Action, ActionResult, Management, Program, StagedActions, StagedRequest};

/// The reason for which a client without a connection gives up.
static NO_CONNECTION: AbortReason = AbortReason::Script { reason: String::new() };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Start,
    Load,
    Stop,
}

/// A simulated client that manages its connections by itself, as sysbench's clients do.
pub struct Staged {
    place: Place,
    statements: Arc<Vec<Vec<Statement>>>,
    random: Random,
    /// True if the client has two connections, prepares statements and counts transactions by itself, and may end
    /// early.
    is_rich: bool,
    stage: Stage,
    at: usize,
    /// The index in `lines` of the connection in use.
    current: usize,
    /// The numbers of the open connections in the simulated world.
    lines: [Option<usize>; 2],
    /// The actions that the client has to do before anything else, in reverse order.
    next: Vec<Preparation>,
    was_refused: bool,
    has_tried: bool,
    rolls_back: bool,
    values: [Value; 1],
}

/// An action that prepares a client for its transactions, such as making a connection or preparing its statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Preparation {
    Use(usize),
    Connect,
    Prepare,
    PrepareAll,
    Count { queries: u64, events: u64 },
    Leave,
}

impl Staged {
    /// Makes a client that has no connection yet.
    pub fn new(place: Place, statements: Arc<Vec<Vec<Statement>>>, random: Random, is_rich: bool) -> Self {
        Self {
            place,
            statements,
            random,
            is_rich,
            stage: Stage::Start,
            at: 0,
            current: 0,
            lines: [None; 2],
            next: Vec::new(),
            was_refused: false,
            has_tried: false,
            rolls_back: false,
            values: [Value::Int(0)],
        }
    }

    fn restart(&mut self) {
        if self.stage == Stage::Load {
            truth(self.place, ClientTruth::retry);
        }
        self.at = 0;
    }

    /// Records the number of the connection that the client uses for the statements that follow.
    fn note_line(&self) {
        let line = self.lines[self.current];
        truth(self.place, |client| client.line = line.filter(|_| self.is_rich));
    }

    /// Draws the client's actions before a transaction: it may use its other connection, report counts of its own, or
    /// end.
    fn draw_preparations(&mut self) {
        if self.random.unit() < 0.3 {
            self.next.push(Preparation::Use(self.random.range(0, 1) as usize));
        }
        if self.random.unit() < 0.1 {
            let (queries, events) = (self.random.range(0, 5) as u64, self.random.range(0, 3) as u64);
            self.next.push(Preparation::Count { queries, events });
        }
        if self.random.unit() < 0.005 {
            self.next.push(Preparation::Leave);
        }
    }

    fn prepare(&mut self, preparation: Preparation) -> Action<'_, StagedActions> {
        match preparation {
            Preparation::Use(number) => {
                self.current = number;
                self.note_line();
                Action::Step(Management::Use(number))
            }
            Preparation::Connect => Action::Step(Management::Connect(self.current)),
            Preparation::Prepare => Action::Request(StagedRequest::Prepare { statement: &self.statements[1][1] }),
            Preparation::PrepareAll => {
                Action::Request(StagedRequest::PrepareAll { statements: &self.statements[1][3..4] })
            }
            Preparation::Count { queries, events } => {
                world(|world| {
                    world.truth.more_queries += queries;
                    world.truth.more_events += events;
                });
                Action::Step(Management::Count { queries: Queries { writes: queries, ..Queries::default() }, events })
            }
            Preparation::Leave => {
                truth(self.place, ClientTruth::leave);
                self.stop();
                Action::Step(Management::Leave)
            }
        }
    }
}

impl Program<StagedActions> for Staged {
    fn begin(&mut self, _choose: &mut Random) -> usize {
        begin(self.place);
        self.stage = Stage::Load;
        self.at = 0;
        if self.is_rich {
            self.draw_preparations();
        }
        0
    }

    fn stop(&mut self) {
        self.stage = Stage::Stop;
        self.next.clear();
        self.at = 0;
    }

    fn next_action(&mut self) -> Action<'_, StagedActions> {
        match self.stage {
            Stage::Start if self.was_refused => {
                return Action::Abort(&NO_CONNECTION);
            }
            Stage::Start if !self.next.is_empty() => {}
            Stage::Start if self.has_tried => return Action::End,
            Stage::Start => {
                self.has_tried = true;
                return Action::Step(Management::Connect(0));
            }
            Stage::Stop => {
                let Some(number) = self.lines.iter().position(Option::is_some) else { return Action::End };
                self.lines[number] = None;
                return Action::Step(Management::Disconnect(number));
            }
            Stage::Load => start(self.place),
        }
        if self.stage == Stage::Load && std::mem::take(&mut self.was_refused) {
            if self.random.unit() < 0.2 {
                return Action::Abort(&NO_CONNECTION);
            }
            return Action::Sleep { command: 0, time: Duration::from_millis(20) };
        }
        if let Some(preparation) = self.next.pop() {
            return self.prepare(preparation);
        }
        if self.lines[self.current].is_none() {
            return Action::Step(Management::Connect(self.current));
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
            2 if self.is_rich && self.random.unit() < 0.3 => {
                Action::Request(StagedRequest::Text { sql: "UPDATE 7", rows: Rows::Counted })
            }
            2 => Action::Query { command: 0, statement: &statement[3], values, rows: Rows::Counted, last: false },
            3 if self.random.unit() < 0.3 => {
                truth(self.place, |client| client.is_last = true);
                Action::Query { command: 0, statement: &statement[5], values: &[], rows: Rows::Counted, last: true }
            }
            3 => Action::Request(StagedRequest::Text { sql: "END", rows: Rows::Skipped }),
            _ => {
                commit(self.place);
                Action::End
            }
        }
    }

    fn complete(&mut self, result: ActionResult<'_>) {
        match result {
            ActionResult::Done(_) if self.lines[self.current].is_none() => {
                self.lines[self.current] = world(|world| world.newest_line(self.place));
                self.note_line();
                if self.is_rich {
                    self.next.extend([Preparation::PrepareAll, Preparation::Prepare]);
                }
                if self.is_rich && self.stage == Stage::Start && self.lines[1].is_none() && self.random.unit() < 0.5 {
                    self.next.splice(0..0, [Preparation::Use(0), Preparation::Connect, Preparation::Use(1)]);
                }
            }
            ActionResult::Done(_) => {}
            ActionResult::Failed(_) => {
                self.restart();
                self.rolls_back = true;
            }
            ActionResult::Lost(_) => {
                self.restart();
                (self.lines[self.current], self.rolls_back) = (None, false);
            }
            ActionResult::Refused(_) => self.was_refused = true,
        }
    }
}
