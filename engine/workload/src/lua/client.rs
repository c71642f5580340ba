//! A client of a Lua script. The script runs as one coroutine, which is called the client's life. The coroutine yields
//! requests, and the client's program carries them out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use memchr::memchr;
use mlua::{FromLua, Function, String as LuaString, Table, Thread, ThreadStatus, Value as LuaValue};

use super::counters::{Counter, Counters};
use super::exchange_buffer::set_number;
use super::kept::Prepared;
use super::marking::Marking;
use super::natives;
use super::request::{Answer, CoroutineRequest, RequestKind};
use super::shared::SharedStates;
use super::state::LuaState;
use crate::lua::random;
use crate::lua::random::Generator;
use crate::program::{AbortReason, Action, ActionResult, Management, Program, StagedActions, StagedRequest};
use ground::random::Random;
use wire::error::ConnectionError;
use wire::value::Value;
use wire::{Answered, QueryKind, Rows};

/// The functions of the script that its clients run: its events, or one of its commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// One event of the script after another.
    Events,
    /// Only this command of the script.
    Command(String),
}

/// A client that runs a Lua script.
pub struct LuaClient {
    life: Thread,
    /// The client's Lua state. It must not be dropped before the coroutine `life`, which belongs to it.
    state: LuaState,
    /// The client's random generator. While the script runs, the generator is lent to the thread, and this field is
    /// `None`. It is always `None` for a client outside of a load, which uses the generator of its caller.
    generator: Option<Generator>,
    counters: Counters,
    /// The data that all Lua states of the script share; `None` for a client outside of a load. Through these data a
    /// client of a load also reports to the event loop what the states of the main thread have counted.
    shared: Option<Arc<SharedStates>>,
    /// True if the last action was a query that counts as a statement of the load.
    asks: bool,
    /// Marks the objects that a command makes, with the statements that the query of `--mark-by` returns; `None`
    /// without that option.
    marking: Option<Marking>,
    /// The answer that the coroutine gets when it is resumed.
    answer: Answer,
    /// A request of the coroutine that has to wait for another action, such as the end of the previous transaction.
    waiting: Option<CoroutineRequest>,
    /// The event loop's answer to the question whether another transaction follows: true if it does, false if the load
    /// is over. `None` if the event loop has not answered since the last transaction.
    granted: Option<bool>,
    /// True if the script should be told that its next transaction begins at once when the query in progress ends the
    /// current one. The script then need not ask for it.
    goes_on: bool,
    /// True if the client must end its current transaction before it carries out the waiting request.
    has_ended: bool,
    /// True if the waiting request belongs to the transaction that follows.
    has_begun: bool,
    is_stopped: bool,
    /// The number of the connection in use.
    current: Option<usize>,
    /// The prepared statements, by their numbers. The prelude (the Lua code that gives scripts sysbench's interface)
    /// assigns the numbers, and never assigns a number twice, because a connection remembers by the numbers which
    /// statements it has prepared.
    statements: BTreeMap<usize, Prepared>,
    /// The text of the last query.
    text: String,
    /// The values of the last execution of a prepared statement.
    values: Vec<Value>,
    /// A buffer for texts that come from Lua.
    bytes: Vec<u8>,
    /// The reason for which the client is aborted. It has a meaning only if the client is aborted.
    aborted: AbortReason,
    /// The message with which the coroutine failed; `None` if it has not failed.
    failure: Option<String>,
}

impl LuaClient {
    /// Makes a client whose script sees `tid` as its thread number.
    pub fn new(shared: &Arc<SharedStates>, role: &Role, tid: usize, generator: Generator) -> mlua::Result<Self> {
        let state = LuaState::new(shared, tid)?;
        let script = state.script(shared)?;
        let argument = shared.chunk.module.as_deref();
        let function: Function = match role {
            Role::Events => state.function("events")?.call((script, argument))?,
            Role::Command(name) => state.function("command")?.call((script, argument, name.as_str()))?,
        };
        let mut client = Self::living(state, function)?;
        client.mark_by(shared);
        Ok(Self { generator: Some(generator), shared: Some(shared.clone()), ..client })
    }

    /// If the user gave `--mark-by`, makes this client run that query after each statement that may make objects, and
    /// run the marking statements that the query returns.
    pub fn mark_by(&mut self, shared: &SharedStates) {
        self.marking = shared.mark_by.get().map(|query| Marking::new(query.clone()));
    }

    /// Makes a client outside of a load. Its coroutine runs `function` in `state`.
    pub fn living(state: LuaState, function: Function) -> mlua::Result<Self> {
        Ok(Self {
            life: state.lua.create_thread(function)?,
            state,
            generator: None,
            counters: Counters::default(),
            shared: None,
            asks: false,
            marking: None,
            answer: Answer::default(),
            waiting: None,
            granted: None,
            goes_on: false,
            has_ended: false,
            has_begun: false,
            is_stopped: false,
            current: None,
            statements: BTreeMap::new(),
            text: String::new(),
            values: Vec::new(),
            bytes: Vec::new(),
            aborted: AbortReason::Fatal(Vec::new()),
            failure: None,
        })
    }

