//! Lua scripts written for sysbench, on LuaJIT. Each client has a Lua state of its own, in which the script runs as one
//! coroutine, called the client's life. When the script needs the server or the event loop, the coroutine yields a
//! request ([`client`]). Most of the scripting interface is written in Lua (`prelude/`), on top of a few native
//! functions ([`natives`]).

mod alone;
mod client;
mod counters;
mod exchange_buffer;
mod kept;
mod marking;
mod natives;
mod random;
mod request;
mod script;
mod search;
mod shared;
mod state;
#[cfg(test)]
mod tests;
mod workload;

pub use client::Role;
pub use script::LuaScript;
pub use search::{INSTALLED, ScriptOrigin, module_path};
pub use shared::{Invocation, NO_MYSQL, Voice};
