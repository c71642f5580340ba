//! sysbench's options. The options of a test are known only after the test has been found, so general options are
//! checked before that and the test's options after it. A new general option needs only a row in `table.rs`.

pub mod checks;
pub mod command_line;
pub mod settle;
pub mod table;
#[cfg(test)]
mod tests;
pub mod values;
