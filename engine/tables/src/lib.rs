//! Makes tables: pgbench's (`-i`), those of sysbench's tests (`prepare`), and the one of the published tasks, with the same
//! contents as the originals.
//!
//! Several engines can fill the same tables; each generates its share of the rows or tables.

mod copy;
mod pgbench;
mod progress;
mod session;
pub mod sysbench;
pub mod tasks;

pub use pgbench::options::{InitOptions, PartitionMethod};
pub use pgbench::{Step, initialize};
pub use session::{Backends, LoadError};
