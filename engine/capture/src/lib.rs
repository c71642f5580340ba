//! Captures: what the sessions of a server did, read from its logs.
//!
//! - `anonymize`: replaces the values of a capture by tokens
//! - `doubts`: finds statements whose replay may do something else
//! - `error`: the reasons for which no capture can be made
//! - `format`: a capture on disk, written and read
//! - `left_out`: counts of what logs have and a capture lacks
//! - `log`: PostgreSQL's logs as records
//! - `make`: reads logs and writes a capture
//! - `message`, `parameters`: what a record's texts say
//! - `mix`: sessions made of pg_stat_statements and pg_stats
//! - `overlap`: finds logs that have the same records
//! - `recorder`: makes sessions and statements of records
//! - `selection`: the part of the logs that is wanted
//! - `session`: a session until its end
//! - `statement_template`: makes the template and the parameters of a statement
//! - `sql`: the text of statements: tokens, templates, literals
//! - `transactions`: transactions whose BEGIN is not in the log
//! - `time`, `zones`: timestamps, and the zones of their clocks
//!
//! docs/replay.md describes what a capture has and what it cannot have.

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
