//! Programs: what a client does next. A program knows neither sockets nor clocks; it answers with an [`Action`], and the
//! reactor carries it out.

pub mod pgbench;
pub mod random;
pub mod value;

use crate::connection::statement::Statement;
use random::Random;
use value::Value;

/// One client's program. It is asked for one action after another; each transaction starts with [`Program::begin`].
pub trait Program: Send {
    /// Starts a transaction: chooses a script with the thread's generator and returns its index.
    fn begin(&mut self, choose: &mut Random) -> usize;

    /// The next action; called again when the former one is complete.
    fn next(&mut self) -> Action<'_>;
}

/// What a client does next. `command` counts a script's commands from 0.
#[derive(Debug)]
pub enum Action<'a> {
    /// Send `statement` with values taken from `values` and wait for the reply.
    Query { command: usize, statement: &'a Statement, values: &'a [Value] },
    /// A command that needed no server has been executed; only asked for when commands are timed.
    Local { command: usize },
    /// The transaction is complete.
    End,
    /// The client cannot go on: what is wrong, in the command `command`.
    Abort { command: usize, message: String },
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
    /// The first line of each command.
    pub commands: Vec<String>,
}
