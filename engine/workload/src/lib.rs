//! The programs of clients: pgbench's scripts, sysbench's own tests, Lua scripts, order entry and recorded sessions, as
//! [`Program`]s. Most of them use a server; sysbench's tests of the machine compute.
//!
//! This crate does not know sockets, clocks or counts. A program answers with an [`Action`], and the event loop carries
//! it out.

pub mod host;
pub mod lua;
pub mod oltp;
pub mod order_entry;
pub mod pgbench;
mod program;
pub mod queries;
pub mod recorded;
pub mod replay;
pub mod sb_rand;
pub mod seeds;
pub mod sent;
pub mod settings;
pub mod statistics;

pub use program::{
    AbortReason, Action, ActionResult, Actions, CommandInfo, Executor, Executors, Fatal, Management, Program,
    RecordedRequest, ReplayActions, ScriptActions, ScriptInfo, ScriptStep, SessionStep, StagedActions, StagedRequest,
    StartPipeline, Workload,
};
