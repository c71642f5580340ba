//! A Lua script as the front end uses it: the options and commands that the script declares, and the functions that are
//! called once for a run.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use mlua::{FromLua, Function, Lua, Table, Value};

use super::alone::MainState;
use super::client::Role;
use super::counters::Uncounted;
use super::search::{Chunk, ScriptOrigin};
use super::shared::{Invocation, SharedStates, Voice, broken};
use super::state::LuaState;
use crate::lua::random;
use crate::lua::random::Generator;
use crate::lua::workload;
use crate::program::{Executors, Fatal, StagedActions, Workload};
use crate::sb_rand;
use crate::sb_rand::Distributions;
use crate::settings::{OptionSpec, OptionValue, Settings};
use crate::statistics::{Hooks, Statistics};
use ground::shard::Shard;

/// A script that was loaded into a Lua state of the main thread. No client of a load runs in that state.
pub struct LuaScript {
    shared: Arc<SharedStates>,
    main: RefCell<MainState>,
    generator: RefCell<Option<Generator>>,
    declared: Option<Vec<OptionSpec>>,
    /// The Lua state for the script's hook (function) that makes a report after each interval while clients run.
    intervals: RefCell<Option<MainState>>,
    /// The Lua state for the hook that makes the reports at checkpoints.
    checkpoints: RefCell<Option<MainState>>,
    executors: Executors,
}

impl LuaScript {
    /// Reads a script and runs its top level. `executors` makes the executors that send the script's statements to the
    /// server outside of a load.
    pub fn load(
        source: ScriptOrigin,
        invocation: &Invocation,
        voice: Arc<dyn Voice>,
        executors: Executors,
    ) -> Result<Self, Fatal> {
        let chunk = Chunk::read(&source, invocation.test.as_deref())?;
        let shared = Arc::new(SharedStates {
            invocation: invocation.clone(),
            chunk,
            voice,
            settings: OnceLock::new(),
            distributions: OnceLock::new(),
            mark_by: OnceLock::new(),
            uses_sql: AtomicBool::new(false),
            uncounted: Uncounted::default(),
        });
        let nothing_chosen = Settings::default();
        let distributions = Arc::new(Distributions::new(&nothing_chosen)?);
        let generator = RefCell::new(Some(Generator { random: sb_rand::generator(&nothing_chosen), distributions }));
        let (main, declared) = with_generator(&generator, || {
            let main = MainState::begin(&shared, 0, executors())?;
            let declared = declared_options(main.state())?;
            Ok::<_, Fatal>((RefCell::new(main), declared))
        })?;
        let (intervals, checkpoints) = Default::default();
        Ok(Self { shared, main, generator, declared, intervals, checkpoints, executors })
    }

    /// Returns the script's name in messages.
    pub fn name(&self) -> &str {
        self.shared.name()
    }

    /// Returns the options that the script declares. Returns `None` if it declares none: it then accepts any option.
    pub fn options(&self) -> Option<Vec<OptionSpec>> {
        self.declared.clone()
    }

    /// Returns true if every client executes the script's command, false if only one client does. Returns `None` if the
    /// script does not define the command.
    pub fn is_parallel(&self, name: &str) -> Option<bool> {
        let ask = |question: &str| -> mlua::Result<bool> {
            let cmdline: Table = self.sysbench()?.get("cmdline")?;
            cmdline.get::<Function>(question)?.call(name)
        };
        let is_defined = ask("command_defined").unwrap_or(false);
        is_defined.then(|| ask("command_parallel").unwrap_or(false))
    }

    /// True if the script has a global function of this name, such as `event`, `prepare`, `cleanup` or `help`.
    pub fn has(&self, function: &str) -> bool {
        matches!(self.global(function), Ok(Value::Function(_)))
    }

    /// Sets the query of `--mark-by`, which returns the statements that mark the objects made by a command. Must be
    /// called at most once.
    pub fn mark_by(&self, query: &str) {
        let _ = self.shared.mark_by.set(query.to_owned());
    }

    /// Sets the chosen options, and the share of the run that belongs to this engine if several engines share the run.
    /// Must be called once.
    pub fn configure(&self, settings: Arc<Settings>, shard: Shard) -> Result<(), Fatal> {
        let distributions = Arc::new(Distributions::new(&settings)?.of_shard(shard));
        let random = sb_rand::generator(&settings);
        *self.generator.borrow_mut() = Some(Generator { random, distributions: distributions.clone() });
        // Both values can be set only once. They are always set together, so errors can be ignored.
        let _ = (self.shared.settings.set(settings), self.shared.distributions.set(distributions));
        export_options(&self.main.borrow())
    }

    /// Calls the script's function `help`, which prints its help.
    pub fn help(&self) -> Result<(), Fatal> {
        self.call_global("help")
    }

    /// Prepares a run: calls the script's function `init`, and fails if the script has no function `event`.
    pub fn init(&self) -> Result<(), Fatal> {
        self.call_global("init")?;
        if self.has("event") {
            return Ok(());
        }
        Err(Fatal::new(format!("cannot find the event() function in {}", self.name())))
    }

