//! Code that several front ends share: messages and failures, the options for the connection, the load and the output,
//! and the plan of a run that is made from these options.

pub mod arguments;
pub mod connection;
pub mod elapsed;
pub mod failure;
pub mod messages;
pub mod options;
pub mod plan;
pub mod pooling;
pub mod rows;
pub mod self_check;
pub mod sent_statements;
pub mod sharing;
pub mod values;
