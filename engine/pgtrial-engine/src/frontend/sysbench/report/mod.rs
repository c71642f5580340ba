//! The output of sysbench's `run`, and its exit status.

mod forced_end;
mod histogram;
mod init_timeout;
pub mod observer;
pub mod options;
pub mod run;
mod statistics;
mod status;
#[cfg(test)]
mod tests;
mod texts;
