//! sysbench's options. Which ones a test has is known only when the test is: general options are checked before, the
//! others after that. To add a general option: a row in `table.rs`.

pub mod checks;
pub mod command_line;
pub mod settle;
pub mod table;
#[cfg(test)]
mod tests;
pub mod values;
