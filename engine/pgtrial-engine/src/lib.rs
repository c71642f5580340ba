//! pgtrial-engine: makes a load on PostgreSQL and measures it. Linked as `pgbench` or `sysbench` it is that tool.

mod event;
mod frontend;
mod program;

/// The function for the fuzz target of command lines.
pub use frontend::sysbench::options::settle::accepts as sysbench_accepts;
pub use program::main;
