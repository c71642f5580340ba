//! What the prelude gets from Rust: the kinds of requests, functions, the options, and the tables that scripts find when they
//! start.

use std::cell::RefCell;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mlua::{IntoLua, LightUserData, Lua, String as LuaString, Table, Value};

use super::fetched::Fetched;
use super::shared::Shared;
use super::{random, search};
use crate::sb_rand;
use crate::settings::OptionValue;

/// sysbench's version whose interface scripts find.
const VERSION: &str = "1.0.20";

/// Modules of sysbench that scripts require, where no file of that name is found.
const MODULES: [(&str, &str); 1] = [("oltp_common", include_str!("prelude/oltp_common.lua"))];

/// The kinds of requests. In Lua they are light userdata, which no script can make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum RequestKind {
    Connect = 1,
    Reconnect,
    Disconnect,
    Query,
    Rollback,
    Prepare,
    Execute,
    Close,
    Ready,
    More,
    Left,
    Fatal,
}

impl RequestKind {
    const ALL: [(&str, RequestKind); 12] = [
        ("connect", RequestKind::Connect),
        ("reconnect", RequestKind::Reconnect),
        ("disconnect", RequestKind::Disconnect),
        ("query", RequestKind::Query),
        ("rollback", RequestKind::Rollback),
        ("prepare", RequestKind::Prepare),
        ("execute", RequestKind::Execute),
        ("close", RequestKind::Close),
        ("ready", RequestKind::Ready),
        ("more", RequestKind::More),
        ("left", RequestKind::Left),
        ("fatal", RequestKind::Fatal),
    ];

    fn to_lua(self) -> LightUserData {
        LightUserData(ptr::without_provenance_mut(self as usize))
    }

    /// The kind of the request that begins with `value`, if it is one.
    pub fn from_lua(value: &Value) -> Option<Self> {
        let Value::LightUserData(LightUserData(number)) = value else { return None };
        Self::ALL.get((*number as usize).wrapping_sub(1)).map(|(_, kind)| *kind)
    }
}

/// Fills a new state; returns the table that only the prelude sees.
pub fn install(lua: &Lua, shared: &Arc<Shared>, tid: usize, fetched: &Rc<RefCell<Fetched>>) -> mlua::Result<Table> {
    set_paths(lua)?;
    lua.globals().set("sysbench", sysbench(lua, shared, tid)?)?;
    let native = lua.create_table()?;
    native.set("kind", lua.create_table_from(RequestKind::ALL.map(|(name, kind)| (name, kind.to_lua())))?)?;
    let c_functions = lua.create_table()?;
    for (name, type_, address) in random::c_functions() {
        let function = lua.create_table()?;
        function.set("type", type_)?;
        function.set("address", address)?;
        c_functions.set(name, function)?;
    }
    native.set("c_functions", c_functions)?;
    native.set("modules", lua.create_table_from(MODULES)?)?;
    native.set("statements", 0)?;
    native.set("connections", 0)?;
    native.set("rand_string", lua.create_function(rand_string)?)?;
    native.set("rand_varstring", lua.create_function(rand_varstring)?)?;
    let mine = fetched.clone();
    native.set("rows", lua.create_function(move |lua, number| lua.create_string(mine.borrow().rows(number)))?)?;
    let mine = fetched.clone();
    native.set("columns", lua.create_function(move |lua, number| lua.create_string(mine.borrow().columns(number)))?)?;
    let mine = shared.clone();
    let say = move |_: &Lua, (is_fatal, text): (bool, LuaString)| {
        mine.voice.say(is_fatal, &text.to_string_lossy());
        Ok(())
    };
    native.set("say", lua.create_function(say)?)?;
    let mine = shared.clone();
    let write = move |_: &Lua, text: LuaString| {
        mine.voice.print(&text.as_bytes());
        Ok(())
    };
    native.set("write", lua.create_function(write)?)?;
    let mine = shared.clone();
    native.set(
        "use_sql",
        lua.create_function(move |_, ()| {
            mine.uses_sql.store(true, Ordering::Relaxed);
            Ok(())
        })?,
    )?;
    let mine = shared.clone();
    native.set("export_options", lua.create_function(move |lua, ()| export_options(lua, &mine))?)?;
    Ok(native)
}

fn set_paths(lua: &Lua) -> mlua::Result<()> {
    let package: Table = lua.globals().get("package")?;
    package.set("path", search::module_path())?;
    package.set("cpath", search::library_path())
}

/// The global table `sysbench`, as far as it is no code.
fn sysbench(lua: &Lua, shared: &Shared, tid: usize) -> mlua::Result<Table> {
    let invocation = &shared.invocation;
    let argv = lua.create_table()?;
    for (index, word) in invocation.argv.iter().enumerate() {
        argv.set(index, word.as_str())?;
    }
    let cmdline = lua.create_table()?;
    cmdline.set("argv", argv)?;
    cmdline.set("command", invocation.command.as_deref())?;
    cmdline.set("script_path", invocation.test.as_deref())?;
    let sysbench = lua.create_table()?;
    sysbench.set("tid", tid)?;
    sysbench.set("version", VERSION)?;
    sysbench.set("version_string", format!("sysbench {VERSION}"))?;
    sysbench.set("cmdline", cmdline)?;
    Ok(sysbench)
}

fn rand_string(lua: &Lua, template: LuaString) -> mlua::Result<LuaString> {
    let template = template.as_bytes();
    let mut text = Vec::with_capacity(template.len());
    random::draw((), |_, random| sb_rand::string(random, &template, &mut text));
    lua.create_string(text)
}

fn rand_varstring(lua: &Lua, (min, max): (u32, u32)) -> mlua::Result<LuaString> {
    let mut text = Vec::new();
    random::draw((), |_, random| sb_rand::varstring(random, min, max, &mut text));
    lua.create_string(text)
}

/// Sets `sysbench.opt`. A script that declares no options finds them as global variables too, as in sysbench 0.5, except
/// those that would hide a function.
fn export_options(lua: &Lua, shared: &Shared) -> mlua::Result<()> {
    let globals = lua.globals();
    let sysbench: Table = globals.get("sysbench")?;
    let are_declared = !sysbench.get::<Table>("cmdline")?.get::<Value>("options")?.is_nil();
    let options = lua.create_table()?;
    if let Some(settings) = shared.settings.get() {
        for (name, value) in settings.iter() {
            let value = lua_value(lua, value)?;
            if !are_declared && !matches!(globals.get(name)?, Value::Function(_)) {
                globals.set(name, &value)?;
            }
            options.set(name, value)?;
        }
    }
    sysbench.set("opt", options)
}

fn lua_value(lua: &Lua, value: &OptionValue) -> mlua::Result<Value> {
    match value {
        OptionValue::Bool(truth) => truth.into_lua(lua),
        OptionValue::Int(number) => number.into_lua(lua),
        OptionValue::Double(number) => number.into_lua(lua),
        OptionValue::Text(text) => text.as_deref().unwrap_or("").into_lua(lua),
        OptionValue::List(items) => lua.create_sequence_from(items.iter().map(String::as_str))?.into_lua(lua),
    }
}