    /// Replaces the coroutine by a new one that runs `function` and gets no events.
    pub fn live(&mut self, function: Function) -> mlua::Result<()> {
        self.life = self.state.lua.create_thread(function)?;
        (self.waiting, self.answer, self.failure) = (None, Answer::Nothing, None);
        Ok(())
    }

    /// True if the client's coroutine has ended.
    pub fn is_finished(&self) -> bool {
        self.waiting == Some(CoroutineRequest::Finished)
    }

    /// Returns the message with which the coroutine failed; `None` if it has succeeded. The coroutine must have ended.
    pub fn failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// Returns the client's Lua state.
    pub fn state(&self) -> &LuaState {
        &self.state
    }

    /// Returns what the client has counted since it began.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Resumes the coroutine with the last answer, and returns the coroutine's next request.
    fn resume(&mut self) -> CoroutineRequest {
        let has_generator = self.generator.is_some();
        if has_generator {
            random::exchange(&mut self.generator);
        }
        self.counters.lend();
        let yielded: mlua::Result<LuaValue> = match std::mem::take(&mut self.answer) {
            Answer::Nothing => self.life.resume(()),
            Answer::Truth(truth) => self.life.resume(truth),
            Answer::Refused => self.life.resume(false),
            Answer::Written => self.life.resume(true),
            Answer::Failed { sqlstate, message, whole } => self.life.resume((false, sqlstate, message, whole)),
        };
        if has_generator {
            random::exchange(&mut self.generator);
        }
        match yielded.and_then(|kind| self.understand(&kind)) {
            Ok(request) => request,
            Err(error) => self.fail(error.to_string()),
        }
    }

    fn fail(&mut self, reason: String) -> CoroutineRequest {
        self.aborted = AbortReason::Fatal(vec![reason]);
        CoroutineRequest::Fatal
    }

    fn understand(&mut self, kind: &LuaValue) -> mlua::Result<CoroutineRequest> {
        let Some(kind) = natives::request_kind(kind) else {
            return Ok(match self.life.status() {
                ThreadStatus::Finished => {
                    self.failure = kind.as_string().map(|failure| failure.to_string_lossy());
                    CoroutineRequest::Finished
                }
                _ => self.fail("the script yields a value that is not a request".to_owned()),
            });
        };
        self.has_ended = matches!(kind, RequestKind::FirstQuery | RequestKind::FirstExecute | RequestKind::Ended);
        let exchange_buffer = &self.state.exchange_buffer;
        Ok(match kind {
            RequestKind::Query | RequestKind::FirstQuery => return self.take_query(),
            RequestKind::Execute | RequestKind::FirstExecute => {
                let (connection, statement) = (exchange_buffer.connection(), exchange_buffer.statement());
                let holes = self.statements.get(&statement).map_or(0, |prepared| prepared.holes);
                self.values.resize(holes, Value::Unset);
                if !exchange_buffer.take_values(&mut self.values, &mut self.bytes) {
                    let given = self.arguments()?;
                    for (value, number) in self.values.iter_mut().zip(1..) {
                        take_value(value, &given.raw_get(number)?);
                    }
                }
                CoroutineRequest::Execute { connection, statement }
            }
            RequestKind::Prepare => {
                let (connection, statement) = (exchange_buffer.connection(), exchange_buffer.statement());
                let given = self.arguments()?;
                let (text, types): (LuaString, Vec<u32>) = (given.raw_get(1)?, given.raw_get(2)?);
                self.statements.insert(statement, Prepared::new(statement, &text.as_bytes(), &types));
                CoroutineRequest::Prepare { connection, statement }
            }
            RequestKind::Close => {
                // Only the client forgets the statement. As in sysbench, the server keeps it.
                self.statements.remove(&exchange_buffer.statement());
                CoroutineRequest::Nothing
            }
            RequestKind::More => CoroutineRequest::More,
            RequestKind::Rollback => CoroutineRequest::Rollback { connection: exchange_buffer.connection() },
            RequestKind::Ended => CoroutineRequest::Nothing,
            RequestKind::Connect => CoroutineRequest::Connect(exchange_buffer.connection()),
            RequestKind::Reconnect => CoroutineRequest::Reconnect(exchange_buffer.connection()),
            RequestKind::Disconnect => CoroutineRequest::Disconnect(exchange_buffer.connection()),
            RequestKind::Ready => CoroutineRequest::Ready,
            RequestKind::Left => CoroutineRequest::Left { is_complete: self.argument()? },
            RequestKind::Fatal => {
                let line = self.argument::<Option<LuaString>>()?.map(|line| line.to_string_lossy());
                self.aborted = AbortReason::Fatal(line.into_iter().collect());
                CoroutineRequest::Fatal
            }
            RequestKind::Sleep => {
                CoroutineRequest::Sleep(Duration::try_from_secs_f64(self.argument()?).unwrap_or_default())
            }
        })
    }

