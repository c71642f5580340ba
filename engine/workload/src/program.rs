//! The interface between a workload and the event loop: the program of each client, the actions that it returns, and
//! the results of actions.

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

/// The program of one client. The event loop asks it for one action after another. Each transaction starts with
/// [`Program::begin`].
///
/// In a staged run, which follows sysbench's rules, a program opens its connection by itself. The event loop then also
/// asks for actions before the first transaction, up to an [`Action::End`], and again after [`Program::stop`].
pub trait Program<A: Actions = ScriptActions> {
    /// Starts a transaction: chooses a script with the thread's generator and returns the script's index.
    fn begin(&mut self, choose: &mut Random) -> usize;

    /// Starts the same transaction again after a failure, with the random state with which it began. A program that is
    /// only used in runs without retries need not implement this.
    fn retry(&mut self) {}

    /// Returns how long the client waits before the chosen transaction begins. The wait does not belong to the
    /// transaction's latency. The event loop calls this only if the plan has clients with think times.
    fn pause(&mut self) -> Duration {
        Duration::ZERO
    }

    /// Returns the next action. The event loop calls this when the previous action is complete.
    fn next_action(&mut self) -> Action<'_, A>;

    /// Receives the results of the last query, if its action had [`Rows::Kept`].
    fn store(&mut self, _results: &[ResultSet]) -> Result<(), AbortReason> {
        Ok(())
    }

    /// Called before the program receives the result of a query with [`Rows::Handed`]. `_begins` is true if the next
    /// transaction would begin at once after this query, should the query be the last one of its transaction. A program
    /// that uses this need not ask whether another transaction follows: after the query it may already act for the next
    /// one, before it returns [`Action::End`].
    fn foresee(&mut self, _begins: bool) {}

    /// Receives the result of the last action. For a query with [`Rows::Counted`] and for a [`RecordedRequest`], it is
    /// called only if the statement failed. For a new connection, [`StagedRequest::Prepare`],
    /// [`StagedRequest::PrepareAll`] and a query with [`Rows::Handed`], it is always called.
    fn complete(&mut self, _result: ActionResult<'_>) {}

    /// Called when the load has ended and no further transaction follows.
    fn stop(&mut self) {}
}

/// The result of an action.
#[derive(Debug)]
pub enum ActionResult<'a> {
    /// The server executed the action. If a text had several statements, this is the result of the last one.
    Done(&'a Answered),
    /// The server reported an error. The event loop does not roll the transaction back: this is up to the program.
    Failed(&'a ServerError),
    /// The connection broke during the action, so that its result is not known.
    Lost(&'a ConnectionError),
    /// The connection could not be made.
    Refused(&'a OpenError),
}

/// The actions that only programs of one mode have. The modes are scripts (pgbench and order entry), staged (sysbench)
/// and replayed (recorded sessions). The types prevent an action of one mode from reaching the event loop of another.
pub trait Actions: Debug + Copy + 'static {
    /// A request to the server, for whose reply the event loop waits.
    type Request<'a>: Debug + Copy;
    /// A step that the event loop carries out without a request to the server.
    type Step: Debug + Copy;

    /// Returns the text of a request that is a query of the load; `None` if the request sends no query, or one that the
    /// load does not count.
    fn text<'a>(_request: &Self::Request<'a>) -> Option<&'a str> {
        None
    }
}

/// The next action of a client. `command` is the index of the command in its script.
#[derive(Debug, Clone, Copy)]
pub enum Action<'a, A: Actions = ScriptActions> {
    /// Send `statement` with the values of its parameters and wait for the reply; within a pipeline, do not wait. If
    /// the query is the `last` one of a transaction, no [`Action::End`] follows.
    Query { command: usize, statement: &'a Statement, values: &'a [Value], rows: Rows, last: bool },
    /// A request that only programs of this mode (scripts, staged or replayed) have.
    Request(A::Request<'a>),
    /// A step that only programs of this mode (scripts, staged or replayed) have.
    Step(A::Step),
    /// Let the other clients of the thread act, and then continue. A run that is over ends at this action, even in the
    /// middle of a transaction that computes for a long time.
    Pause,
    /// Wait for the given time.
    Sleep { command: usize, time: Duration },
    /// End the transaction, which is complete.
    End,
    /// Abort the client for this reason.
    Abort(&'a AbortReason),
}

/// The actions of programs that run scripts (pgbench) or order entry.
#[derive(Debug, Clone, Copy)]
pub enum ScriptActions {}

impl Actions for ScriptActions {
    type Request<'a> = StartPipeline<'a>;
    type Step = ScriptStep;
}

/// Send the queries that follow without waiting for the reply to each. In prepared mode, first prepare `statements`.
#[derive(Debug, Clone, Copy)]
pub struct StartPipeline<'a> {
    pub command: usize,
    pub statements: &'a [Statement],
}

/// A step that only programs of scripts have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptStep {
    /// Send a Sync. The server's implicit transaction ends here, and an error before it does not affect the statements
    /// after it.
    SyncPipeline { command: usize },
    /// Wait for the replies to all queries of the pipeline.
    EndPipeline { command: usize },
    /// Report that a command of a script begins. Scripts do this only in runs that print every step of the clients.
    Announce { command: usize },
    /// Report that a command which needs no server was executed. Only scripts whose commands are timed do this.
    Local { command: usize },
}

/// The actions of programs that run sysbench's tests or Lua scripts.
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

