//! pgtrial-engine: makes a load on PostgreSQL and measures it. If the program is called by a link with the name
//! `pgbench` or `sysbench`, it behaves as that tool.

mod event;
mod frontend;
mod program;

/// The function that the fuzz test of sysbench's command lines calls.
pub use frontend::sysbench::options::accepts as sysbench_accepts;
pub use program::main;
