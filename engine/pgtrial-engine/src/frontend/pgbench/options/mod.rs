//! pgbench's command line. A new option needs a field in `arguments.rs` and a row in `table.rs`.

pub mod arguments;
pub mod reader;
mod sections;
mod settle;
mod table;
mod values;
