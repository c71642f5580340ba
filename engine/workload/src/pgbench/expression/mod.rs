//! The expressions of `\set`, `\if` and `\elif`. They are parsed into a tree with names, in which then names are
//! replaced by slots and constant parts by their values.

pub mod evaluate;
pub mod fold;
pub mod functions;
mod lexer;
mod parser;
pub mod scalar;
mod tree;

pub use lexer::continuation;
pub use parser::parse;
pub use scalar::Scalar;
pub use tree::{Expression, Syntax, Tree};
