//! One client of a run of scripts.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::commands::Unit;
use super::expression::evaluate::Context;
use super::expression::{Expression, Scalar};
use super::legs::Leg;
use super::scripts::Scripts;
use super::steps::{Amount, Operation, Script, Sleep, Step, Store, Target};
use super::symbols;
use crate::program::{AbortReason, Action, Program};
use ground::c_numbers;
use ground::output::print_stderr;
use ground::random::Random;
use wire::ResultSet;
use wire::Rows;
use wire::statement::QueryMode;
use wire::value::Value;

/// A client of a run.
pub struct Client {
    scripts: Arc<Scripts>,
    state: State,
}

/// A client's variables, its generators and where it is.
struct State {
    values: Vec<Value>,
    random: Random,
    /// The generator as the transaction found it.
    started: Random,
    script: usize,
    /// The next step.
    step: usize,
    in_pipeline: bool,
}

/// What a step comes to.
enum Outcome {
    /// The next step follows at once.
    Done,
    Query(usize, Rows),
    StartPipeline(Range<usize>),
    SyncPipeline,
    EndPipeline,
    Sleep(Duration),
}

impl Client {
    /// A client before its first transaction.
    pub fn new(scripts: Arc<Scripts>, values: Vec<Value>, random: Random) -> Self {
        let started = random.clone();
        Self { scripts, state: State { values, random, started, script: 0, step: 0, in_pipeline: false } }
    }
}

impl Program for Client {
    #[inline]
    fn begin(&mut self, choose: &mut Random) -> usize {
        let state = &mut self.state;
        state.script = self.scripts.choose(choose);
        state.step = 0;
        state.in_pipeline = false;
        state.started = state.random.clone();
        state.script
    }

    /// Variables keep what the failed try has given them, as in pgbench.
    fn retry(&mut self) {
        let state = &mut self.state;
        state.random = state.started.clone();
        state.step = 0;
        state.in_pipeline = false;
    }

    /// The most frequent steps, queries and random numbers for them, go the short way.
    #[inline]
    fn next_action(&mut self) -> Action<'_> {
        let (scripts, state) = (&*self.scripts, &mut self.state);
        let script = &scripts.scripts[state.script];
        match script.legs.leg(state.step) {
            Some(leg) if !(scripts.timed | state.in_pipeline) => {
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
            let trouble = |reason| AbortReason::Rows { command, query, reason };
            if is_last && !store.all && result.rows != 1 {
                return Err(trouble(format!("expected one row, got {}", result.rows)));
            }
            if result.rows > 0 && (is_last || store.all) {
                store_row(store, result, &mut self.state.values).map_err(trouble)?;
            }
        }
        Ok(())
    }
}

impl State {
    /// Gives a leg's variables their random numbers.
    #[inline(never)]
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

