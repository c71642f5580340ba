//! The text of statements: its tokens, and the parts of it that are values.
//!
//! - `literals`: splits a text into a template and its literals
//! - `reading`: how the quotes of a text pair
//! - `tokens`: the tokens of a text
//! - `units`: the words of intervals

pub mod literals;
pub mod reading;
pub mod tokens;
pub mod units;
