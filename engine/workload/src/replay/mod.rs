//! Replays captures. Each client runs recorded sessions one after the other, in the order of their starts.
//!
//! - `source`: a capture whose sessions the clients share
//! - `choice`: chooses the sessions that are replayed, and summarizes them
//! - `accounts`: chooses the templates that are counted separately
//! - `requests`: decides how the statements of each template are sent
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
