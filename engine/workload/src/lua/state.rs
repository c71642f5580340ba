//! Lua states with their libraries, the native functions and the prelude.
//!
//! Scripts of sysbench use LuaJIT's `ffi` and the `debug` library, with which Lua can break Rust's guarantees. For this
//! reason mlua makes them available only through an unsafe function, which is called here and nowhere else. Running a
//! script requires the same trust as running a program; sysbench runs scripts with the same libraries. The prelude
//! itself uses `ffi` only to call native functions that take and return numbers, and for the [exchange
//! buffer](super::exchange_buffer).
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use mlua::{ChunkMode, Function, Lua, LuaOptions, StdLib, Table};

use super::exchange_buffer::ExchangeBuffer;
use super::kept::Fetched;
use super::natives;
use super::shared::SharedStates;

/// The files of the prelude, the Lua code that gives scripts sysbench's interface, in the order in which they run.
const PRELUDE: [(&str, &str); 17] = [
    ("=exchange_buffer.lua", include_str!("prelude/exchange_buffer.lua")),
    ("=requests.lua", include_str!("prelude/requests.lua")),
    ("=files.lua", include_str!("prelude/files.lua")),
    ("=interface.lua", include_str!("prelude/interface.lua")),
    ("=rand.lua", include_str!("prelude/rand.lua")),
    ("=report.lua", include_str!("prelude/report.lua")),
    ("=cmdline.lua", include_str!("prelude/cmdline.lua")),
    ("=objects.lua", include_str!("prelude/objects.lua")),
    ("=results.lua", include_str!("prelude/results.lua")),
    ("=connections.lua", include_str!("prelude/connections.lua")),
    ("=bulk.lua", include_str!("prelude/bulk.lua")),
    ("=parameters.lua", include_str!("prelude/parameters.lua")),
    ("=statements.lua", include_str!("prelude/statements.lua")),
    ("=drivers.lua", include_str!("prelude/drivers.lua")),
    ("=legacy.lua", include_str!("prelude/legacy.lua")),
    ("=histogram.lua", include_str!("prelude/histogram.lua")),
    ("=life.lua", include_str!("prelude/life.lua")),
];

/// A Lua state in which a script can run, with the native functions and the prelude (the Lua code that gives scripts
/// sysbench's interface).
pub struct LuaState {
    pub lua: Lua,
    /// The table that the prelude (the Lua code that gives scripts sysbench's interface) and Rust use. Scripts cannot
    /// see it.
    pub native: Table,
    pub fetched: Rc<RefCell<Fetched>>,
    /// The exchange buffer, the memory that Rust and Lua share. It must not move, because Lua knows its address.
    pub exchange_buffer: Box<ExchangeBuffer>,
}

impl LuaState {
    /// Makes a Lua state in which the script sees `tid` as its thread number. States that belong to no client usually
    /// have `tid` 0.
    pub fn new(shared: &Arc<SharedStates>, tid: usize) -> mlua::Result<Self> {
        // LuaJIT's own `pcall` is kept, because a coroutine cannot yield across the `pcall` of mlua.
        let options = LuaOptions::new().catch_rust_panics(true);
        // SAFETY: see the comment at the beginning of this file.
        let lua = unsafe { Lua::unsafe_new_with(StdLib::ALL, options) };
        let fetched = Rc::default();
        let exchange_buffer = Box::<ExchangeBuffer>::default();
        let native = natives::install(&lua, shared, tid, &fetched)?;
        native.set("exchange_buffer", lua.create_table_from(exchange_buffer.described())?)?;
        for part in compiled(&lua)? {
            lua.load(&part[..]).set_mode(ChunkMode::Binary).call::<()>(&native)?;
        }
        Ok(Self { lua, native, fetched, exchange_buffer })
    }

    /// Returns a function of the prelude, the Lua code that gives scripts sysbench's interface, by its name.
    pub fn function(&self, name: &str) -> mlua::Result<Function> {
        self.native.get(name)
    }

    /// Returns the script's top level as a function.
    pub fn script(&self, shared: &SharedStates) -> mlua::Result<Function> {
        self.lua.load(&shared.chunk.source[..]).set_name(&shared.chunk.name).into_function()
    }
}

/// Closes the Lua state. While it is closed, finalizers of the script run, and they must not call native functions.
impl Drop for LuaState {
    fn drop(&mut self) {
        // If there is no memory to set this field, no finalizers run either.
        let _ = self.native.set("is_closed", true);
    }
}

/// Returns the prelude (the Lua code that gives scripts sysbench's interface) as LuaJIT's bytecode. It is compiled only
/// once, because parsing source text would take most of the time for making a state.
fn compiled(lua: &Lua) -> mlua::Result<&'static [Vec<u8>]> {
    static COMPILED: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    if let Some(parts) = COMPILED.get() {
        return Ok(parts);
    }
    let compile = |(name, source)| {
        let function = lua.load(source).set_name(name).into_function()?;
        Ok(function.dump(false))
    };
    let parts = PRELUDE.into_iter().map(compile).collect::<mlua::Result<_>>()?;
    Ok(COMPILED.get_or_init(|| parts))
}
