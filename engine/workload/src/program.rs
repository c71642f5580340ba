//! The contract between a workload and the event loop: a program per client, its actions, and the results of these.

use std::fmt::Debug;
use std::time::Duration;

use crate::queries::Queries;
use crate::recorded::{Recorded, Scheduled};
use ground::random::Random;
use wire::OpenError;
use wire::error::{ConnectionError, ServerError};
use wire::statement::Statement;
use wire::value::Value;
use wire::{Answered, ResultSet, Rows};

/// One client's program. The event loop asks it for one action after another; each transaction starts with
/// [`Program::begin`].
///
/// In a staged run (sysbench) a program connects by itself. The event loop then also asks for actions before the first
/// transaction, up to an [`Action::End`], and again after [`Program::stop`].
pub trait Program<A: Actions = ScriptActions> {
    /// Starts a transaction: chooses a script with the thread's generator and returns its index.
    fn begin(&mut self, choose: &mut Random) -> usize;

    /// Starts the same transaction again after a failure, with the random state that it began with. A program whose run
    /// retries nothing need not implement it.
    fn retry(&mut self) {}

    /// Returns how long the client waits before the transaction that has been chosen begins. The wait is no part of the
    /// transaction's latency. It is called only if the plan has clients that think.
    fn pause(&mut self) -> Duration {
        Duration::ZERO
    }

    /// Returns the next action. The event loop calls it when the previous action is complete.
    fn next_action(&mut self) -> Action<'_, A>;

    /// Stores the results of the last query, whose action had [`Rows::Kept`].
    fn store(&mut self, _results: &[ResultSet]) -> Result<(), AbortReason> {
        Ok(())
    }

    /// Called before the result of a [`Rows::Handed`] query is given: `_begins` says whether the next transaction would
    /// begin at once if the current one ended with this query. A program that uses this need not ask for the next
    /// transaction, and may act in it before it returns [`Action::End`].
    fn foresee(&mut self, _begins: bool) {}

    /// Receives the result of the last action. For a [`Rows::Counted`] query and a [`RecordedRequest`] it is called
    /// only if they failed; for a new connection, [`StagedRequest::Prepare`], [`StagedRequest::PrepareAll`] and a
    /// [`Rows::Handed`] query it is called in any case.
    fn complete(&mut self, _result: ActionResult<'_>) {}

    /// Ends the load: no further transaction follows.
    fn stop(&mut self) {}
}

/// The result of an action.
#[derive(Debug)]
pub enum ActionResult<'a> {
    /// The server executed the action. Of several statements in one text, this is the result of the last one.
    Done(&'a Answered),
    /// The server reported an error. The event loop has not rolled back the transaction.
    Failed(&'a ServerError),
    /// The connection broke meanwhile.
    Lost(&'a ConnectionError),
    /// The connection could not be made.
    Refused(&'a OpenError),
}

/// The actions that only the programs of some modes have: the event loop of another mode cannot be given them.
pub trait Actions: Debug + Copy + 'static {
    /// Asks the server for something, and waits for its reply.
    type Request<'a>: Debug + Copy;
    /// A step that the event loop carries out for the program without asking the server.
    type Step: Debug + Copy;

    /// Returns the text that a request sends as a query of the load, if it sends one.
    fn text<'a>(_request: &Self::Request<'a>) -> Option<&'a str> {
        None
    }
}

/// The next action of a client. `command` is the index of the command in its script.
#[derive(Debug, Clone, Copy)]
pub enum Action<'a, A: Actions = ScriptActions> {
    /// Send `statement` with the values of its parameters and wait for the reply; in a pipeline, do not wait.
    /// After the `last` query of a transaction no [`Action::End`] follows.
    Query { command: usize, statement: &'a Statement, values: &'a [Value], rows: Rows, last: bool },
    /// A request of programs of this mode only.
    Request(A::Request<'a>),
    /// A step of programs of this mode only.
    Step(A::Step),
    /// Let the other clients of the thread act, then go on. If the run is over, it ends here, in the middle of a
    /// transaction that computes for a long time.
    Pause,
    /// Wait for a time.
    Sleep { command: usize, time: Duration },
    /// The transaction is complete.
    End,
    /// The client is aborted.
    Abort(&'a AbortReason),
}

/// The actions of scripts (pgbench, order entry).
#[derive(Debug, Clone, Copy)]
pub enum ScriptActions {}

impl Actions for ScriptActions {
    type Request<'a> = StartPipeline<'a>;
    type Step = ScriptStep;
}

/// Send the following queries without waiting. In prepared mode, prepare `statements` first.
#[derive(Debug, Clone, Copy)]
pub struct StartPipeline<'a> {
    pub command: usize,
    pub statements: &'a [Statement],
}

/// A step of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptStep {
    /// Send a Sync: the server's transaction ends here, and an error before it does not affect what follows.
    SyncPipeline { command: usize },
    /// Wait for the replies to all queries of the pipeline.
    EndPipeline { command: usize },
    /// A command of a script begins. Only scripts whose commands are announced say so.
    Announce { command: usize },
    /// A command without a request to the server has been executed. Only scripts whose commands are timed report it.
    Local { command: usize },
}

/// The actions of sysbench's tests and Lua scripts.
#[derive(Debug, Clone, Copy)]
pub enum StagedActions {}

impl Actions for StagedActions {
    type Request<'a> = StagedRequest<'a>;
    type Step = Management;

