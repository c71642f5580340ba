//! Front ends: each reads one tool's options, builds a plan, and writes that tool's output.

pub mod events;
pub mod getopt;
pub mod interrupt;
pub mod merge;
pub mod open_files;
pub mod pgbench;
pub mod pooling;
pub mod self_check;
pub mod sharing;
pub mod sysbench;
pub mod tasks;