    /// Executes steps up to one that is an action.
    #[inline(never)]
    fn proceed<'a>(&'a mut self, scripts: &'a Scripts, script: &'a Script) -> Action<'a> {
        loop {
            let Some(step) = script.steps.get(self.step) else { return end(self.in_pipeline) };
            self.step += 1;
            match self.execute(scripts, step) {
                Ok(Outcome::Done) if scripts.timed => return Action::Local { command: step.command },
                Ok(Outcome::Done) => {}
                Ok(outcome) => {
                    let last = self.step == script.steps.len() && !self.in_pipeline;
                    return action(step.command, outcome, script, &self.values, last);
                }
                Err(trouble) => return Action::Abort(*trouble),
            }
        }
    }

    /// Executes one step.
    fn execute(&mut self, scripts: &Scripts, step: &Step) -> Result<Outcome, Box<AbortReason>> {
        let place = Place { scripts, script: self.script, command: step.command };
        match &step.operation {
            Operation::Draw { slot, span } => self.values[*slot] = Value::Int(span.draw(&mut self.random)),
            Operation::Set { target, expression } => {
                place.set(target, expression, &mut self.values, &mut self.random)?;
            }
            Operation::Branch { word, condition, otherwise } => {
                if !place.evaluate(condition, word, &self.values, &mut self.random)?.truth() {
                    self.step = *otherwise;
                }
            }
            Operation::Jump(to) => self.step = *to,
            Operation::EndIf => {}
            Operation::Query { statement, store } => {
                let rows = match store {
                    Some(store) if self.in_pipeline => return Err(place.no_rows_in_pipeline(store)),
                    Some(_) => Rows::Kept,
                    None => Rows::Skipped,
                };
                return Ok(Outcome::Query(*statement, rows));
            }
            Operation::Sleep(sleep) => {
                let time = sleep.time(&self.values);
                return time.map(Outcome::Sleep).map_err(|reason| place.not_executed("sleep", reason));
            }
            Operation::Shell(shell) => {
                shell.run(&self.values).map_err(|reason| place.not_executed("shell", reason))?;
            }
            Operation::SetShell { target, command } => {
                let result = command.result(&self.values).and_then(|number| Ok((target.slot("setshell")?, number)));
                let (slot, number) = result.map_err(|reason| place.not_executed("setshell", reason))?;
                self.values[slot] = Value::Int(number);
            }
            Operation::StartPipeline(statements) => {
                place.check_start(self.in_pipeline)?;
                self.in_pipeline = true;
                return Ok(Outcome::StartPipeline(statements.clone()));
            }
            Operation::SyncPipeline => {
                place.check_in_pipeline("syncpipeline", self.in_pipeline)?;
                return Ok(Outcome::SyncPipeline);
            }
            Operation::EndPipeline => {
                place.check_in_pipeline("endpipeline", self.in_pipeline)?;
                self.in_pipeline = false;
                return Ok(Outcome::EndPipeline);
            }
        }
        Ok(Outcome::Done)
    }
}

/// The action that a step's outcome asks for; `last` if no step follows.
fn action<'a>(command: usize, outcome: Outcome, script: &'a Script, values: &'a [Value], last: bool) -> Action<'a> {
    match outcome {
        Outcome::Done => Action::Local { command },
        Outcome::Query(statement, rows) => {
            Action::Query { command, statement: &script.statements[statement], values, rows, last }
        }
        Outcome::StartPipeline(statements) => {
            Action::StartPipeline { command, statements: script.statements.get(statements).unwrap_or_default() }
        }
        Outcome::SyncPipeline => Action::SyncPipeline { command },
        Outcome::EndPipeline => Action::EndPipeline { command },
        Outcome::Sleep(time) => Action::Sleep { command, time },
    }
}

/// The end of a script, where no pipeline may be open.
fn end<'a>(in_pipeline: bool) -> Action<'a> {
    if in_pipeline {
        return Action::Abort(AbortReason::Script { reason: "end of script reached with pipeline open".to_owned() });
    }
    Action::End
}

/// Where a client is, for what can go wrong there.
struct Place<'a> {
    scripts: &'a Scripts,
    script: usize,
    command: usize,
}