    /// Returns the Lua table with the arguments of a request that do not fit in the exchange buffer.
    fn arguments(&self) -> mlua::Result<Table> {
        self.state.native.raw_get("arguments")
    }

    /// Returns the argument of a request that has exactly one argument in the table.
    fn argument<T: FromLua>(&self) -> mlua::Result<T> {
        self.arguments()?.raw_get(1)
    }

    /// Takes over the text of a query from the script. As in C, the text ends at its first zero byte.
    fn take_query(&mut self) -> mlua::Result<CoroutineRequest> {
        let connection = self.state.exchange_buffer.connection();
        self.bytes.clear();
        if !self.state.exchange_buffer.take_text(&mut self.bytes) {
            self.bytes.extend_from_slice(&self.argument::<LuaString>()?.as_bytes());
        }
        let end = memchr(0, &self.bytes).unwrap_or(self.bytes.len());
        let Ok(text) = std::str::from_utf8(&self.bytes[..end]) else {
            self.answer = Answer::failed("22021", "the query's text is not valid UTF-8");
            return Ok(CoroutineRequest::Nothing);
        };
        self.text.clear();
        self.text.push_str(text);
        Ok(CoroutineRequest::Query { connection })
    }

    /// Returns the action that `act` makes for a prepared statement. If there is no statement of this number, returns
    /// the action that ends the transaction.
    fn with_statement<'a>(
        &'a self,
        number: usize,
        act: impl FnOnce(&'a [Value], &'a Prepared) -> Action<'a, StagedActions>,
    ) -> Action<'a, StagedActions> {
        self.statements.get(&number).map_or(Action::End, |prepared| act(&self.values, prepared))
    }

    /// True if BEGIN has to be sent before this statement, so that the objects that it makes can be marked in the same
    /// transaction.
    fn begins_marking(&mut self, request: CoroutineRequest) -> bool {
        let (connection, text) = match request {
            CoroutineRequest::Query { connection } => (connection, self.text.as_bytes()),
            CoroutineRequest::Execute { connection, statement } => {
                let Some(prepared) = self.statements.get(&statement) else { return false };
                (connection, &*prepared.text)
            }
            _ => return false,
        };
        self.marking.as_mut().is_some_and(|marking| marking.begin(request, connection, text))
    }

    /// Keeps the rows and columns that the script may fetch, and returns the answer for the coroutine.
    fn done(&mut self, answered: &Answered) -> Answer {
        if let Some(number) = self.current {
            self.state.fetched.borrow_mut().keep(number, answered);
        }
        match answered.kind {
            QueryKind::Nothing => Answer::Refused,
            _ => {
                self.state.exchange_buffer.answer(answered, std::mem::take(&mut self.goes_on));
                Answer::Written
            }
        }
    }
}

impl Program<StagedActions> for LuaClient {
    fn begin(&mut self, _choose: &mut Random) -> usize {
        self.granted = (!std::mem::take(&mut self.has_begun)).then_some(true);
        0
    }

