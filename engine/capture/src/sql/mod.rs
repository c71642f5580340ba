//! The text of statements: its tokens, and the parts of it that are values.
//!
//! - `literals`: splits a text into a template and its literals
//! - `tokens`: the tokens of a text

pub mod literals;
pub mod tokens;
