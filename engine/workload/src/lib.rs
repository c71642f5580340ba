//! The programs of a load's clients, as implementations of [`Program`]: pgbench's scripts, sysbench's own tests, Lua
//! scripts, order entry, and recorded sessions. A program decides what its client does next. All programs send
//! statements to a server, except sysbench's tests of the machine, which only compute.
//!
//! This crate uses no sockets and no clocks, and counts no transactions. A program returns an [`Action`], and the event
//! loop (crate `drive`) carries it out.

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
