//! Front ends: each reads one tool's options, builds a plan, and writes that tool's output.

pub mod getopt;
pub mod interrupt;
pub mod pgbench;
pub mod self_check;
pub mod sysbench;