    /// Returns the workload in which every client runs events or a command, according to `role`.
    pub fn workload(&self, role: Role) -> Result<Arc<dyn Workload<StagedActions>>, Fatal> {
        workload::new(&self.shared, role)
    }

    /// Executes a command once, in the state into which the script was loaded.
    pub fn perform(&self, command: &str) -> Result<(), Fatal> {
        with_generator(&self.generator, || self.main.borrow_mut().perform(command))
    }

    /// Makes another Lua state of the main thread. The script sees `tid` as its thread number in it.
    fn further(&self, tid: usize) -> Result<MainState, Fatal> {
        let executor = (self.executors)();
        let alone = with_generator(&self.generator, || MainState::begin(&self.shared, tid, executor))?;
        export_options(&alone)?;
        Ok(alone)
    }

    fn global<T: FromLua>(&self, name: &str) -> mlua::Result<T> {
        self.main.borrow().state().lua.globals().get(name)
    }

    fn sysbench(&self) -> mlua::Result<Table> {
        self.global("sysbench")
    }

    /// Calls a hook, a function with which the script makes a report of its own, in `state`. Returns false if there is
    /// no such state or the script does not define the hook.
    fn call_hook_in(
        &self,
        state: &RefCell<Option<MainState>>,
        name: &str,
        statistics: &Statistics,
    ) -> Result<bool, Fatal> {
        match &mut *state.borrow_mut() {
            Some(alone) => self.call_hook(alone, name, statistics),
            None => Ok(false),
        }
    }

    /// Calls a hook, a function with which the script makes a report of its own. If the hook fails, its error is
    /// printed and the run continues. Returns false if the script does not define the hook.
    fn call_hook(&self, alone: &mut MainState, name: &str, statistics: &Statistics) -> Result<bool, Fatal> {
        let found = hook(alone.state(), name).map_err(broken)?;
        let Some(function) = found else { return Ok(false) };
        let table = statistics_table(&alone.state().lua, statistics, name == "report_cumulative").map_err(broken)?;
        if let Some(failure) = with_generator(&self.generator, || alone.call(name, Value::Function(function), table))? {
            self.shared.voice.say(true, &failure);
        }
        Ok(true)
    }

    /// Calls a global function of the script, if there is one of this name.
    fn call_global(&self, name: &str) -> Result<(), Fatal> {
        let function: Value = self.global(name).map_err(broken)?;
        if function.is_nil() {
            return Ok(());
        }
        match with_generator(&self.generator, || self.main.borrow_mut().call(name, function, Value::Nil))? {
            Some(failure) => Err(Fatal::new(failure)),
            None => Ok(()),
        }
    }
}

impl Hooks for LuaScript {
    /// Makes a Lua state for each kind of report. In sysbench, too, each kind of report has a state of its own, since a
    /// thread of its own makes it.
    fn begin_reports(&self, clients: usize, intervals: bool, checkpoints: bool) -> Result<(), Fatal> {
        for (state, _) in [(&self.intervals, intervals), (&self.checkpoints, checkpoints)].iter().filter(|each| each.1)
        {
            *state.borrow_mut() = Some(self.further(clients)?);
        }
        Ok(())
    }

    fn intermediate(&self, statistics: &Statistics) -> Result<bool, Fatal> {
        self.call_hook_in(&self.intervals, "report_intermediate", statistics)
    }

    fn checkpoint(&self, statistics: &Statistics) -> Result<bool, Fatal> {
        self.call_hook_in(&self.checkpoints, "report_cumulative", statistics)
    }

    /// Closes the Lua states of the reports, so that the script's finalizers run.
    fn end_reports(&self) {
        self.intervals.borrow_mut().take();
        self.checkpoints.borrow_mut().take();
    }

    fn cumulative(&self, statistics: &Statistics) -> Result<bool, Fatal> {
        self.call_hook(&mut self.main.borrow_mut(), "report_cumulative", statistics)
    }

    fn uses_sql(&self) -> bool {
        self.shared.uses_sql.load(Ordering::Relaxed)
    }

    fn done(&self) -> Result<(), Fatal> {
        self.call_global("done")
    }
}

/// Calls `work` while `generator` is lent to the main thread, so that the script can draw random numbers.
fn with_generator<T>(generator: &RefCell<Option<Generator>>, work: impl FnOnce() -> T) -> T {
    let mut generator = generator.borrow_mut();
    random::exchange(&mut generator);
    let done = work();
    random::exchange(&mut generator);
    done
}

/// Makes the chosen options accessible to the script.
fn export_options(alone: &MainState) -> Result<(), Fatal> {
    alone.state().function("export_options").and_then(|export| export.call::<()>(())).map_err(broken)
}

