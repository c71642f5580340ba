//! The scripts of a run: linked with one table of variables, shared by all clients.

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

/// The values with which scripts are linked.
#[derive(Debug, Clone)]
pub struct ScriptEnvironment {
    pub mode: QueryMode,
    /// True if clients report commands that need no server, so that they can be timed.
    pub timed: bool,
    /// True if clients announce each command, so that it can be noted before it does something.
    pub announced: bool,
    /// True if a statement aborts the client when a variable that travels as its parameter has no value; otherwise the
    /// parameter is NULL.
    pub needs_values: bool,
    /// Variables that take a random value of a list at the beginning of each transaction.
    pub lists: Vec<(String, Vec<Value>)>,
    /// The variables with which every client starts. `client_id` is each client's number unless it is given.
    pub variables: Vec<(String, Value)>,
    /// The variable `default_seed` unless it is given: the seed of hash functions.
    pub default_seed: i64,
}

/// Scripts with their weights and the variables every client starts with.
#[derive(Debug)]
pub struct Scripts {
    pub scripts: Vec<Script>,
    pub symbols: Symbols,
    pub timed: bool,
    pub announced: bool,
    /// True if every command is executed as a step of its own, so that no leg is executed at once.
    pub goes_by_steps: bool,
    pub needs_values: bool,
    pub mode: QueryMode,
    /// For each variable that takes a random value of a list in each transaction, its slot and the list.
    pub lists: Vec<(usize, Vec<Value>)>,
    initial: Vec<Value>,
    /// The slot that takes each client's number.
    client_id: Option<usize>,
    total_weight: u64,
}

impl Scripts {
    /// Links scripts in the order of their indexes.
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

    /// Returns the variables that client `client` starts with.
    pub fn initial_values(&self, client: usize) -> Vec<Value> {
        let mut values = self.initial.clone();
        if let Some(slot) = self.client_id {
            values[slot] = Value::Int(client as i64);
        }
        values
    }

    /// Draws a script's index by weight; a single script costs no draw, as in pgbench.
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

/// Returns the statements between each `\startpipeline` and the next `\endpipeline`, by the command that starts it.
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

/// Returns true if a command of any script may assign a variable.
fn is_assigned(parsed: &[Parsed], name: &str) -> bool {
    parsed.iter().flat_map(|script| &script.commands).any(|command| match command {
        // Which columns a query has is not known before it runs.
        ScriptCommand::Sql(sql) => sql.store.as_ref().is_some_and(|store| name.starts_with(&store.prefix)),
        ScriptCommand::Meta(MetaCommand::Set { name: set, .. } | MetaCommand::SetShell { name: set, .. }, _) => {
            set == name
        }
        ScriptCommand::Meta(..) => false,
    })
}

/// Returns the variables that keep the value they start with. A text that has no type is left out: an expression that
/// uses it is an error of the client that evaluates it.
fn constants(variables: &[(String, Value)], parsed: &[Parsed]) -> HashMap<String, Scalar> {
    let unassigned = variables.iter().filter(|(name, _)| !is_assigned(parsed, name));
    let typed =
        |(name, value): &(String, Value)| Some((name.clone(), scalar::of_variable(value, || name.clone()).ok()?));
    unassigned.filter_map(typed).collect()
}

/// Gives `\gset` and `\aset` the slots of all variables that they may set.
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
