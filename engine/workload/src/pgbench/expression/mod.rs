//! The expressions of `\set`, `\if` and `\elif`. An expression is parsed into a tree with the names of its variables.
//! Then slots (indexes of variables) replace the names, and values replace constant parts.

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