/// Returns the options that the script's top level has declared; `None` if it has declared none.
fn declared_options(state: &LuaState) -> Result<Option<Vec<OptionSpec>>, Fatal> {
    let failed = |error: mlua::Error| {
        let reason = match error {
            mlua::Error::RuntimeError(reason) => reason.lines().next().unwrap_or_default().to_owned(),
            error => error.to_string(),
        };
        Fatal::new(format!("`sysbench.cmdline.read_cmdline_options' function failed: {reason}"))
    };
    let definitions: Option<Table> =
        state.function("option_definitions").and_then(|read| read.call(())).map_err(failed)?;
    definitions.map(|definitions| declared(&definitions).map_err(failed)).transpose()
}

fn hook(state: &LuaState, name: &str) -> mlua::Result<Option<Function>> {
    let sysbench: Table = state.lua.globals().get("sysbench")?;
    Ok(match sysbench.get::<Table>("hooks")?.get(name)? {
        Value::Function(function) => Some(function),
        _ => None,
    })
}

fn statistics_table(lua: &Lua, statistics: &Statistics, is_cumulative: bool) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let Statistics { queries, .. } = statistics;
    let number = |count: u64| count as f64;
    table.set("threads_running", statistics.threads_running)?;
    for (name, value) in [
        ("time_interval", statistics.time_interval),
        ("time_total", statistics.time_total),
        ("latency_pct", statistics.latency_pct),
        ("events", number(statistics.events)),
        ("reads", number(queries.reads)),
        ("writes", number(queries.writes)),
        ("other", number(queries.others)),
        ("errors", number(queries.errors)),
        ("reconnects", number(queries.reconnects)),
    ] {
        table.set(name, value)?;
    }
    if is_cumulative {
        table.set("latency_min", statistics.latency_min)?;
        table.set("latency_max", statistics.latency_max)?;
        table.set("latency_avg", statistics.latency_avg)?;
        table.set("latency_sum", statistics.latency_sum)?;
    } else {
        table.set("queue_length", statistics.queue_length)?;
        table.set("concurrency", statistics.concurrency)?;
    }
    Ok(table)
}

/// The numbers by which scripts state the type of an option.
mod kind {
    pub const BOOL: i64 = 1;
    pub const INT: i64 = 2;
    pub const SIZE: i64 = 3;
    pub const DOUBLE: i64 = 4;
    pub const LIST: i64 = 6;
}

/// Converts the declarations of options that the prelude has read from the script. Each declaration is a Lua table with
/// `name`, `description`, `kind` and `default`.
fn declared(definitions: &Table) -> mlua::Result<Vec<OptionSpec>> {
    definitions.sequence_values::<Table>().map(|definition| option(&definition?)).collect()
}

fn option(definition: &Table) -> mlua::Result<OptionSpec> {
    let default: Option<String> = definition.get("default")?;
    Ok(OptionSpec {
        name: definition.get("name")?,
        description: definition.get("description")?,
        default: default_value(definition.get("kind")?, default),
    })
}

fn default_value(kind: i64, default: Option<String>) -> OptionValue {
    let text = default.as_deref().unwrap_or("");
    match kind {
        kind::BOOL => OptionValue::Bool(matches!(text, "on" | "true" | "1")),
        kind::INT => OptionValue::Int(whole(text)),
        kind::SIZE => OptionValue::Int(size(text)),
        kind::DOUBLE => OptionValue::Double(text.trim().parse().unwrap_or(0.0)),
        kind::LIST if text.is_empty() => OptionValue::List(Vec::new()),
        kind::LIST => OptionValue::List(text.split(',').map(|item| item.trim().to_owned()).collect()),
        _ => OptionValue::Text(default),
    }
}

/// Parses a whole number. A number with a fraction or an exponent loses its fraction, and a text that is not a number
/// counts as 0.
fn whole(text: &str) -> i64 {
    text.trim().parse().unwrap_or_else(|_| text.trim().parse::<f64>().unwrap_or(0.0) as i64)
}

/// Parses a number of bytes with a unit, such as `64K`.
fn size(text: &str) -> i64 {
    let digits = text.trim_end_matches(|last: char| last.is_ascii_alphabetic());
    let unit = match text[digits.len()..].bytes().next().map(|unit| unit.to_ascii_uppercase()) {
        Some(b'K') => 1 << 10,
        Some(b'M') => 1 << 20,
        Some(b'G') => 1 << 30,
        Some(b'T') => 1 << 40,
        _ => 1,
    };
    whole(digits).saturating_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_read_by_their_kind() {
        let of = |kind, text: &str| default_value(kind, Some(text.to_owned()));
        assert_eq!(of(kind::BOOL, "on"), OptionValue::Bool(true));
        assert_eq!(of(kind::INT, "7"), OptionValue::Int(7));
        assert_eq!(of(kind::SIZE, "64K"), OptionValue::Int(65536));
        assert_eq!(of(kind::DOUBLE, "2.5"), OptionValue::Double(2.5));
        assert_eq!(of(kind::LIST, "a,b"), OptionValue::List(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(default_value(5, None), OptionValue::Text(None));
    }
}
