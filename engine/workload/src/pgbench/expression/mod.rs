//! The expressions of `\set`, `\if` and `\elif`: parsed into a tree of names, then resolved into one of slots with the
//! constants folded.

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
