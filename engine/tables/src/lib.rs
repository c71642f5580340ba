//! Makes tables: pgbench's (`-i`), those of sysbench's tests (`prepare`), the one of the published tasks, with the same
//! contents as the originals, and those of order entry.
//!
//! Several engines can fill the same tables; each generates its share of the rows or tables.

mod copy;
mod error;
mod mark;
pub mod order_entry;
mod parallel;
mod pgbench;
mod progress;
mod session;
pub mod sysbench;
pub mod tasks;

pub use error::{LoadError, TablesError};
pub use pgbench::options::{InitOptions, PartitionMethod};
pub use pgbench::{InitStep, initialize};
pub use session::{Backends, refuse_read_only};
