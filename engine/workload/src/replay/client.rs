//! The program of a client of a replay. It takes a recorded session, connects at the time at which the session began,
//! sends its statements in their order, disconnects after the last one, and takes the next session.

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

/// The size of a buffer, bytes, above which it is freed after its statement.
const KEPT: usize = 1024;

impl Workload<ReplayActions> for Arc<Replay> {
    /// Returns the one script that a replay has.
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
    /// Text and values of the statement that is being sent.
    text: Vec<u8>,
    values: Vec<Value>,
    /// The reason for which the client is aborted, once it is.
    aborted: Option<Box<AbortReason>>,
}

/// The next step of a client.
enum Stage {
    /// The client takes a session.
    Free,
    /// The client connects to the server.
    Opening(SessionReader),
    /// The client goes on to the next statement.
    Reading(SessionReader),
    /// The client sends the statement.
    Sending(SessionReader),
    /// The client leaves the session and the load.
    Stopping,
    /// The client leaves the load.
    Stopped,
}

impl RecordedClient {
    /// Makes a client without a session.
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
        // While the client waits it keeps nothing of the statement before.
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
                "a statement has more or fewer parameters than its template: the capture is damaged".to_owned();
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

    /// Ends the recorded session if its connection could not be made or broke.
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
