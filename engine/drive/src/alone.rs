//! A program that runs beside any load, in the calling thread: each of its actions is waited for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{process, thread};

use crate::outcome::STUCK;
use crate::report::STUCK_AFTER;
use ground::output::print_stderr;
use wire::error::ConnectionError;
use wire::session::Session;
use wire::statement::{QueryMode, ResultFormat};
use wire::target::Target;
use wire::{Answered, Connection, OpenError, Reply, Rows, Scratch, Sent, StatementError};
use workload::{AbortReason, Action, ActionResult, Executor, Management, Program};

/// How soon a sleeping program notices an interrupt.
const PATIENCE: Duration = Duration::from_millis(100);

/// Where a program connects to.
pub struct Server {
    pub target: Arc<Target>,
    /// What [`Target::obey`] was given: it ends what the program does on the server. Each time that the program goes on it
    /// is cleared before.
    pub interrupt: Arc<AtomicBool>,
}

/// How its statements travel, as in [`crate::plan::Plan`].
#[derive(Debug, Clone, Copy)]
pub struct Travel {
    pub mode: QueryMode,
    pub describes: bool,
    pub format: ResultFormat,
}

/// Carries out one program's actions.
pub struct Alone<F> {
    /// Finds the server when the program connects first.
    find: F,
    server: Option<Server>,
    mode: QueryMode,
    scratch: Scratch,
    /// The number of the connection in use, and all that are open.
    current: usize,
    sessions: BTreeMap<usize, Session>,
}

impl<F: Fn() -> Result<Server, String>> Alone<F> {
    /// For a program whose server `find` finds; its error is a message for the program.
    pub fn new(find: F, travel: Travel) -> Self {
        let Travel { mode, describes, format } = travel;
        let scratch = Scratch::new(describes, format);
        Self { find, server: None, mode, scratch, current: 0, sessions: BTreeMap::new() }
    }

    fn connect(&mut self) -> Result<(), OpenError> {
        self.sessions.remove(&self.current);
        if self.server.is_none() {
            let unknown = |message| OpenError { message, sqlstate: "08001".to_owned() };
            self.server = Some((self.find)().map_err(unknown)?);
        }
        if let Some(server) = &self.server {
            self.sessions.insert(self.current, Session::connect(&server.target)?);
        }
        Ok(())
    }

    /// Tells the program what came of a request. A connection that broke is no more.
    fn tell(&mut self, program: &mut dyn Program, asked: Result<Reply, ConnectionError>) {
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
                if !matches!(error, ConnectionError::Interrupted) {
                    self.sessions.remove(&self.current);
                }
                program.complete(ActionResult::Lost(&error));
            }
        }
    }

    fn sleep(&self, time: Duration) {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let is_interrupted = self.server.as_ref().is_some_and(|server| server.interrupt.load(Ordering::Relaxed));
            if left.is_zero() || is_interrupted {
                return;
            }
            thread::sleep(left.min(PATIENCE));
        }
    }
}

impl<F: Fn() -> Result<Server, String>> Executor for Alone<F> {
    fn carry_out(&mut self, program: &mut dyn Program) -> Result<(), AbortReason> {
        if let Some(server) = &self.server {
            server.interrupt.store(false, Ordering::Relaxed);
        }
        loop {
            match program.next_action() {
                Action::End => return Ok(()),
                Action::Abort(reason) => return Err(reason),
                Action::Query { statement, values, rows, .. } => {
                    let (mode, scratch) = (self.mode, &mut self.scratch);
                    let send = |connection: &mut Connection| connection.send(statement, mode, values, rows, scratch);
                    let asked = ask(self.sessions.get_mut(&self.current), send);
                    self.tell(program, asked);
                }
                Action::Text { sql, rows } => {
                    let rows = if rows == Rows::Skipped { Rows::Counted } else { rows };
                    let asked =
                        ask(self.sessions.get_mut(&self.current), |connection| connection.send_query(sql, rows));
                    self.tell(program, asked);
                }
                Action::Prepare { statement } => {
                    let asked =
                        ask(self.sessions.get_mut(&self.current), |connection| connection.send_prepare(statement));
                    self.tell(program, asked);
                }
                Action::Manage(Management::Connect(number)) => {
                    self.current = number;
                    match self.connect() {
                        Ok(()) => program.complete(ActionResult::Done(&Answered::default())),
                        Err(error) => program.complete(ActionResult::Refused(&error)),
                    }
                }
                Action::Manage(Management::Use(number)) => self.current = number,
                Action::Manage(Management::Disconnect(number)) => {
                    self.current = number;
                    self.sessions.remove(&number);
                }
                Action::Sleep { time, .. } => self.sleep(time),
                // The program knows its counts, and nobody waits for its turn.
                Action::Manage(Management::Count { .. } | Management::Leave)
                | Action::Pause
                | Action::Announce { .. }
                | Action::Local { .. } => {}
                Action::StartPipeline { .. }
                | Action::SyncPipeline { .. }
                | Action::EndPipeline { .. }
                | Action::Schedule(_)
                | Action::Recorded { .. }
                | Action::PrepareAll { .. } => {
                    let reason = "pipelines and recorded statements are a load's".to_owned();
                    return Err(AbortReason::Script { reason });
                }
            }
        }
    }
}

/// Ends the program with `status` if it goes on for long after an interrupt: the calling thread computes without end.
pub fn end_if_stuck(interrupt: &Arc<AtomicBool>, status: u8) {
    let interrupt = Arc::clone(interrupt);
    thread::spawn(move || {
        while !interrupt.load(Ordering::Relaxed) {
            thread::sleep(PATIENCE);
        }
        thread::sleep(STUCK_AFTER);
        print_stderr(format_args!("{STUCK}\n"));
        process::exit(status.into());
    });
}

/// Has a session do what `send` asks of it, if it is there.
fn ask(
    session: Option<&mut Session>,
    send: impl FnOnce(&mut Connection) -> Result<Sent, ConnectionError>,
) -> Result<Reply, ConnectionError> {
    session.ok_or(ConnectionError::Closed)?.ask(send)
}
