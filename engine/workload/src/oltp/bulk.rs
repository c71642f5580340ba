//! The test `bulk_insert`: each event adds a row to an INSERT statement, and the statement is sent when it is long
//! enough.

use std::fmt::Write;

use super::failure::{self, SqlError};
use super::test::OltpTest;
use crate::program::{
    AbortReason, Action, ActionResult, Management, Program, ScriptInfo, StagedActions, StagedRequest, Workload,
};
use ground::random::Random;
use wire::Rows;

/// The greatest length of a statement in bytes, including a zero byte at its end.
const LONGEST: usize = 512 * 1024;

/// The workload of `bulk_insert`.
pub struct BulkInsert {
    pub test: OltpTest,
}

impl Workload<StagedActions> for BulkInsert {
    fn scripts(&self) -> Vec<ScriptInfo> {
        self.test.scripts()
    }

    fn client(&self, client: usize, _random: Random) -> Box<dyn Program<StagedActions>> {
        let sql = format!("INSERT INTO sbtest{} VALUES", client + 1);
        Box::new(BulkClient { test: self.test.name, prefix: sql.len(), sql, ..BulkClient::default() })
    }
}

/// A client of `bulk_insert`, which fills a table of its own.
#[derive(Default)]
struct BulkClient {
    test: &'static str,
    /// The statement so far.
    sql: String,
    /// The length of the statement without rows.
    prefix: usize,
    /// The row that is not in the statement yet.
    row: String,
    /// The number of the row that was made last.
    last: u64,
    stage: Stage,
    /// True if the load has ended, so that the client begins no further event.
    stops: bool,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Connect,
    /// No event is in progress.
    Idle,
    /// The client must add a row.
    Row,
    /// The client must send the statement.
    Send,
    Sent,
    RollBack,
    Failed(AbortReason),
}

impl BulkClient {
    fn has_rows(&self) -> bool {
        self.sql.len() > self.prefix
    }

    /// Adds the event's row to the statement and returns true. Returns false if there is no room for the row and a
    /// comma.
    fn add_row(&mut self) -> bool {
        let comma = if self.has_rows() { "," } else { "" };
        if self.sql.len() + self.row.len() + comma.len() >= LONGEST {
            return false;
        }
        self.sql.push_str(comma);
        self.sql.push_str(&self.row);
        true
    }

    fn fail(&mut self, lines: Vec<String>) {
        self.stage = Stage::Failed(AbortReason::Fatal(lines));
    }

    fn fail_query(&mut self, error: &SqlError) {
        let function = if self.stops { "thread_done" } else { "thread_run" };
        self.fail(failure::not_done(function, self.test, &self.sql, error));
    }
}

impl Program<StagedActions> for BulkClient {
    fn begin(&mut self, _choose: &mut Random) -> usize {
        self.last += 1;
        self.row.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.row, "({0},{0})", self.last);
        self.stage = Stage::Row;
        0
    }

    fn next_action(&mut self) -> Action<'_, StagedActions> {
        match self.stage {
            Stage::Connect => return Action::Step(Management::Connect(0)),
            Stage::Failed(ref reason) => return Action::Abort(reason),
            Stage::RollBack => return Action::Request(StagedRequest::Text { sql: "ROLLBACK", rows: Rows::Skipped }),
            Stage::Row => self.stage = if self.add_row() { Stage::Idle } else { Stage::Send },
            // The event loop has reported no failure, so the server has executed the statement.
            Stage::Sent => {
                self.sql.truncate(self.prefix);
                if !self.stops {
                    self.add_row();
                }
                self.stage = Stage::Idle;
            }
            Stage::Idle | Stage::Send => {}
        }
        if matches!(self.stage, Stage::Idle) {
            return Action::End;
        }
        self.stage = Stage::Sent;
        Action::Request(StagedRequest::Text { sql: &self.sql, rows: Rows::Counted })
    }

    fn complete(&mut self, result: ActionResult<'_>) {
        match (&self.stage, result) {
            (_, ActionResult::Refused(error)) => {
                self.fail(failure::not_connected("thread_init", self.test, &error.message))
            }
            (Stage::Sent, ActionResult::Failed(error)) if failure::is_ignorable(&error.sqlstate) => {
                self.stage = Stage::RollBack;
            }
            // As in sysbench, the event counts although its row is lost, and the next event sends the same statement
            // again.
            (Stage::RollBack, ActionResult::Done(_) | ActionResult::Failed(_)) if !self.stops => {
                self.stage = Stage::Idle
            }
            (Stage::RollBack, ActionResult::Done(_) | ActionResult::Failed(_)) => {
                self.fail(vec![failure::function_failed("thread_done", self.test, "db_bulk_insert_done() failed")]);
            }
            (_, ActionResult::Failed(error)) => self.fail_query(&error.into()),
            (_, ActionResult::Lost(error)) => self.fail_query(&error.into()),
            (_, ActionResult::Done(_)) => self.stage = Stage::Idle,
        }
    }

    fn stop(&mut self) {
        self.stops = true;
        self.stage = if self.has_rows() { Stage::Send } else { Stage::Idle };
    }
}
