//! The native functions and data of the prelude, the Lua code that gives scripts sysbench's interface: the kinds of
//! requests, the functions that are written in Rust, the options, and the tables that scripts find when they start.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ground::trust::open_file;
use mlua::{Function, IntoLua, LightUserData, Lua, String as LuaString, Table, Value};

use super::kept::Fetched;
use super::request::RequestKind;
use super::shared::{NO_MYSQL, SharedStates};
use super::{counters, random, search};
use crate::sb_rand;
use crate::settings::OptionValue;

/// The version of sysbench whose interface scripts get.
const VERSION: &str = "1.0.20";

/// Modules of sysbench that scripts may require. They are used if no file of that name is found.
const MODULES: [(&str, &str); 1] = [("oltp_common", include_str!("prelude/oltp_common.lua"))];

/// The kinds of requests. In Lua, a kind is a light userdata with its index here plus 1, because scripts cannot make
/// such values themselves.
const REQUESTS: [(&str, RequestKind); 16] = [
    ("connect", RequestKind::Connect),
    ("reconnect", RequestKind::Reconnect),
    ("disconnect", RequestKind::Disconnect),
    ("query", RequestKind::Query),
    ("first_query", RequestKind::FirstQuery),
    ("rollback", RequestKind::Rollback),
    ("prepare", RequestKind::Prepare),
    ("execute", RequestKind::Execute),
    ("first_execute", RequestKind::FirstExecute),
    ("close", RequestKind::Close),
    ("ready", RequestKind::Ready),
    ("more", RequestKind::More),
    ("ended", RequestKind::Ended),
    ("left", RequestKind::Left),
    ("fatal", RequestKind::Fatal),
    ("sleep", RequestKind::Sleep),
];

/// Returns the kind of request that `value` stands for; `None` if `value` is something else.
pub fn request_kind(value: &Value) -> Option<RequestKind> {
    let Value::LightUserData(LightUserData(number)) = value else { return None };
    REQUESTS.get((*number as usize).wrapping_sub(1)).map(|(_, kind)| *kind)
}

/// The data that native functions can use: the data that all Lua states of the script share, and the rows that the
/// server has returned to the client of this state.
#[derive(Clone)]
struct Reach {
    shared: Arc<SharedStates>,
    fetched: Rc<RefCell<Fetched>>,
}

