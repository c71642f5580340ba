//! Programs: what a client does next. A program knows neither sockets nor clocks; it answers with an [`Action`], and the
//! reactor carries it out.

pub mod pgbench;
pub mod random;
pub mod value;

use std::time::Duration;

use crate::connection::rows::ResultSet;
use crate::connection::statement::Statement;
use random::Random;
use value::Value;

/// One client's program. It is asked for one action after another; each transaction starts with [`Program::begin`].
pub trait Program: Send {
    /// Starts a transaction: chooses a script with the thread's generator and returns its index.
    fn begin(&mut self, choose: &mut Random) -> usize;

    /// Starts the same transaction again after a failure, with the random state that it began with.
    fn retry(&mut self);

    /// The next action; called again when the former one is complete.
    fn next(&mut self) -> Action<'_>;

    /// Takes the results of the last query, whose action asked for them ([`Rows::Kept`]).
    fn store(&mut self, results: &[ResultSet]) -> Result<(), Trouble>;
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
    /// Do nothing for a while.
    Sleep { command: usize, time: Duration },
    /// A command that needed no server has been executed; only asked for when commands are timed.
    Local { command: usize },
    /// The transaction is complete.
    End,
    /// The client cannot go on.
    Abort(Trouble),
}

/// What is wanted of the rows that a query returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    Skipped,
    Kept,
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
}

/// What went wrong, without the client and the script.
impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Command { detail: Some(detail), .. } => f.write_str(detail),
            Self::Command { reason, .. } | Self::Rows { reason, .. } | Self::Script { reason } => f.write_str(reason),
        }
    }
}

/// The programs of a run: makes each client's, and knows the scripts' descriptions for reports.
pub trait Workload: Send + Sync {
    /// The scripts in the order of their indexes.
    fn scripts(&self) -> Vec<ScriptInfo>;

    /// The program of client `client`, whose values are drawn from `random`.
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
