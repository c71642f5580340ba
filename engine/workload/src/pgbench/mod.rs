//! pgbench scripts as programs. Scripts are parsed when their options are read, linked when the run is planned, and
//! executed by each client.

pub mod builtin;
mod client;
mod compiler;
mod drawn;
mod error;
mod expression;
mod hashes;
mod lexer;
mod listing;
mod meta_commands;
pub mod script;
mod scripts;
mod shell;
mod sql;
mod steps;
mod symbols;
mod words;

#[cfg(test)]
mod tests;

pub use drawn::{DrawnStatement, drawn};
pub use listing::{ListedCommand, ListedStatement, listed};
pub use script::{Parsed, parse};
pub use scripts::{ScriptEnvironment, Scripts};
pub use symbols::is_valid as is_variable_name;
