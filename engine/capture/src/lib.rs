//! Captures: recordings of what the sessions of a server did, made from the server's logs or statistics.
//!
//! - `anonymize`: replaces the values of a capture by tokens
//! - `doubts`: finds statements that may do something else in a replay
//! - `error`: the errors for which no capture can be made
//! - `format`: writes and reads the files of a capture
//! - `left_out`: counts what the capture does not contain
//! - `log`: reads PostgreSQL's logs as records
//! - `make`: reads logs and writes a capture
//! - `message`, `parameters`: interpret the texts of a record
//! - `mix`: makes sessions from pg_stat_statements and pg_stats
//! - `overlap`: finds logs that have the same records
//! - `recorder`: makes sessions and statements from records
//! - `selection`: the times and names that the user wants to capture
//! - `session`: the state of a session until it ends
//! - `statement_template`: makes the template and the parameters of a statement
//! - `sql`: tokens and literals of SQL texts
//! - `transactions`: adds BEGIN and COMMIT for transactions whose BEGIN is not in the log
//! - `time`, `zones`: timestamps, and the time zones of the logs
//!
//! docs/replay.md describes what a capture contains and what it cannot contain.

pub mod anonymize;
mod doubts;
pub mod error;
pub mod format;
mod left_out;
pub mod log;
pub mod make;
mod message;
pub mod mix;
mod overlap;
mod parameters;
mod recorder;
pub mod selection;
mod session;
pub mod sql;
mod statement_template;
#[cfg(test)]
mod tests;
pub mod time;
mod transactions;
pub mod zones;
