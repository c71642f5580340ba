//! Options for scripts: the settings as Lua's values.

use mlua::{IntoLua, Lua, Table, Value};

use super::script::Shared;
use crate::settings::OptionValue;

/// Sets `sysbench.opt`. A script that declares no options finds them as global variables too, as in sysbench 0.5, except
/// those that would hide a function.
pub fn export(lua: &Lua, shared: &Shared) -> mlua::Result<()> {
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
