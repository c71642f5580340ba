//! Code that several front ends share: messages and failures, the options for the connection, the load and the output,
//! and the plan of a run that is made from these options.

pub mod connection;
pub mod elapsed;
pub mod end;
pub mod failure;
pub mod log;
pub mod messages;
pub mod options;
pub mod pooling;
pub mod progress;
pub mod rows;
pub mod scripts;
pub mod self_check;
pub mod sent_statements;
pub mod sharing;
pub mod values;
