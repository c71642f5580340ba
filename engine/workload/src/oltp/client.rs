//! A client of sysbench's tests of the database.

use std::sync::Arc;

use super::event::{OltpEvent, StatementDraw};
use super::failure::{self, SqlError};
use super::statements::StatementSlot;
use crate::program::{
    AbortReason, Action, ActionResult, Management, Program, ScriptInfo, StagedActions, StagedRequest, Workload,
};
use crate::sb_rand::{Distribution, fill_groups};
use ground::random::Random;
use wire::Rows;
use wire::statement::QueryMode;
use wire::value::Value;

impl Workload<StagedActions> for Arc<OltpEvent> {
    fn scripts(&self) -> Vec<ScriptInfo> {
        self.test.scripts()
    }

    fn client(&self, client: usize, random: Random) -> Box<dyn Program<StagedActions>> {
        Box::new(OltpClient::new(Arc::clone(self), client, random))
    }
}

/// A client that runs the events of a test.
pub struct OltpClient {
    event: Arc<OltpEvent>,
    values: Box<[Value]>,
    random: Random,
    ids: Distribution,
    /// The index of the event's current part.
    part: usize,
    /// The number of times that the current part has been executed.
    done: u64,
    /// True if a DELETE was sent last and its INSERT comes next.
    inserts: bool,
    /// The number of the current table, counted from 0.
    table: usize,
    /// The index of the statement that was sent last.
    sent: usize,
    stage: Stage,
}

/// The states of a client.
#[derive(Debug)]
enum Stage {
    Connect,
    Prepare,
    Ready,
    Load,
    /// The event was in conflict with another client's transaction, such as in a deadlock. It is rolled back and then
    /// starts again.
    RollBack,
    Failed(AbortReason),
}

impl OltpClient {
    /// Makes a client that has not connected yet.
    pub fn new(event: Arc<OltpEvent>, client: usize, random: Random) -> Self {
        let (values, ids) = (event.values(), event.ids(client));
        let stage = Stage::Connect;
        Self { event, values, random, ids, part: 0, done: 0, inserts: false, table: 0, sent: 0, stage }
    }

    fn start_event(&mut self) {
        self.part = 0;
        self.done = 0;
        self.inserts = false;
        self.stage = Stage::Load;
    }

    /// Returns the next query of the event, with newly drawn values.
    #[inline]
    fn query(&mut self) -> Action<'_, StagedActions> {
        let Some(part) = self.event.parts.get(self.part) else { return Action::End };
        let mut first = part.first;
        match part.draw {
            StatementDraw::Replacement { insert } if self.inserts => first = insert,
            _ => {
                if part.chooses && self.done == 0 {
                    self.table = self.random.range(0, self.event.parameters.tables as i64 - 1) as usize;
                }
                draw(part.draw, &self.event, &self.ids, &mut self.random, &mut self.values);
            }
        }
        self.sent = first + if part.is_per_table { self.table } else { 0 };
        self.inserts = matches!(part.draw, StatementDraw::Replacement { .. }) && !self.inserts;
        self.done += u64::from(!self.inserts);
        if self.done == part.times {
            self.done = 0;
            self.part += 1;
        }
        Action::Query {
            command: 0,
            statement: &self.event.statements[self.sent],
            values: &self.values,
            rows: Rows::Counted,
            last: self.part == self.event.parts.len(),
        }
    }

    /// Returns the next action outside of events: connecting, preparing statements, or ending.
    #[cold]
    fn act(&mut self) -> Action<'_, StagedActions> {
        match &self.stage {
            Stage::Connect => Action::Step(Management::Connect(0)),
            Stage::Prepare => Action::Request(StagedRequest::PrepareAll { statements: &self.event.statements }),
            Stage::RollBack => Action::Request(StagedRequest::Text { sql: "ROLLBACK", rows: Rows::Skipped }),
            Stage::Failed(reason) => Action::Abort(reason),
            Stage::Ready | Stage::Load => Action::End,
        }
    }

    fn fail(&mut self, lines: Vec<String>) {
        self.stage = Stage::Failed(AbortReason::Fatal(lines));
    }

    /// Returns the lines of sysbench's error message about the statement that was sent last.
    fn failed_query(&self, error: &SqlError) -> Vec<String> {
        let test = self.event.test.name;
        if self.event.mode == QueryMode::Prepared {
            return failure::not_executed("thread_run", test, error);
        }
        let mut text = Vec::new();
        self.event.statements[self.sent].write_text(&self.values, &mut text);
        failure::not_done("thread_run", test, &String::from_utf8_lossy(&text), error)
    }
}