    fn text<'a>(request: &Self::Request<'a>) -> Option<&'a str> {
        match request {
            StagedRequest::Text { sql, rows } if *rows != Rows::Skipped => Some(sql),
            _ => None,
        }
    }
}

/// A request of a staged run.
#[derive(Debug, Clone, Copy)]
pub enum StagedRequest<'a> {
    /// Send `sql` in a Query message in any query mode; `rows` is `Counted` or `Handed`. With `Skipped` it does not
    /// count as a query of the load, and the program receives its result.
    Text { sql: &'a str, rows: Rows },
    /// Parse and describe `statement` on the server without executing it.
    Prepare { statement: &'a Statement },
    /// Parse on the server, in one round trip, those of `statements` that this session has not prepared.
    PrepareAll { statements: &'a [Statement] },
}

/// A step of a program of a staged run that the event loop carries out without a statement. Connections are named by
/// numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Management {
    /// Open this connection and use it from now on. The previous connection stays open.
    Connect(usize),
    /// Use this open connection from now on.
    Use(usize),
    /// Close this connection. The next action that needs a connection chooses one first.
    Disconnect(usize),
    /// Add statements and transactions that the program has counted itself to the counts of the event loop.
    Count { queries: Queries, events: u64 },
    /// Leave the load: the client begins no further transaction, and the current one is not counted. After the load the
    /// event loop asks for actions once more, up to the next [`Action::End`].
    Leave,
}

/// The actions of recorded sessions.
#[derive(Debug, Clone, Copy)]
pub enum ReplayActions {}

impl Actions for ReplayActions {
    type Request<'a> = RecordedRequest<'a>;
    type Step = SessionStep;
}

/// Send a statement as it was recorded; `rows` is `Counted` or `Hashed`. The event loop counts it as a transaction.
#[derive(Debug, Clone, Copy)]
pub struct RecordedRequest<'a> {
    pub recorded: Recorded<'a>,
    pub rows: Rows,
}

/// A step of a recorded session, which has one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStep {
    /// Wait until the recorded time of a connection or of a statement, which follows as the next action.
    Schedule(Scheduled),
    /// Open the session's connection.
    Connect,
    /// Close the session's connection.
    Disconnect,
    /// Take no further part in the load.
    Leave,
}

/// Carries out the actions of a sysbench program that is no client of a load, and waits for the result of each. It
/// keeps the program's connections open between calls, and counts no statements.
pub trait Executor {
    /// Carries out actions up to the next [`Action::End`]. The error is why the program was aborted.
    fn carry_out(&mut self, program: &mut dyn Program<StagedActions>) -> Result<(), AbortReason>;
}

/// The function that makes an executor for another program.
pub type Executors = Box<dyn Fn() -> Box<dyn Executor>>;

/// The reason for which a client is aborted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AbortReason {
    /// A command of the script failed, in pgbench's words: `client 0 aborted in command 3 (set) of script 0; reason`.
    /// `detail` is a message of its own that is printed first, e.g. `division by zero`.
    Command { command: usize, word: &'static str, reason: String, detail: Option<String> },
    /// A query returned other rows than its command expects: the detail, `client 0 script 0 command 3 query 0: reason`.
    Rows { command: usize, query: usize, reason: String, detail: Option<String> },
    /// The script as a whole failed: `client 0 aborted: reason`.
    Script { reason: String },
    /// The whole run ends with these lines.
    Fatal(Vec<String>),
}

impl AbortReason {
    /// Returns the command that failed, by its index in the script.
    pub fn command(&self) -> Option<usize> {
        match self {
            Self::Command { command, .. } | Self::Rows { command, .. } => Some(*command),
            Self::Script { .. } | Self::Fatal(_) => None,
        }
    }
}

/// Writes the reason without the client and the script.
impl std::fmt::Display for AbortReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Command { detail: Some(detail), .. } => f.write_str(detail),
            Self::Command { reason, .. } | Self::Rows { reason, .. } | Self::Script { reason } => f.write_str(reason),
            Self::Fatal(lines) => f.write_str(&lines.join("\n")),
        }
    }
}

/// An error that ends the whole run or prevents it, as sysbench's log level `FATAL`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fatal {
    /// The messages, each of one line.
    pub lines: Vec<String>,
}

impl Fatal {
    /// Makes an error of one line.
    pub fn new(line: impl std::fmt::Display) -> Self {
        Self { lines: vec![line.to_string()] }
    }
}

/// The scripts of a run. The workload makes the program of each client.
pub trait Workload<A: Actions = ScriptActions>: Send + Sync {
    /// Returns descriptions of the scripts in the order of their indexes.
    fn scripts(&self) -> Vec<ScriptInfo>;

    /// Makes the program of client `client`, which draws its values from `random`. One thread makes it and uses it.
    fn client(&self, client: usize, random: Random) -> Box<dyn Program<A>>;
}

/// The description of a script that a report prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptInfo {
    /// The name of the script for people, e.g. `<builtin: select only>`.
    pub description: String,
    /// The relative weight in the choice of scripts.
    pub weight: u64,
    pub commands: Vec<CommandInfo>,
}

/// The description of a command that a report prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandInfo {
    /// The command's first line.
    pub line: String,
    /// True if the command is an SQL statement. Only statements fail and are retried.
    pub is_sql: bool,
}
