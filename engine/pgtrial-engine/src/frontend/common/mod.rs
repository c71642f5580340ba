//! The parts that front ends have in common: their messages and failures, the options of connection, load and output
//! from the arguments to the values that a run needs, and its plan.

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
