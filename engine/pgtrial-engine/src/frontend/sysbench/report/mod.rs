//! The output and the exit status of the command `run`, as in sysbench.

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
