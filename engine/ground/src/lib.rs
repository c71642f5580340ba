//! What several crates need and none owns: the clock and its unit, readiness of sockets, interrupts, command lines, text
//! for people, random numbers, and the arithmetic of runs that several engines share.

pub mod clock;
pub mod getopt;
pub mod interrupt;
pub mod output;
pub mod random;
pub mod readiness;
pub mod shard;