impl Place<'_> {
    #[cold]
    fn failed(&self, word: &'static str, reason: &str, detail: Option<String>) -> Box<AbortReason> {
        Box::new(AbortReason::Command { command: self.command, word, reason: reason.to_owned(), detail })
    }

    #[cold]
    fn not_executed(&self, word: &'static str, detail: String) -> Box<AbortReason> {
        self.failed(word, "execution of meta-command failed", Some(detail))
    }

    #[cold]
    fn no_rows_in_pipeline(&self, store: &Store) -> Box<AbortReason> {
        let word = store.word();
        self.failed(word, &format!("\\{word} is not allowed in pipeline mode"), None)
    }

    fn check_start(&self, in_pipeline: bool) -> Result<(), Box<AbortReason>> {
        let reason = match (self.scripts.mode, in_pipeline) {
            (QueryMode::Simple, _) => "cannot use pipeline mode with the simple query protocol",
            (_, true) => "already in pipeline mode",
            (_, false) => return Ok(()),
        };
        Err(self.failed("startpipeline", reason, None))
    }

    fn check_in_pipeline(&self, word: &'static str, in_pipeline: bool) -> Result<(), Box<AbortReason>> {
        if in_pipeline { Ok(()) } else { Err(self.failed(word, "not in pipeline mode", None)) }
    }

    fn evaluate(
        &self,
        expression: &Expression,
        word: &'static str,
        values: &[Value],
        random: &mut Random,
    ) -> Result<Scalar, Box<AbortReason>> {
        let symbols = &self.scripts.symbols;
        let mut context = Context { values, symbols, random, script: self.script, command: self.command };
        expression
            .evaluate(&mut context)
            .map_err(|error| self.failed(word, "evaluation of meta-command failed", error.into_sentence()))
    }

    fn set(
        &self,
        target: &Target,
        expression: &Expression,
        values: &mut [Value],
        random: &mut Random,
    ) -> Result<(), Box<AbortReason>> {
        let scalar = self.evaluate(expression, "set", values, random)?;
        let slot = target
            .slot("set")
            .map_err(|reason| self.failed("set", "assignment of meta-command failed", Some(reason)))?;
        values[slot] = scalar.into();
        Ok(())
    }
}

impl Target {
    /// The variable's slot; the error is what `command` says of its name.
    fn slot(&self, command: &str) -> Result<usize, String> {
        match self {
            Target::Slot(slot) => Ok(*slot),
            Target::Invalid(name) => Err(invalid_name(command, name)),
        }
    }
}

fn invalid_name(word: &str, name: &str) -> String {
    format!("{word}: invalid variable name: \"{name}\"")
}

/// Stores a row's values in the variables that are used anywhere; NULL is an empty text, as in pgbench.
fn store_row(store: &Store, result: &ResultSet, values: &mut [Value]) -> Result<(), String> {
    for (column, value) in result.columns.iter().zip(&result.last) {
        match store.slots.get(column) {
            Some(slot) => values[*slot].set_text(value.as_deref().unwrap_or_default()),
            None => check_name(store, column)?,
        }
    }
    Ok(())
}

/// Refuses a column whose name makes no variable.
fn check_name(store: &Store, column: &[u8]) -> Result<(), String> {
    let name = [store.prefix.as_bytes(), column].concat();
    if symbols::is_valid(&name) {
        return Ok(());
    }
    let name = String::from_utf8_lossy(&name);
    // pgbench tells this before the line that the caller tells. That nobody reads it is no reason to stop.
    print_stderr(format_args!("pgbench: error: {}\n", invalid_name(store.word(), &name)));
    Err(format!("error storing into variable {name}"))
}

impl Sleep {
    /// The time to sleep. pgbench counts microseconds in 32 bits: what overflows wraps, what is negative is no time.
    fn time(&self, values: &[Value]) -> Result<Duration, String> {
        let amount = match &self.amount {
            Amount::Literal(amount) => *amount,
            Amount::Variable { slot, name } => self.variable(&values[*slot], name)?,
        };
        let microseconds = amount.wrapping_mul(match self.unit {
            Unit::Microseconds => 1,
            Unit::Milliseconds => 1000,
            Unit::Seconds => 1_000_000,
        });
        Ok(Duration::from_micros(u64::try_from(microseconds).unwrap_or(0)))
    }

    fn variable(&self, value: &Value, name: &str) -> Result<i32, String> {
        let word = &self.word;
        if let Value::Int(number) = value {
            return Ok(*number as i32);
        }
        let mut text = Vec::new();
        value.write_text(&mut text);
        match c_numbers::atoi(&text) {
            _ if *value == Value::Unset => Err(format!("{word}: undefined variable \"{name}\"")),
            0 if !text.first().is_some_and(u8::is_ascii_digit) => {
                let shown = String::from_utf8_lossy(&text);
                Err(format!("{word}: invalid sleep time \"{shown}\" for variable \"{name}\""))
            }
            number => Ok(number),
        }
    }
}
