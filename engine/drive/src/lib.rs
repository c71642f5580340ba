//! The event loop, which decides when a client acts, and counts the results. The crate `workload` has the programs,
//! which decide what a client does next, and `wire` has the connections to the server. This crate does not know the
//! options, reports and events of the front ends.

mod agenda;
pub mod alone;
mod arrivals;
mod cancels;
mod client;
mod closed;
mod counters;
mod early_end;
mod inbox;
mod life;
mod mode;
mod notes;
mod open_files;
mod outcome;
pub mod plan;
mod pool;
mod pooled;
mod replayed;
mod report;
mod run;
mod runtime;
mod schedule;
mod scheduled_starts;
mod shell;
#[cfg(test)]
mod simulation;
pub mod slices;
mod sockets;
mod staged;
mod start;
pub mod start_at;
pub mod statistics;
mod thread;
mod ticks;
mod timers;
mod under_way;
mod worker;

pub use outcome::{Abortion, Began, Cause, CpuTime, Observer, Outcome, RunError, STUCK, Tick};
pub use run::run;