/// A request to the server in a staged run, which follows sysbench's rules: its programs open their connections by
/// themselves.
#[derive(Debug, Clone, Copy)]
pub enum StagedRequest<'a> {
    /// Send `sql` in a Query message, in any query mode. `rows` is `Counted`, `Handed` or `Skipped`. With `Skipped`,
    /// the text does not count as a query of the load, and the program receives its result.
    Text { sql: &'a str, rows: Rows },
    /// Let the server parse and describe `statement` without executing it.
    Prepare { statement: &'a Statement },
    /// Let the server parse, in one round trip, all of the `statements` that the session has not prepared yet.
    PrepareAll { statements: &'a [Statement] },
}

/// A step in a staged run (a run that follows sysbench's rules), which the event loop carries out without sending a
/// statement. Connections are identified by numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Management {
    /// Open this connection and use it from now on. The previous connection stays open.
    Connect(usize),
    /// Use this open connection from now on.
    Use(usize),
    /// Close this connection. The program must choose another connection with `Connect` or `Use` before its next action
    /// that needs one.
    Disconnect(usize),
    /// Add statements and transactions that the program has counted itself to the counts of the event loop.
    Count { queries: Queries, events: u64 },
    /// Leave the load. The client begins no further transaction, and its current one is not counted. The event loop
    /// then asks for the actions that come after the load, up to the next [`Action::End`].
    Leave,
}

/// The actions of programs that replay recorded sessions.
#[derive(Debug, Clone, Copy)]
pub enum ReplayActions {}

impl Actions for ReplayActions {
    type Request<'a> = RecordedRequest<'a>;
    type Step = SessionStep;
}

/// A request to send a statement as it was recorded. `rows` is `Counted`, or `Hashed` if the contents of the results
/// are compared too. The event loop counts each statement as a transaction.
#[derive(Debug, Clone, Copy)]
pub struct RecordedRequest<'a> {
    pub recorded: Recorded<'a>,
    pub rows: Rows,
}

/// A step of a recorded session. A session has one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStep {
    /// Wait until the recorded time of the next action, which connects or sends a statement.
    Schedule(Scheduled),
    /// Open the session's connection.
    Connect,
    /// Close the session's connection.
    Disconnect,
    /// Leave the load for good.
    Leave,
}

/// Carries out the actions of a sysbench program that is not a client of a load. It waits for the result of each
/// action, keeps the program's connections open between calls, and counts no statements.
pub trait Executor {
    /// Carries out actions up to the next [`Action::End`]. The error is the reason for which the program was aborted.
    fn carry_out(&mut self, program: &mut dyn Program<StagedActions>) -> Result<(), AbortReason>;
}

/// A function that makes a new executor for each program.
pub type Executors = Box<dyn Fn() -> Box<dyn Executor>>;

/// The reason for which a client is aborted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AbortReason {
    /// A command of the script failed. Its message has pgbench's wording: `client 0 aborted in command 3 (set) of
    /// script 0; reason`. `detail` is a separate message that is printed first, such as `division by zero`.
    Command { command: usize, word: &'static str, reason: String, detail: Option<String> },
    /// A query did not return the rows that its command expects. The message is `client 0 script 0 command 3 query 0:
    /// reason`; `detail` is a separate message that is printed first.
    Rows { command: usize, query: usize, reason: String, detail: Option<String> },
    /// The script as a whole failed. The message is `client 0 aborted: reason`.
    Script { reason: String },
    /// An error that ends the whole run. The fields are the lines of its message.
    Fatal(Vec<String>),
}

impl AbortReason {
    /// Returns the index, within its script, of the command that failed; `None` if the failure belongs to no command.
    pub fn command(&self) -> Option<usize> {
        match self {
            Self::Command { command, .. } | Self::Rows { command, .. } => Some(*command),
            Self::Script { .. } | Self::Fatal(_) => None,
        }
    }
}

/// Writes the reason without the numbers of the client and the script.
impl std::fmt::Display for AbortReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Command { detail: Some(detail), .. } => f.write_str(detail),
            Self::Command { reason, .. } | Self::Rows { reason, .. } | Self::Script { reason } => f.write_str(reason),
            Self::Fatal(lines) => f.write_str(&lines.join("\n")),
        }
    }
}

/// An error that ends or prevents the whole run, like sysbench's log level `FATAL`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fatal {
    /// The lines of the message.
    pub lines: Vec<String>,
}

impl Fatal {
    /// Makes an error with a message of one line.
    pub fn new(line: impl std::fmt::Display) -> Self {
        Self { lines: vec![line.to_string()] }
    }
}

/// The work of the clients of a run: makes the program of each client, and describes the scripts.
pub trait Workload<A: Actions = ScriptActions>: Send + Sync {
    /// Returns the descriptions of the scripts, in the order of their indexes.
    fn scripts(&self) -> Vec<ScriptInfo>;

    /// Makes the program of client `client`, which draws its values from `random`. The thread that calls this also runs
    /// the program.
    fn client(&self, client: usize, random: Random) -> Box<dyn Program<A>>;
}

/// The description of a script for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptInfo {
    /// The name of the script in reports, such as `<builtin: select only>`.
    pub description: String,
    /// The weight of the script, relative to the other scripts, when a script is chosen.
    pub weight: u64,
    pub commands: Vec<CommandInfo>,
}

/// The description of a command for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandInfo {
    /// The command's first line.
    pub line: String,
    /// True if the command is an SQL statement; false for a backslash command. Only statements have counts of failures
    /// and retries.
    pub is_sql: bool,
}
