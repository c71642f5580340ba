//! Scripts for sysbench: Lua on LuaJIT. Each client has a state of its own, in which its life is one coroutine; what needs
//! the server or the reactor is a request that it yields ([`client`]). The scripting interface itself is written in Lua
//! (`prelude/`), above a few native functions ([`natives`]).

mod client;
mod declared;
mod fetched;
mod natives;
mod random;
mod script;
mod search;
mod shared;
mod state;
mod statements;
#[cfg(test)]
mod tests;
mod workload;

pub use script::Script;
pub use search::Source;
pub use shared::{Invocation, Voice};
pub use workload::Role;
