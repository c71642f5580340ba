//! Front ends: each reads one tool's options, builds a plan, and writes that tool's output. What several of them need stands
//! beside them.

pub mod capture;
mod connections;
mod elapsed;
pub mod merge;
pub mod order_entry;
pub mod pgbench;
pub mod replay;
pub mod self_check;
pub mod sharing;
pub mod sysbench;
pub mod tasks;
