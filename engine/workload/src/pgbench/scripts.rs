//! All scripts of a run. They are linked with one common table of variables, and all clients share them.

use std::collections::HashMap;
use std::ops::Range;

use super::compiler::{Compiler, Script};
use super::error::ScriptError;
use super::expression::{Scalar, scalar};
use super::meta_commands::MetaCommand;
use super::script::{Parsed, ScriptCommand, Sql};
use super::sql;
use super::steps::Operation;
use super::symbols::Symbols;
use crate::program::{CommandInfo, ScriptInfo};
use ground::random::Random;
use wire::statement::QueryMode;
use wire::value::Value;

/// The variables and settings of a run that its scripts share. Linking turns the names in the scripts into indexes of
/// these variables.
#[derive(Debug, Clone)]
pub struct ScriptEnvironment {
    pub mode: QueryMode,
    /// True if clients report commands that need no server (see [`crate::program::ScriptStep::Local`]), so that they
    /// can be timed.
    pub timed: bool,
    /// True if clients report to the event loop that a command begins, before they execute it (see
    /// [`crate::program::ScriptStep::Announce`]).
    pub announced: bool,
    /// True if a client is aborted when it sends a statement with a variable that has no value. If false, the parameter
    /// is NULL. Without effect in simple mode, in which there are no parameters.
    pub needs_values: bool,
    /// The variables that get a random value of a list at the beginning of each transaction, with their lists.
    pub lists: Vec<(String, Vec<Value>)>,
    /// The variables with which every client starts. If `client_id` is not among them, its value is the number of the
    /// client.
    pub variables: Vec<(String, Value)>,
    /// The seed of hash functions that a script calls without a seed. It is the value of the variable `default_seed`,
    /// unless `variables` has a value for that variable.
    pub default_seed: i64,
}

/// The linked scripts with their weights, and the variables with which every client starts.
#[derive(Debug)]
pub struct Scripts {
    pub scripts: Vec<Script>,
    pub symbols: Symbols,
    pub timed: bool,
    pub announced: bool,
    /// True if every command is executed as a step of its own. False if a leg (a series of random draws and the query
    /// after them) is executed at once.
    pub goes_by_steps: bool,
    pub needs_values: bool,
    pub mode: QueryMode,
    /// The variables that get a random value of a list in each transaction: their slots (indexes of variables), with
    /// their lists.
    pub lists: Vec<(usize, Vec<Value>)>,
    initial: Vec<Value>,
    /// The slot (index) of the variable `client_id`, if this variable has to be set to each client's number; otherwise
    /// `None`.
    client_id: Option<usize>,
    total_weight: u64,
}

impl Scripts {
    /// Links the scripts of a run: gives them one common table of variables, and compiles them. The index of a script
    /// is its position in `parsed`.
    pub fn link(parsed: Vec<Parsed>, environment: &ScriptEnvironment) -> Result<Self, ScriptError> {
        let mut variables = environment.variables.clone();
        let given = |name: &str| environment.variables.iter().any(|(given, _)| given == name);
        if !given("default_seed") {
            variables.push(("default_seed".to_owned(), Value::Int(environment.default_seed)));
        }
        let constants = constants(&variables, &parsed);
        let mut symbols = Symbols::default();
        let mut scripts: Vec<Script> = Vec::new();
        let mut statements = 0;
        for parsed in parsed {
            let pipelines = pipelines(&parsed.commands);
            let compiler = Compiler::new(&mut symbols, &constants, environment.mode, statements, pipelines);
            let script = compile(compiler, parsed)?;
            statements += script.statements.len();
            scripts.push(script);
        }
        let slots: Vec<_> = variables.into_iter().map(|(name, value)| (symbols.slot(&name), value)).collect();
        let lists: Vec<_> =
            environment.lists.iter().map(|(name, values)| (symbols.slot(name), values.clone())).collect();
        let client_id = (!given("client_id")).then(|| symbols.slot("client_id"));
        let mut initial = vec![Value::Unset; symbols.names().len()];
        for (slot, value) in slots {
            initial[slot] = value;
        }
        scripts.iter_mut().for_each(|script| connect_stores(script, &symbols));
        let total_weight = scripts.iter().map(|script| script.info.weight).sum();
        let ScriptEnvironment { timed, announced, mode, needs_values, .. } = *environment;
        let needs_values = needs_values && mode != QueryMode::Simple;
        let goes_by_steps = timed || announced || needs_values;
        Ok(Self {
            scripts,
            symbols,
            timed,
            announced,
            goes_by_steps,
            needs_values,
            mode,
            lists,
            initial,
            client_id,
            total_weight,
        })
    }

