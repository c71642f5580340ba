//! sysbench's options. The options of a test are known only after the test has been loaded. The general options that
//! are needed for loading it are therefore checked before, and all other options after. A new general option needs only
//! a row in `table.rs`.

pub mod checks;
pub mod command_line;
pub mod settle;
pub mod table;
#[cfg(test)]
mod tests;
pub mod values;