/// A native function: its name in the prelude (the Lua code that gives scripts sysbench's interface), and the Rust
/// function that makes it.
type Native = (&'static str, fn(&Lua, Reach) -> mlua::Result<Function>);

/// The native functions that the prelude (the Lua code that gives scripts sysbench's interface) calls as Lua functions.
/// The functions that it calls through `ffi` are in [`random`] and [`counters`].
const NATIVES: [Native; 10] = [
    ("rand_string", |lua, _| lua.create_function(rand_string)),
    ("rand_varstring", |lua, _| lua.create_function(rand_varstring)),
    ("rows", |lua, reach| {
        lua.create_function(move |lua, number| lua.create_string(reach.fetched.borrow().rows(number)))
    }),
    ("columns", |lua, reach| {
        lua.create_function(move |lua, number| lua.create_string(reach.fetched.borrow().columns(number)))
    }),
    ("say", |lua, reach| {
        lua.create_function(move |_, (is_fatal, text): (bool, LuaString)| {
            reach.shared.voice.say(is_fatal, &text.to_string_lossy());
            Ok(())
        })
    }),
    ("write", |lua, reach| {
        lua.create_function(move |_, text: LuaString| {
            reach.shared.voice.print(&text.as_bytes());
            Ok(())
        })
    }),
    ("refusal", |lua, _| lua.create_function(|_, file: LuaString| Ok(search::refusal(&path_of(&file))))),
    ("find_module", |lua, _| lua.create_function(find_module)),
    ("use_sql", |lua, reach| {
        lua.create_function(move |_, ()| {
            reach.shared.uses_sql.store(true, Ordering::Relaxed);
            Ok(())
        })
    }),
    ("export_options", |lua, reach| lua.create_function(move |lua, ()| export_options(lua, &reach.shared))),
];

/// Adds all native functions to a new Lua state. Returns the table of those that only the prelude sees, the Lua code
/// that gives scripts sysbench's interface.
pub fn install(
    lua: &Lua,
    shared: &Arc<SharedStates>,
    tid: usize,
    fetched: &Rc<RefCell<Fetched>>,
) -> mlua::Result<Table> {
    set_paths(lua)?;
    lua.globals().set("sysbench", sysbench(lua, shared, tid)?)?;
    let native = lua.create_table()?;
    let kinds = REQUESTS.into_iter().enumerate();
    let kinds = kinds.map(|(index, (name, _))| (name, LightUserData(ptr::without_provenance_mut(index + 1))));
    native.set("kind", lua.create_table_from(kinds)?)?;
    let c_functions = lua.create_table()?;
    for (name, kind, address) in random::c_functions().into_iter().chain(counters::c_functions()) {
        let function = [("type", kind.into_lua(lua)?), ("address", address.into_lua(lua)?)];
        c_functions.set(name, lua.create_table_from(function)?)?;
    }
    native.set("c_functions", c_functions)?;
    native.set("modules", lua.create_table_from(MODULES)?)?;
    native.set("driver", shared.invocation.driver.as_deref().unwrap_or("pgsql"))?;
    native.set("no_mysql", NO_MYSQL)?;
    native.set("statements", 0)?;
    native.set("connections", 0)?;
    let reach = Reach { shared: shared.clone(), fetched: fetched.clone() };
    for (name, make) in NATIVES {
        native.set(name, make(lua, reach.clone())?)?;
    }
    Ok(native)
}

fn set_paths(lua: &Lua) -> mlua::Result<()> {
    let package: Table = lua.globals().get("package")?;
    let variable = |name| std::env::var_os(name).map(|value| ground::text::of(value.as_bytes()));
    let home = variable("HOME");
    let path = search::module_path(home.as_deref(), variable("LUA_PATH").as_deref());
    package.set("path", text_to_lua(lua, &path)?)?;
    let library_path = search::library_path(home.as_deref(), variable("LUA_CPATH").as_deref());
    package.set("cpath", text_to_lua(lua, &library_path)?)
}

/// Makes the global table `sysbench` without its functions. The prelude (the Lua code that gives scripts sysbench's
/// interface) adds the functions.
fn sysbench(lua: &Lua, shared: &SharedStates, tid: usize) -> mlua::Result<Table> {
    let invocation = &shared.invocation;
    let argv = invocation.argv.iter().map(String::as_str).enumerate();
    let cmdline = lua.create_table()?;
    cmdline.set("argv", lua.create_table_from(argv)?)?;
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

/// Returns the file of a module. If there is no such file, returns nil and a list of the files that were tried, in
/// Lua's wording.
fn find_module(lua: &Lua, (name, path): (LuaString, LuaString)) -> mlua::Result<(Option<LuaString>, LuaString)> {
    let mut tried = Vec::new();
    for file in search::candidates(&name.as_bytes(), &path.as_bytes()) {
        if open_file(Path::new(OsStr::from_bytes(&file))).is_ok() {
            return Ok((Some(lua.create_string(&file)?), lua.create_string("")?));
        }
        tried.extend([b"\n\tno file '", &file[..], b"'"].concat());
    }
    Ok((None, lua.create_string(tried)?))
}

fn path_of(file: &LuaString) -> PathBuf {
    OsStr::from_bytes(&file.as_bytes()).into()
}

/// Sets `sysbench.opt` to the chosen options. If a script declares no options, it also gets them as global variables,
/// as in sysbench 0.5, except options whose names would hide a function.
fn export_options(lua: &Lua, shared: &SharedStates) -> mlua::Result<()> {
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
        OptionValue::Size(text) => text_to_lua(lua, text),
        OptionValue::Text(text) => text_to_lua(lua, text.as_deref().unwrap_or("")),
        OptionValue::List(items) => {
            let items: Vec<_> = items.iter().map(|item| text_to_lua(lua, item)).collect::<Result<_, _>>()?;
            lua.create_sequence_from(items)?.into_lua(lua)
        }
    }
}

/// Returns the bytes of an option's text as a Lua string.
fn text_to_lua(lua: &Lua, text: &str) -> mlua::Result<Value> {
    lua.create_string(ground::text::bytes(text))?.into_lua(lua)
}
