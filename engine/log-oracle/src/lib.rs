//! An oracle for testing captures of logs: a generator writes logs and remembers what it wrote, so that a capture can
//! be compared with it.
//!
//! - `choices`: decisions, drawn from the bytes of a fuzzer or of a property test
//! - `load`: sessions, their statements, and the messages that a server logs of them
//! - `sql`: texts of statements
//! - `form`: messages as `stderr`, `csvlog` or `jsonlog`
//! - `damage`: the damage that happens to logs
//! - `verdict`: the comparison of a capture with what was written

mod choices;
mod damage;
mod form;
mod load;
mod sql;
mod verdict;

pub use verdict::judge;
