//! The programs of simulated clients that run recorded sessions.

use std::sync::Arc;

use super::{commit, start, truth};
use crate::simulation::truth::{Place, ReplayTruth};
use crate::simulation::world::world;
use ground::random::Random;
use wire::Rows;
use wire::statement::{QueryMode, Statement};
use wire::value::Value;
use workload::recorded::{Expected, Recorded, Scheduled, StatementFailure};
use workload::{Action, ActionResult, Program, RecordedRequest, ReplayActions, SessionStep};

/// A simulated client that runs recorded sessions.
pub struct Replay {
    place: Place,
    statements: Arc<Vec<Vec<Statement>>>,
    random: Random,
    mode: QueryMode,
    /// True if statements have recorded errors, and some of them drop the prepared statements.
    is_rich: bool,
    at: ReplayPlace,
    /// The recorded rows and errors of the next statement.
    expected: Expected,
    /// True while this statement is under way.
    is_asked: bool,
    /// True if an error has aborted the current transaction.
    has_failed: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct ReplayPlace {
    session: usize,
    statement: usize,
    step: ReplayStep,
    /// The time of the recording that the client has reached, in microseconds.
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

/// Changes the record of what really happened to recorded statements.
fn note(change: impl FnOnce(&mut ReplayTruth)) {
    world(|world| change(&mut world.truth.replay));
}

impl Replay {
    /// Makes a client that has not begun its first session.
    pub fn new(
        place: Place,
        statements: Arc<Vec<Vec<Statement>>>,
        random: Random,
        mode: QueryMode,
        is_rich: bool,
    ) -> Self {
        let (at, expected) = (ReplayPlace::default(), Expected::default());
        Self { place, statements, random, mode, is_rich, at, expected, is_asked: false, has_failed: false }
    }

    /// Draws the recorded rows and errors of the next statement.
    fn draw_expected(&mut self) -> Expected {
        let ends_block = self.at.statement % 4 == 3;
        let mut expected = Expected { ends_block, ..Expected::default() };
        if self.is_rich {
            expected.account = self.random.range(0, 1) as usize;
            expected.failure = match self.random.range(0, 19) {
                0 => Some(StatementFailure::Code(*b"40001")),
                1 => Some(StatementFailure::Code(*b"25P02")),
                2 => Some(StatementFailure::Unstated),
                _ => None,
            };
            let is_cancelled = expected.failure == Some(StatementFailure::Code(*b"40001"));
            expected.cancelled_after = is_cancelled.then_some(self.at.time % 20_000);
            expected.rows = (self.random.unit() < 0.5).then(|| self.random.range(0, 2) as u64);
            expected.discards = self.at.statement.is_multiple_of(4) && self.random.unit() < 0.2;
        }
        expected
    }

    /// Records that the current statement has succeeded, if there is one.
    fn note_success(&mut self) {
        if !std::mem::take(&mut self.is_asked) {
            return;
        }
        let rows = if self.at.statement % 4 == 2 || self.at.statement % 4 == 3 { 1 } else { 0 };
        let expected = self.expected;
        note(|truth| {
            truth.succeeded += 1;
            truth.missing += u64::from(expected.failure.is_some());
            truth.other_rows += u64::from(expected.rows.is_some_and(|recorded| recorded != rows));
        });
        self.note_end();
    }

    /// If the session is not in a transaction any more, records this, so that an error of the transaction does not
    /// affect later statements.
    fn note_end(&mut self) {
        self.has_failed &= world(|world| world.is_in_transaction(self.place));
    }

    fn end_session(&mut self) {
        self.at.session += 1;
        (self.at.statement, self.at.step, self.at.is_connected) = (0, ReplayStep::Wait, false);
        self.has_failed = false;
    }
}

impl Program<ReplayActions> for Replay {
    fn begin(&mut self, _choose: &mut Random) -> usize {
        0
    }

    fn stop(&mut self) {
        self.at.is_stopped = true;
    }

    fn next_action(&mut self) -> Action<'_, ReplayActions> {
        self.note_success();
        let is_over = self.at.is_stopped || self.at.statement >= STATEMENTS;
        if is_over && self.at.is_connected {
            self.end_session();
            note(|truth| truth.finished += u64::from(!self.at.is_stopped));
            return Action::Step(SessionStep::Disconnect);
        }
        if self.at.is_stopped || self.at.session >= SESSIONS {
            return Action::Step(SessionStep::Leave);
        }
        match self.at.step {
            ReplayStep::Wait => {
                self.at.time += self.random.range(0, 100_000) as u64;
                self.at.step = ReplayStep::Connect;
                Action::Step(SessionStep::Schedule(Scheduled { at: self.at.time, statement: None }))
            }
            ReplayStep::Connect => {
                self.at.step = ReplayStep::Schedule;
                Action::Step(SessionStep::Connect)
            }
            ReplayStep::Schedule => {
                self.at.time += self.random.range(0, 20_000) as u64;
                self.at.step = ReplayStep::Send;
                self.expected = self.draw_expected();
                Action::Step(SessionStep::Schedule(Scheduled { at: self.at.time, statement: Some(self.expected) }))
            }
            ReplayStep::Send => self.send(),
        }
    }

    fn complete(&mut self, result: ActionResult<'_>) {
        let was_asked = std::mem::take(&mut self.is_asked);
        match result {
            ActionResult::Done(_) => {
                self.at.is_connected = true;
                note(|truth| truth.begun += 1);
            }
            ActionResult::Failed(error) => {
                let is_expected = self.expected.is_failure(&error.sqlstate);
                if is_expected {
                    commit(self.place);
                } else {
                    world(|world| world.truth.fail(self.place));
                }
                let is_consequence = error.sqlstate == "25P02" && self.has_failed && !is_expected;
                note(|truth| {
                    truth.expected += u64::from(is_expected);
                    truth.unexpected += u64::from(!is_expected);
                    truth.consequences += u64::from(is_consequence);
                });
                self.has_failed |= error.sqlstate != "25P02" || !is_expected;
                self.note_end();
            }
            ActionResult::Lost(error) => {
                world(|world| world.truth.fail(self.place));
                let is_consequence = was_asked && self.has_failed && error.sqlstate() == "25P02";
                note(|truth| {
                    truth.lost += 1;
                    truth.unexpected += u64::from(was_asked);
                    truth.consequences += u64::from(is_consequence);
                });
                self.end_session();
            }
            ActionResult::Refused(_) => {
                note(|truth| truth.refused += 1);
                self.end_session();
            }
        }
    }
}

impl Replay {
    fn send(&mut self) -> Action<'_, ReplayActions> {
        let texts: [&[u8]; 4] = [b"BEGIN", b"SELECT 7", b"UPDATE 7", b"END"];
        let number = self.at.statement % 4;
        let text = if self.expected.discards { b"DISCARD ALL" } else { texts[number] };
        (self.at.statement, self.at.step) = (self.at.statement + 1, ReplayStep::Schedule);
        self.is_asked = true;
        world(|world| world.truth.begin(self.place));
        start(self.place);
        let time = self.at.time;
        truth(self.place, |client| (client.is_last, client.ends_anywhere, client.planned) = (true, true, Some(time)));
        let recorded = match (number, self.mode) {
            (1, QueryMode::Prepared) => Recorded::Values {
                statement: &self.statements[1][1],
                mode: QueryMode::Prepared,
                values: &[Value::Int(7)],
            },
            (_, QueryMode::Extended) => Recorded::Unnamed(text),
            _ => Recorded::Query(text),
        };
        let rows = if self.is_rich { Rows::Hashed } else { Rows::Counted };
        Action::Request(RecordedRequest { recorded, rows })
    }
}
