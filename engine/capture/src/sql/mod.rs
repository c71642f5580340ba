//! The text of statements: its tokens, and the parts of it that are values.
//!
//! - `commands`: what a statement does to its session
//! - `literals`: splits a text into a template and its literals
//! - `reading`: how the quotes of a text pair
//! - `settings`: the setting that a statement changes
//! - `tokens`: the tokens of a text
//! - `units`: the words of intervals
//! - `untyped`: parameters whose types decide what a statement does

pub mod commands;
pub mod literals;
pub mod reading;
pub mod settings;
pub mod tokens;
pub mod units;
pub mod untyped;
