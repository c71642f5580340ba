//! A client that runs pgbench scripts.

use std::sync::Arc;

use super::compiler::{Leg, Script};
use super::scripts::Scripts;
use super::steps::{Operation, ScriptState, StepResult, Store, VariableError};
use super::symbols;
use crate::program::{AbortReason, Action, Program, ScriptInfo, ScriptStep, StartPipeline, Workload};
use ground::random::Random;
use thiserror::Error;
use wire::ResultSet;
use wire::Rows;
use wire::value::Value;

/// A client that runs the scripts of a run.
pub struct ScriptClient {
    scripts: Arc<Scripts>,
    state: ScriptState,
}

impl Workload for Arc<Scripts> {
    fn scripts(&self) -> Vec<ScriptInfo> {
        self.scripts.iter().map(|script| script.info.clone()).collect()
    }

    fn client(&self, client: usize, random: Random) -> Box<dyn Program> {
        let (values, started) = (self.initial_values(client), random.clone());
        let state = ScriptState {
            values,
            random,
            started,
            script: 0,
            step: 0,
            in_pipeline: false,
            is_announced: false,
            aborted: None,
        };
        Box::new(ScriptClient { scripts: Arc::clone(self), state })
    }
}

impl Program for ScriptClient {
    #[inline]
    fn begin(&mut self, choose: &mut Random) -> usize {
        let state = &mut self.state;
        state.script = self.scripts.choose(choose);
        state.step = 0;
        state.in_pipeline = false;
        if !self.scripts.lists.is_empty() {
            state.draw_from(&self.scripts.lists);
        }
        state.started = state.random.clone();
        state.script
    }

    /// Starts the transaction again. As in pgbench, variables keep the values that the failed try has assigned.
    fn retry(&mut self) {
        let state = &mut self.state;
        state.random = state.started.clone();
        state.step = 0;
        state.in_pipeline = false;
    }

    /// Returns the next action. A leg, which is a query with the random draws before it, is executed at once. All other
    /// steps are executed one by one.
    #[inline]
    fn next_action(&mut self) -> Action<'_> {
        let (scripts, state) = (&*self.scripts, &mut self.state);
        let script = &scripts.scripts[state.script];
        match script.legs.leg(state.step) {
            Some(leg) if !(scripts.goes_by_steps | state.in_pipeline) => {
                if leg.has_draws() {
                    state.draw(script, leg);
                }
                state.step = leg.next;
                Action::Query {
                    command: leg.command,
                    statement: &script.statements[leg.statement],
                    values: &state.values,
                    rows: Rows::Skipped,
                    last: leg.is_last,
                }
            }
            _ => state.proceed(scripts, script),
        }
    }

    fn store(&mut self, results: &[ResultSet]) -> Result<(), AbortReason> {
        let last =
            self.state.step.checked_sub(1).and_then(|step| self.scripts.scripts[self.state.script].steps.get(step));
        let Some((command, Operation::Query { store: Some(store), .. })) = last.map(|s| (s.command, &s.operation))
        else {
            return Ok(());
        };
        for (query, result) in results.iter().enumerate() {
            let is_last = query + 1 == results.len();
            if is_last && !store.all && result.rows != 1 {
                let reason = format!("expected one row, got {}", result.rows);
                return Err(AbortReason::Rows { command, query, reason, detail: None });
            }
            if result.rows > 0 && (is_last || store.all) {
                store_row(store, result, &mut self.state.values).map_err(|error| AbortReason::Rows {
                    command,
                    query,
                    reason: error.to_string(),
                    detail: Some(error.source.to_string()),
                })?;
            }
        }
        Ok(())
    }
}

impl ScriptState {
    /// Sets the variables of a leg (a series of random draws and the query after them) to newly drawn random numbers.
    #[inline(always)]
    fn draw(&mut self, script: &Script, leg: &Leg) {
        let mut random = self.random.clone();
        for draw in script.legs.draws(leg) {
            match self.values.get_mut(draw.slot) {
                Some(Value::Int(number)) => *number = draw.span.draw(&mut random),
                Some(value) => *value = Value::Int(draw.span.draw(&mut random)),
                None => {}
            }
        }
        self.random = random;
    }

