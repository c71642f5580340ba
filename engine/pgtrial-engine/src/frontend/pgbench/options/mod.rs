//! pgbench's command line. To add an option: a field in `fields.rs` and a row in `table.rs`.

pub mod fields;
pub mod pooling;
pub mod reader;
mod sections;
pub mod settle;
pub mod table;
pub mod values;
