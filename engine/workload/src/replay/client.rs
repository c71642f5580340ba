//! The program of a client of a replay. The client takes a recorded session, connects at the time at which the session
//! began, sends the session's statements in their order, disconnects after the last one, and takes the next session.

use std::sync::Arc;

use super::requests::SendKind;
use super::source::Replay;
use crate::program::{
    AbortReason, Action, ActionResult, Program, RecordedRequest, ReplayActions, ScriptInfo, SessionStep, Workload,
};
use crate::recorded::{Recorded, Scheduled};
use capture::format::{Error, SessionReader};
use ground::random::Random;
use wire::value::Value;

/// The size of a buffer in bytes above which its memory is freed after the statement.
const KEPT: usize = 1024;

impl Workload<ReplayActions> for Arc<Replay> {
    /// Returns one script, because a replay has only one.
    fn scripts(&self) -> Vec<ScriptInfo> {
        vec![ScriptInfo { description: self.description().to_owned(), weight: 1, commands: Vec::new() }]
    }

    fn client(&self, _client: usize, _random: Random) -> Box<dyn Program<ReplayActions>> {
        Box::new(RecordedClient::new(Arc::clone(self)))
    }
}

/// A client of a replay.
pub struct RecordedClient {
    replay: Arc<Replay>,
    stage: Stage,
    /// The text of the statement that is being sent.
    text: Vec<u8>,
    /// The parameters of the statement that is being sent.
    values: Vec<Value>,
    /// The reason for which the event loop has to abort this client; `None` as long as there is none.
    aborted: Option<Box<AbortReason>>,
}

/// The states of a client, each with the step that it does next.
enum Stage {
    /// The client takes the next session.
    Free,
    /// The client connects to the server.
    Opening(SessionReader),
    /// The client reads the session's next statement, and waits for its time.
    Reading(SessionReader),
    /// The client sends the statement that was read.
    Sending(SessionReader),
    /// The client disconnects, and then leaves the load.
    Stopping,
    /// The client has disconnected, and leaves the load.
    Stopped,
}

impl RecordedClient {
    /// Makes a client that has no session yet.
    fn new(replay: Arc<Replay>) -> Self {
        Self { replay, stage: Stage::Free, text: Vec::new(), values: Vec::new(), aborted: None }
    }

    fn begin_session(&mut self) -> Action<'_, ReplayActions> {
        match self.replay.take() {
            Ok(Some((at, reader))) => {
                self.stage = Stage::Opening(reader);
                Action::Step(SessionStep::Schedule(Scheduled { at, statement: None }))
            }
            Ok(None) => Action::Step(SessionStep::Leave),
            Err(error) => self.abort(&error),
        }
    }

    fn read(&mut self, mut reader: SessionReader) -> Action<'_, ReplayActions> {
        // The values of the previous statement are dropped before the client waits, so that a waiting client keeps
        // little memory.
        self.values.clear();
        if self.text.capacity() > KEPT {
            self.text = Vec::new();
        }
        match reader.advance() {
            Ok(true) => {}
            Ok(false) => {
                self.stage = Stage::Free;
                return Action::Step(SessionStep::Disconnect);
            }
            Err(error) => return self.abort(&error),
        }
        let statement = reader.statement();
        let (at, expected) = (self.replay.since_begin(statement.start), self.replay.expected(&statement));
        self.stage = Stage::Sending(reader);
        Action::Step(SessionStep::Schedule(Scheduled { at, statement: Some(expected) }))
    }

    fn send(&mut self, reader: SessionReader) -> Action<'_, ReplayActions> {
        let Self { replay, stage, text, values, aborted } = self;
        let request = replay.request(reader.statement().template);
        let parameters = reader.parameters();
        if parameters.len() != request.parameters {
            let reason =
                "a statement has more or fewer parameters than its template, so the capture is damaged; copy it again or \
                 make it again from the logs".to_owned();
            return Action::Abort(aborted.insert(Box::new(AbortReason::Script { reason })));
        }
        text.clear();
        let recorded = match &request.kind {
            SendKind::Query(template) => {
                request.write_text(template, parameters, text);
                Recorded::Query(text)
            }
            SendKind::Unnamed(template) => {
                request.write_text(template, parameters, text);
                Recorded::Unnamed(text)
            }
            SendKind::Values(statement, mode) => {
                values.extend(parameters.map(|value| value.map_or(Value::Unset, |text| Value::Text(text.into()))));
                request.keep_utf8(values);
                Recorded::Values { statement, mode: *mode, values }
            }
        };
        *stage = Stage::Reading(reader);
        Action::Request(RecordedRequest { recorded, rows: replay.rows })
    }

    fn abort(&mut self, error: &Error) -> Action<'_, ReplayActions> {
        Action::Abort(self.aborted.insert(Box::new(AbortReason::Script { reason: error.to_string() })))
    }
}

impl Program<ReplayActions> for RecordedClient {
    fn begin(&mut self, _choose: &mut Random) -> usize {
        0
    }

    fn next_action(&mut self) -> Action<'_, ReplayActions> {
        match std::mem::replace(&mut self.stage, Stage::Free) {
            Stage::Free => self.begin_session(),
            Stage::Opening(reader) => {
                self.stage = Stage::Reading(reader);
                Action::Step(SessionStep::Connect)
            }
            Stage::Reading(reader) => self.read(reader),
            Stage::Sending(reader) => self.send(reader),
            Stage::Stopping => {
                self.stage = Stage::Stopped;
                Action::Step(SessionStep::Disconnect)
            }
            Stage::Stopped => Action::Step(SessionStep::Leave),
        }
    }

    /// If the connection could not be made or broke, ends the session. The client then takes the next one.
    fn complete(&mut self, result: ActionResult<'_>) {
        match result {
            ActionResult::Lost(_) | ActionResult::Refused(_) => self.stage = Stage::Free,
            ActionResult::Done(_) | ActionResult::Failed(_) => {}
        }
    }

    fn stop(&mut self) {
        self.stage = Stage::Stopping;
    }
}
