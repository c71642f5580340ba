//! Scripts for sysbench: Lua on LuaJIT. Each client has a state of its own, in which its life is one coroutine; what
//! needs the server or the event loop is a request that it yields ([`client`]). The scripting interface itself is
//! written in Lua (`prelude/`), above a few native functions ([`natives`]).

mod alone;
mod client;
mod counters;
mod kept;
mod marking;
mod natives;
mod random;
mod request;
mod script;
mod search;
mod shared;
mod slate;
mod state;
#[cfg(test)]
mod tests;
mod workload;

pub use client::Role;
pub use script::LuaScript;
pub use search::{INSTALLED, ScriptOrigin, module_path};
pub use shared::{Invocation, NO_MYSQL, Voice};
