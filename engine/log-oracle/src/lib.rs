//! A test oracle for captures, which are the recorded sessions and statements that the engine reads from a server's
//! log. A generator writes logs and remembers what it wrote, so that a capture can be compared with it.
//!
//! - `choices`: random decisions, drawn from the bytes of a fuzzer or of a property test
//! - `load`: sessions, their statements, and the messages that a server logs about them
//! - `sql`: texts of statements
//! - `form`: writes messages in the formats `stderr`, `csvlog` and `jsonlog`
//! - `damage`: damages logs in the ways in which real logs are damaged
//! - `verdict`: compares a capture with what was written to the log

mod choices;
mod damage;
mod form;
mod load;
mod sql;
mod verdict;

pub use verdict::judge;
