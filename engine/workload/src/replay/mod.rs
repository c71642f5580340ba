//! Replays of captures: each client runs recorded sessions one after the other, in the order of their starts.
//!
//! - `source`: a capture that is replayed; its clients share its sessions
//! - `choice`: the sessions that are replayed, and a summary of them
//! - `accounts`: the templates that are counted separately
//! - `requests`: the way in which the statements of each template are sent
//! - `client`: the program of a client

mod accounts;
mod choice;
mod client;
mod requests;
mod source;
#[cfg(test)]
mod tests;

pub use choice::{Choice, Survey};
pub use source::Replay;
