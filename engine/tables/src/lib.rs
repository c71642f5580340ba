//! Makes the tables that loads use: the tables of pgbench (`-i`), of sysbench's tests (`prepare`) and of the published
//! tasks (docs/tasks.md), whose contents equal the originals, and the tables of order entry and of the suites.
//!
//! Several engines can fill the same tables of pgbench, of sysbench's tests and of the published tasks. Each engine
//! then generates its share of the rows or of the tables.

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