    /// Returns the values of all variables with which client `client` starts.
    pub fn initial_values(&self, client: usize) -> Vec<Value> {
        let mut values = self.initial.clone();
        if let Some(slot) = self.client_id {
            values[slot] = Value::Int(client as i64);
        }
        values
    }

    /// Draws the index of a script by weight. As in pgbench, no random number is drawn if there is only one script.
    #[inline]
    pub fn choose(&self, random: &mut Random) -> usize {
        if self.scripts.len() == 1 {
            return 0;
        }
        let mut left = random.range(0, self.total_weight as i64 - 1) as u64;
        let chosen = self.scripts.iter().position(|script| {
            let chosen = left < script.info.weight;
            left = left.wrapping_sub(script.info.weight);
            chosen
        });
        chosen.unwrap_or(0)
    }
}

/// Compiles the commands of one script.
fn compile(mut compiler: Compiler<'_>, parsed: Parsed) -> Result<Script, ScriptError> {
    let mut commands = Vec::new();
    for (index, command) in parsed.commands.into_iter().enumerate() {
        compiler.begin(index);
        match command {
            ScriptCommand::Sql(Sql { text, store }) => {
                commands.push(CommandInfo { line: sql::first_line(&text), is_sql: true });
                compiler.query(&text, store.map(Box::new))?;
            }
            ScriptCommand::Meta(meta, line) => {
                commands.push(CommandInfo { line, is_sql: false });
                meta.compile(&mut compiler);
            }
        }
    }
    Ok(compiler.finish(ScriptInfo { description: parsed.description, weight: parsed.weight, commands }))
}

/// Returns the indexes of the statements between each `\startpipeline` and its `\endpipeline`. The key is the index of
/// the `\startpipeline`.
fn pipelines(commands: &[ScriptCommand]) -> HashMap<usize, Range<usize>> {
    let mut found = HashMap::new();
    let mut started = Vec::new();
    let mut statements = 0;
    for (index, command) in commands.iter().enumerate() {
        match command {
            ScriptCommand::Sql(_) => statements += 1,
            ScriptCommand::Meta(MetaCommand::StartPipeline, _) => started.push((index, statements)),
            ScriptCommand::Meta(MetaCommand::EndPipeline, _) => {
                found.extend(started.drain(..).map(|(index, first)| (index, first..statements)));
            }
            ScriptCommand::Meta(..) => {}
        }
    }
    found.extend(started.into_iter().map(|(index, first)| (index, first..statements)));
    found
}

/// True if some command of a script may set the variable `name`.
fn is_assigned(parsed: &[Parsed], name: &str) -> bool {
    parsed.iter().flat_map(|script| &script.commands).any(|command| match command {
        // The columns of a query are not known before it runs, so any name with the prefix may be set.
        ScriptCommand::Sql(sql) => sql.store.as_ref().is_some_and(|store| name.starts_with(&store.prefix)),
        ScriptCommand::Meta(MetaCommand::Set { name: set, .. } | MetaCommand::SetShell { name: set, .. }, _) => {
            set == name
        }
        ScriptCommand::Meta(..) => false,
    })
}

/// Returns the variables that keep their initial values during the whole run. A variable whose text has no valid type
/// is left out, so that an expression with it fails when a client evaluates it.
fn constants(variables: &[(String, Value)], parsed: &[Parsed]) -> HashMap<String, Scalar> {
    let unassigned = variables.iter().filter(|(name, _)| !is_assigned(parsed, name));
    let typed =
        |(name, value): &(String, Value)| Some((name.clone(), scalar::of_variable(value, || name.clone()).ok()?));
    unassigned.filter_map(typed).collect()
}

/// Tells each `\gset` and `\aset` the slots (indexes) of all variables that it may set.
fn connect_stores(script: &mut Script, symbols: &Symbols) {
    for step in &mut script.steps {
        let Operation::Query { store: Some(store), .. } = &mut step.operation else { continue };
        for (slot, name) in symbols.names().iter().enumerate() {
            if let Some(column) = name.strip_prefix(store.prefix.as_str()) {
                store.slots.insert(ground::text::bytes(column).into_owned(), slot);
            }
        }
    }
}
