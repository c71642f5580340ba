//! Modules that several crates of the engine need. This crate uses none of the other crates.
//!
//! - `c_numbers`: reads numbers as C's library does
//! - `clock`: the monotonic clock, its unit (nanoseconds), and the phases of a run
//! - `getopt`: command lines as GNU `getopt_long` reads them
//! - `interrupt`: signals that end a run
//! - `manual`: a front end and its options as data, from which help, manual pages and shell completion are made
//! - `options`: tables of command-line options, one row each
//! - `output`: standard output and standard error
//! - `random`: the random number generator and the distributions of pgbench
//! - `poll`: waits until a socket is readable or writable; `readiness`: or until a time
//! - `sql`: finds the ends of comments and quoted texts in SQL
//! - `stdin`: standard input, read so that interrupts are noticed
//! - `shard`: computes which part of a run each of several engines does
//! - `text`: texts of the system, which need not be UTF-8
//! - `trust`: checks that protect root from files that another account could replace
//! - `words`: numbers with the noun that they count

pub mod c_numbers;
pub mod clock;
pub mod getopt;
pub mod interrupt;
pub mod manual;
pub mod options;
pub mod output;
pub mod poll;
pub mod random;
pub mod readiness;
pub mod shard;
pub mod sql;
pub mod stdin;
pub mod text;
pub mod trust;
pub mod words;
