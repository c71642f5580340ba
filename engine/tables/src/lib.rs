//! Makes tables: pgbench's (`-i`), those of sysbench's tests (`prepare`), the one of the published tasks, with the same
//! contents as the originals, those of order entry, and those of suites.
//!
//! Several engines can fill the same tables; each generates its share of the rows or tables.

mod copy;
mod error;
mod mark;
pub mod order_entry;
mod parallel;
mod pgbench;
mod progress;
mod row;
mod session;
pub mod suites;
pub mod sysbench;
mod table_set;
pub mod tasks;

pub use error::{LoadError, TablesError};
pub use pgbench::options::{InitOptions, PartitionMethod};
pub use pgbench::{InitStep, initialize};
pub use session::{Backends, refuse_read_only};
