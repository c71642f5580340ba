//! pgbench's command line. To add an option: a row in `table.rs`, its field in `chosen.rs`.

pub mod chosen;
pub mod pooling;
pub mod reader;
pub mod settle;
pub mod shared;
mod table;
pub mod values;
