//! Programs: what a client does next. A program knows neither sockets nor clocks; it answers with an [`Action`], and the
//! reactor carries it out.

pub mod lua;
pub mod oltp;
pub mod pgbench;
pub mod random;
pub mod seeds;
pub mod settings;
pub mod statistics;

use std::time::Duration;

use ground::random::Random;
use wire::OpenError;
use wire::answer::{Answered, Rows};
use wire::error::{ConnectionError, ServerError};
use wire::rows::ResultSet;
use wire::statement::Statement;
use wire::value::Value;

/// One client's program. It is asked for one action after another; each transaction starts with [`Program::begin`].
///
/// In a staged run ([`drive::plan::Plan::staged`]) a program connects by itself. It is asked for actions before the first
/// transaction, up to an [`Action::End`], and again after the last one, when it has been told to [`Program::stop`].
pub trait Program {
    /// Starts a transaction: chooses a script with the thread's generator and returns its index.
    fn begin(&mut self, choose: &mut Random) -> usize;

    /// Starts the same transaction again after a failure, with the random state that it began with.
    fn retry(&mut self);

    /// The next action; called again when the former one is complete.
    fn next(&mut self) -> Action<'_>;

    /// The next action if it is a query outside of pipelines whose rows are not wanted ([`Rows::Skipped`]), the usual one;
    /// `None` leaves it to [`Program::next`], and may do so for any action.
    #[inline]
    fn next_query(&mut self) -> Option<Query<'_>> {
        None
    }

    /// Takes the results of the last query, whose action asked for them ([`Rows::Kept`]).
    fn store(&mut self, _results: &[ResultSet]) -> Result<(), Trouble> {
        Ok(())
    }

    /// Takes what became of the last action: of a [`Rows::Counted`] query only if it failed, of [`Action::Connect`],
    /// [`Action::Prepare`], [`Action::PrepareAll`] and [`Rows::Handed`] queries always.
    fn take(&mut self, _outcome: Outcome<'_>) {}

    /// There will be no further transaction.
    fn stop(&mut self) {}
}

/// What became of an action.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// The server has done it. Of several statements in one text the last one counts.
    Done(&'a Answered),
    /// The server could not do it. Its transaction is as it is: nothing has been rolled back.
    Failed(&'a ServerError),
    /// The connection broke; it is gone.
    Lost(&'a ConnectionError),
    /// No connection could be made.
    Refused(&'a OpenError),
}

/// What a client does next. `command` counts a script's commands from 0.
#[derive(Debug)]
pub enum Action<'a> {
    /// Send `statement` with values taken from `values` and wait for the reply; in a pipeline, go on without waiting.
    /// The `last` one of a transaction needs no [`Action::End`] after it.
    Query { command: usize, statement: &'a Statement, values: &'a [Value], rows: Rows, last: bool },
    /// Queries that follow are sent without waiting. In prepared mode `statements` have to be prepared before.
    StartPipeline { command: usize, statements: &'a [Statement] },
    /// A point in the pipeline at which the server's transaction ends and after which an error is forgotten.
    SyncPipeline { command: usize },
    /// Wait for the replies to all of the pipeline.
    EndPipeline { command: usize },
    /// Send `sql` in a Query message, whatever the run's protocol; `rows` is `Counted` or `Handed`. With `Skipped` it is
    /// none of the load's queries and is not counted, but the program is told what became of it.
    Text { sql: &'a str, rows: Rows },
    /// Have the server parse and describe `statement`, which takes no values yet.
    Prepare { statement: &'a Statement },
    /// Have the server parse those of `statements` that are new to this session, all at once.
    PrepareAll { statements: &'a [Statement] },
    /// Make the connection `number`, and use it from now on. The former one is kept.
    Connect { number: usize },
    /// Use the connection `number`, which has been made, from now on.
    Use { number: usize },
    /// Close the connection `number`; no other one is used before it is said which.
    Disconnect { number: usize },
    /// The client takes part in no further transaction, the one under way does not count. What it does before its
    /// [`Action::End`] comes after the load.
    Leave,
    /// Do nothing for a while.
    Sleep { command: usize, time: Duration },
    /// A command that needed no server has been executed; only asked for when commands are timed.
    Local { command: usize },
    /// The transaction is complete.
    End,
    /// The client cannot go on.
    Abort(Trouble),
}

/// An [`Action::Query`] whose rows are not wanted.
#[derive(Debug)]
pub struct Query<'a> {
    pub command: usize,
    pub statement: &'a Statement,
    pub values: &'a [Value],
    pub last: bool,
}

/// Why a client cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// A command of the script failed, in pgbench's words: `client 0 aborted in command 3 (set) of script 0; reason`.
    /// `detail` is an error of its own that is told before, e.g. `division by zero`.
    Command { command: usize, word: &'static str, reason: String, detail: Option<String> },
    /// Rows are not as they have to be: `client 0 script 0 command 3 query 0: reason`.
    Rows { command: usize, query: usize, reason: String },
    /// The script as a whole: `client 0 aborted: reason`.
    Script { reason: String },
    /// The run cannot go on, as these lines say.
    Fatal(Vec<String>),
}

/// What went wrong, without the client and the script.
impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Command { detail: Some(detail), .. } => f.write_str(detail),
            Self::Command { reason, .. } | Self::Rows { reason, .. } | Self::Script { reason } => f.write_str(reason),
            Self::Fatal(lines) => f.write_str(&lines.join("\n")),
        }
    }
}

/// Why a run cannot be, or cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fatal {
    /// What is said of it, line by line.
    pub lines: Vec<String>,
}

impl Fatal {
    /// With one line.
    pub fn new(line: impl std::fmt::Display) -> Self {
        Self { lines: vec![line.to_string()] }
    }
}

/// The programs of a run: makes each client's, and knows the scripts' descriptions for reports.
pub trait Workload: Send + Sync {
    /// The scripts in the order of their indexes.
    fn scripts(&self) -> Vec<ScriptInfo>;

    /// The program of client `client`, whose values are drawn from `random`; made and used in one thread.
    fn client(&self, client: usize, random: Random) -> Box<dyn Program>;
}

/// What a report says of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptInfo {
    /// For people, e.g. `<builtin: select only>`.
    pub description: String,
    /// Relative weight in the choice of scripts.
    pub weight: u64,
    pub commands: Vec<CommandInfo>,
}

/// What a report says of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandInfo {
    /// Its first line.
    pub line: String,
    /// Whether it is a statement for the server: only those can fail or be retried.
    pub is_sql: bool,
}
