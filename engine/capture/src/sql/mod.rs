//! Examines SQL texts: splits them into tokens, and finds the values in them.
//!
//! - `commands`: what a statement does to its session
//! - `encoding`: the encoding that a statement chooses for its session
//! - `literals`: splits a text into a template and its literals
//! - `reading`: finds out what a backslash means in a text
//! - `settings`: the setting that a statement changes
//! - `tokens`: splits a text into tokens
//! - `units`: the units of time in intervals
//! - `untyped`: finds parameters whose types decide what a statement does

pub mod commands;
pub mod encoding;
pub mod literals;
pub mod reading;
pub mod settings;
pub mod tokens;
pub mod units;
pub mod untyped;