    /// Sets each variable that has a list of values to a random one of them. Few runs have such lists, so this code is
    /// kept out of the frequently executed code.
    #[cold]
    pub(super) fn draw_from(&mut self, lists: &[(usize, Vec<Value>)]) {
        for (slot, values) in lists {
            let index = self.random.range(0, values.len() as i64 - 1) as usize;
            match &values[index] {
                Value::Text(text) => self.values[*slot].set_text(text),
                value => self.values[*slot] = value.clone(),
            }
        }
    }

    /// Returns the reason for which a query must not be sent: one of its variables has no value, and the run requires
    /// values. Returns `None` if the query can be sent.
    fn lack(&self, scripts: &Scripts, script: &Script, command: usize, result: &StepResult) -> Option<AbortReason> {
        let StepResult::Query(statement, _) = result else { return None };
        if !scripts.needs_values {
            return None;
        }
        let name = script.statements.get(*statement)?.unset(&self.values)?;
        let reason = format!("the variable \"{name}\" has no value");
        Some(AbortReason::Command { command, word: "SQL", reason, detail: None })
    }

    /// Executes steps up to the first one that results in an action.
    #[inline(never)]
    fn proceed<'a>(&'a mut self, scripts: &'a Scripts, script: &'a Script) -> Action<'a> {
        loop {
            let Some(step) = script.steps.get(self.step) else { return self.end() };
            if scripts.announced {
                self.is_announced = !self.is_announced;
                if self.is_announced {
                    return Action::Step(ScriptStep::Announce { command: step.command });
                }
            }
            self.step += 1;
            match self.execute(&scripts.symbols, scripts.mode, step) {
                Ok(StepResult::Done) if scripts.timed => {
                    return Action::Step(ScriptStep::Local { command: step.command });
                }
                Ok(StepResult::Done) => {}
                Ok(result) => {
                    if let Some(reason) = self.lack(scripts, script, step.command, &result) {
                        return self.abort(reason);
                    }
                    let last = self.step == script.steps.len() && !self.in_pipeline;
                    return action(step.command, result, script, &self.values, last);
                }
                Err(trouble) => return self.abort(*trouble),
            }
        }
    }

    /// Returns the action at the end of a script. It is an error if a pipeline is still open.
    fn end(&mut self) -> Action<'_> {
        if self.in_pipeline {
            return self.abort(AbortReason::Script { reason: "end of script reached with pipeline open".to_owned() });
        }
        Action::End
    }

    fn abort(&mut self, reason: AbortReason) -> Action<'_> {
        Action::Abort(self.aborted.insert(Box::new(reason)))
    }
}

/// Returns the action that a step results in. `last` is true if the step was the last one of the script.
fn action<'a>(command: usize, result: StepResult, script: &'a Script, values: &'a [Value], last: bool) -> Action<'a> {
    match result {
        StepResult::Done => Action::Step(ScriptStep::Local { command }),
        StepResult::Query(statement, rows) => {
            Action::Query { command, statement: &script.statements[statement], values, rows, last }
        }
        StepResult::StartPipeline(statements) => {
            let statements = script.statements.get(statements).unwrap_or_default();
            Action::Request(StartPipeline { command, statements })
        }
        StepResult::SyncPipeline => Action::Step(ScriptStep::SyncPipeline { command }),
        StepResult::EndPipeline => Action::Step(ScriptStep::EndPipeline { command }),
        StepResult::Sleep(time) => Action::Sleep { command, time },
    }
}

/// The error for a row whose values cannot be stored in variables.
#[derive(Debug, Error)]
#[error("error storing into variable {name}")]
struct StoreError {
    name: String,
    /// The cause: the prefix and the column's name do not form a valid name of a variable.
    source: VariableError,
}

/// Stores the values of a row in the variables for its columns, as far as some script uses them. As in pgbench, NULL
/// becomes an empty text.
fn store_row(store: &Store, result: &ResultSet, values: &mut [Value]) -> Result<(), StoreError> {
    for (column, value) in result.columns.iter().zip(&result.last) {
        match store.slots.get(column) {
            Some(slot) => values[*slot].set_text(value.as_deref().unwrap_or_default()),
            None => check_name(store, column)?,
        }
    }
    Ok(())
}

/// Fails if a column's name does not form a valid name of a variable.
fn check_name(store: &Store, column: &[u8]) -> Result<(), StoreError> {
    let name = [&ground::text::bytes(&store.prefix), column].concat();
    if symbols::is_valid(&name) {
        return Ok(());
    }
    let name = ground::text::of(&name);
    Err(StoreError { source: VariableError::Name { word: store.word(), name: name.clone() }, name })
}
