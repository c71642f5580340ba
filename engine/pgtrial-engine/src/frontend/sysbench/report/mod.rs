//! What sysbench's `run` prints, and its exit status.

mod histogram;
mod init_timeout;
mod observer;
pub mod options;
pub mod run;
mod statistics;
#[cfg(test)]
mod tests;
mod texts;