impl Program<StagedActions> for OltpClient {
    #[inline]
    fn begin(&mut self, _choose: &mut Random) -> usize {
        self.start_event();
        0
    }

    fn retry(&mut self) {
        self.start_event();
    }

    #[inline]
    fn next_action(&mut self) -> Action<'_, StagedActions> {
        if matches!(self.stage, Stage::Load) { self.query() } else { self.act() }
    }

    fn complete(&mut self, result: ActionResult<'_>) {
        let test = self.event.test.name;
        match (&self.stage, result) {
            (Stage::Connect, ActionResult::Done(_)) => {
                let is_prepared = self.event.mode == QueryMode::Prepared;
                self.stage = if is_prepared { Stage::Prepare } else { Stage::Ready };
            }
            (_, ActionResult::Refused(error)) => self.fail(failure::not_connected("thread_init", test, &error.message)),
            (Stage::Prepare, ActionResult::Done(_)) => self.stage = Stage::Ready,
            (Stage::Prepare, ActionResult::Failed(error)) => self.fail(failure::not_prepared(test, error)),
            // As in sysbench, the result of ROLLBACK does not matter.
            (Stage::RollBack, ActionResult::Done(_) | ActionResult::Failed(_)) => self.start_event(),
            (_, ActionResult::Failed(error)) if failure::is_ignorable(&error.sqlstate) => self.stage = Stage::RollBack,
            (_, ActionResult::Failed(error)) => self.fail(self.failed_query(&error.into())),
            (_, ActionResult::Lost(error)) => self.fail(self.failed_query(&error.into())),
            (_, ActionResult::Done(_)) => {}
        }
    }

    fn stop(&mut self) {
        self.stage = Stage::Ready;
    }
}

/// Draws the values of a statement and writes them into `values`.
#[inline]
fn draw(what: StatementDraw, event: &OltpEvent, ids: &Distribution, random: &mut Random, values: &mut [Value]) {
    let [id, end] = [StatementSlot::Id, StatementSlot::End].map(StatementSlot::place);
    match what {
        StatementDraw::Nothing => {}
        StatementDraw::Id => values[id] = Value::Int(ids.draw(random)),
        StatementDraw::Range => {
            let begin = ids.draw(random);
            values[id] = Value::Int(begin);
            values[end] = Value::Int(begin.wrapping_add(event.parameters.range_size).wrapping_sub(1));
        }
        StatementDraw::Text => {
            draw_text(StatementSlot::C, random, values);
            values[id] = Value::Int(ids.draw(random));
        }
        StatementDraw::Replacement { .. } => {
            values[id] = Value::Int(ids.draw(random));
            draw_row(ids, random, values);
        }
        StatementDraw::Row => draw_row(ids, random, values),
        StatementDraw::NewRow => {
            values[id] = Value::Int(i64::from(event.distributions.unique()) + i64::from(i32::MIN));
            draw_row(ids, random, values);
        }
        StatementDraw::Points => values.iter_mut().for_each(|value| *value = Value::Int(ids.draw(random))),
        StatementDraw::Ranges => {
            for range in values.chunks_exact_mut(2) {
                let begin = ids.draw(random);
                range[0] = Value::Int(begin);
                range[1] = Value::Int(begin.wrapping_add(event.parameters.delta));
            }
        }
    }

    fn draw_row(ids: &Distribution, random: &mut Random, values: &mut [Value]) {
        values[StatementSlot::K.place()] = Value::Int(ids.draw(random));
        draw_text(StatementSlot::C, random, values);
        draw_text(StatementSlot::Pad, random, values);
    }

    fn draw_text(slot: StatementSlot, random: &mut Random, values: &mut [Value]) {
        if let Value::Text(text) = &mut values[slot.place()] {
            fill_groups(random, text);
        }
    }
}
