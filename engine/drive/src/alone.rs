//! Runs the program of a single client, which decides its actions one after the other, outside of a benchmark: in the
//! calling thread, without an event loop. The thread blocks until each action of the program is finished.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{process, thread};

use ground::interrupt::{EndsAtOnce, STATUS};
use wire::error::ConnectionError;
use wire::session::Session;
use wire::statement::{QueryMode, ResultFormat};
use wire::target::Target;
use wire::{Answered, Connection, OpenError, Reply, Rows, Scratch, Sent, StatementError};
use workload::{AbortReason, Action, ActionResult, Executor, Management, Program, StagedActions, StagedRequest};

/// The server that a client's program connects to.
pub struct Server {
    pub target: Arc<Target>,
    /// The interrupt flag that was passed to [`Target::obey`]. When it is set, the server is asked to cancel the
    /// program's current statement, and then the whole process ends. The flag is cleared at each call of
    /// [`Executor::carry_out`].
    pub interrupt: Arc<AtomicBool>,
}

/// The protocol options with which the program's statements are sent to the server. The fields have the same meaning as
/// in [`crate::plan::Plan`].
#[derive(Debug, Clone, Copy)]
pub struct ProtocolOptions {
    pub mode: QueryMode,
    pub describes: bool,
    pub format: ResultFormat,
}

/// Runs the program of one client outside of a benchmark: carries out the actions that the program asks for.
pub struct Alone<F> {
    /// The function that finds the server. It is called when the program connects for the first time.
    find: F,
    server: Option<Server>,
    mode: QueryMode,
    scratch: Scratch,
    /// The number of the connection in use.
    current: usize,
    /// The open sessions, by the numbers of their connections.
    sessions: BTreeMap<usize, Session>,
}

impl<F: Fn() -> Result<Server, OpenError>> Alone<F> {
    /// Makes a runner for one program. `find` finds the server; if it returns an error, the program gets that error.
    pub fn new(find: F, options: ProtocolOptions) -> Self {
        let ProtocolOptions { mode, describes, format } = options;
        let scratch = Scratch::new(describes, format);
        Self { find, server: None, mode, scratch, current: 0, sessions: BTreeMap::new() }
    }

    fn connect(&mut self) -> Result<(), OpenError> {
        let waits = EndsAtOnce::set(false);
        let connected = self.open();
        drop(waits);
        self.end_if_interrupted();
        connected
    }

    fn open(&mut self) -> Result<(), OpenError> {
        self.sessions.remove(&self.current);
        if self.server.is_none() {
            self.server = Some((self.find)()?);
        }
        if let Some(server) = &self.server {
            self.sessions.insert(self.current, Session::connect(&server.target)?);
        }
        Ok(())
    }

    /// Hands the result of a request to the program: done, failed, or connection lost. After a lost connection its
    /// session is removed.
    fn tell(&mut self, program: &mut dyn Program<StagedActions>, asked: Result<Reply, ConnectionError>) {
        match asked {
            Ok(Reply { error: Some(StatementError { error, .. }), .. }) => {
                program.complete(ActionResult::Failed(&error));
            }
            Ok(Reply { error: None, .. }) => {
                if let Some(session) = self.sessions.get(&self.current) {
                    program.complete(ActionResult::Done(session.answered()));
                }
            }
            Err(error) => {
                self.sessions.remove(&self.current);
                program.complete(ActionResult::Lost(&error));
            }
        }
    }

    /// Sends a request with `send` on the session in use, and returns the server's reply. An interrupt cancels the
    /// request on the server and then ends the process.
    fn ask(
        &mut self,
        send: impl FnOnce(&mut Connection, &mut Scratch) -> Result<Sent, ConnectionError>,
    ) -> Result<Reply, ConnectionError> {
        let waits = EndsAtOnce::set(false);
        let (session, scratch) = (self.sessions.get_mut(&self.current), &mut self.scratch);
        let asked = session
            .ok_or(ConnectionError::Closed)
            .and_then(|session| session.ask(|connection| send(connection, scratch)));
        drop(waits);
        self.end_if_interrupted();
        asked
    }

    fn request(&mut self, request: StagedRequest<'_>) -> Result<Reply, ConnectionError> {
        match request {
            StagedRequest::Text { sql, rows } => {
                let rows = if rows == Rows::Skipped { Rows::Counted } else { rows };
                self.ask(|connection, _| connection.send_query(sql, rows))
            }
            StagedRequest::Prepare { statement } => self.ask(|connection, _| connection.send_prepare(statement)),
            StagedRequest::PrepareAll { statements } => {
                let mut reply = Reply { status: b'I', error: None };
                for statement in statements {
                    if reply.error.is_none() {
                        reply = self.ask(|connection, _| connection.send_prepare(statement))?;
                    }
                }
                Ok(reply)
            }
        }
    }

    fn end_if_interrupted(&self) {
        if self.server.as_ref().is_some_and(|server| server.interrupt.load(Ordering::Relaxed)) {
            process::exit(STATUS.into());
        }
    }
}

impl<F: Fn() -> Result<Server, OpenError>> Executor for Alone<F> {
    /// Carries out the actions of the client's program, one after the other. If an interrupt comes while the program
    /// computes between two actions, the whole process ends at once.
    fn carry_out(&mut self, program: &mut dyn Program<StagedActions>) -> Result<(), AbortReason> {
        let _computes = EndsAtOnce::set(true);
        if let Some(server) = &self.server {
            server.interrupt.store(false, Ordering::Relaxed);
        }
        loop {
            match program.next_action() {
                Action::End => return Ok(()),
                Action::Abort(reason) => return Err(reason.clone()),
                Action::Query { statement, values, rows, .. } => {
                    let mode = self.mode;
                    let asked = self.ask(|connection, scratch| connection.send(statement, mode, values, rows, scratch));
                    self.tell(program, asked);
                }
                Action::Request(request) => {
                    let asked = self.request(request);
                    self.tell(program, asked);
                }
                Action::Step(Management::Connect(number)) => {
                    self.current = number;
                    match self.connect() {
                        Ok(()) => program.complete(ActionResult::Done(&Answered::default())),
                        Err(error) => program.complete(ActionResult::Refused(&error)),
                    }
                }
                Action::Step(Management::Use(number)) => self.current = number,
                Action::Step(Management::Disconnect(number)) => {
                    self.current = number;
                    self.sessions.remove(&number);
                }
                Action::Sleep { time, .. } => thread::sleep(time),
                // Outside of a load there are no statistics to add the counts to, and no other client for which this
                // one would have to wait.
                Action::Step(Management::Count { .. } | Management::Leave) | Action::Pause => {}
            }
        }
    }
}