    fn next_action(&mut self) -> Action<'_, StagedActions> {
        loop {
            if self.marking.as_ref().is_some_and(|marking| marking.text().is_some()) {
                let sql = self.marking.as_ref().and_then(Marking::text).unwrap_or_default();
                return Action::Request(StagedRequest::Text { sql, rows: Rows::Handed });
            }
            let request = match self.waiting.take() {
                Some(request) => request,
                None => {
                    let request = self.resume();
                    if let Some(counted) = self.counters.take_back().or_else(|| self.shared.as_ref()?.uncounted.take())
                    {
                        self.waiting = Some(request);
                        return Action::Step(counted);
                    }
                    request
                }
            };
            if std::mem::take(&mut self.has_ended) {
                self.waiting = Some(request);
                self.has_begun = true;
                self.counters.add(Counter::Event);
                return Action::End;
            }
            self.asks = matches!(request, CoroutineRequest::Query { .. } | CoroutineRequest::Execute { .. });
            if let CoroutineRequest::Query { connection }
            | CoroutineRequest::Rollback { connection }
            | CoroutineRequest::Prepare { connection, .. }
            | CoroutineRequest::Execute { connection, .. } = request
            {
                if self.current != Some(connection) {
                    self.current = Some(connection);
                    self.waiting = Some(request);
                    return Action::Step(Management::Use(connection));
                }
            }
            if self.asks && self.begins_marking(request) {
                self.waiting = Some(request);
                continue;
            }
            match request {
                CoroutineRequest::Nothing => {}
                CoroutineRequest::Connect(number) => {
                    self.current = Some(number);
                    return Action::Step(Management::Connect(number));
                }
                CoroutineRequest::Reconnect(number) => {
                    self.waiting = Some(CoroutineRequest::Connect(number));
                    self.current = None;
                    self.counters.add(Counter::Reconnect);
                    return Action::Step(Management::Disconnect(number));
                }
                CoroutineRequest::Disconnect(number) => {
                    self.current = None;
                    self.state.fetched.borrow_mut().forget(number);
                    return Action::Step(Management::Disconnect(number));
                }
                CoroutineRequest::Query { .. } => {
                    return Action::Request(StagedRequest::Text { sql: &self.text, rows: Rows::Handed });
                }
                CoroutineRequest::Rollback { .. } => {
                    return Action::Request(StagedRequest::Text { sql: "ROLLBACK", rows: Rows::Skipped });
                }
                CoroutineRequest::Prepare { statement, .. } | CoroutineRequest::Execute { statement, .. }
                    if !self.statements.contains_key(&statement) =>
                {
                    self.answer = Answer::failed("26000", "there is no such statement");
                }
                CoroutineRequest::Prepare { statement, .. } => {
                    return self.with_statement(statement, |_, Prepared { statement, .. }| {
                        Action::Request(StagedRequest::Prepare { statement })
                    });
                }
                CoroutineRequest::Execute { statement, .. } => {
                    return self.with_statement(statement, |values, Prepared { statement, .. }| Action::Query {
                        command: 0,
                        statement,
                        values,
                        rows: Rows::Handed,
                        last: false,
                    });
                }
                CoroutineRequest::Ready => return Action::End,
                CoroutineRequest::More => match self.granted.take() {
                    Some(more) => self.answer = Answer::Truth(more),
                    None => {
                        self.waiting = Some(CoroutineRequest::More);
                        self.counters.add(Counter::Event);
                        return Action::End;
                    }
                },
                CoroutineRequest::Left { .. } if self.is_stopped => {}
                CoroutineRequest::Left { is_complete: true } => {
                    self.waiting = Some(CoroutineRequest::Left { is_complete: false });
                    return Action::End;
                }
                CoroutineRequest::Left { is_complete: false } => {
                    self.is_stopped = true;
                    return Action::Step(Management::Leave);
                }
                CoroutineRequest::Sleep(time) => {
                    self.answer = Answer::Truth(true);
                    return Action::Sleep { command: 0, time };
                }
                CoroutineRequest::Fatal => return Action::Abort(&self.aborted),
                CoroutineRequest::Finished => {
                    self.waiting = Some(CoroutineRequest::Finished);
                    return Action::End;
                }
            }
        }
    }

    fn foresee(&mut self, begins: bool) {
        // Only a transaction that the script has begun ends with a query.
        self.goes_on = begins && self.granted.is_none();
    }

    fn complete(&mut self, result: ActionResult<'_>) {
        if let Some(marking) = self.marking.as_mut().filter(|marking| marking.text().is_some()) {
            let (answer, next) = marking.complete(&result);
            (self.answer, self.waiting) = (answer.unwrap_or_default(), next);
            return;
        }
        if self.asks {
            match result {
                ActionResult::Done(answered) => self.counters.add(answered.kind.into()),
                ActionResult::Failed(_) => self.counters.add(Counter::Error),
                ActionResult::Lost(_) | ActionResult::Refused(_) => {}
            }
        }
        let answer = match &result {
            ActionResult::Done(answered) => self.done(answered),
            ActionResult::Failed(error) => Answer::rejected(error),
            ActionResult::Lost(ConnectionError::Server(error)) => Answer::rejected(error),
            ActionResult::Lost(ConnectionError::Copy) => Answer::Refused,
            ActionResult::Lost(error) => Answer::failed(error.sqlstate(), &error.to_string()),
            ActionResult::Refused(error) => Answer::failed(&error.message, &error.message),
        };
        self.answer = match self.marking.as_mut() {
            Some(marking) => marking.take_answer(self.current, &result, answer).unwrap_or_default(),
            None => answer,
        };
    }

    fn stop(&mut self) {
        self.granted = Some(false);
        self.is_stopped = true;
    }
}

/// Stores a value of a parameter as Lua has passed it.
fn take_value(value: &mut Value, given: &LuaValue) {
    match given {
        LuaValue::Integer(number) => *value = Value::Int(*number),
        LuaValue::Number(number) => set_number(value, *number),
        LuaValue::String(text) => value.set_text(&text.as_bytes()),
        _ => *value = Value::Unset,
    }
}
