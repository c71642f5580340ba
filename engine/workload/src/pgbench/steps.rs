//! The steps into which scripts are compiled, and what a client does to execute each.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use super::expression::functions::Context;
use super::expression::{Expression, Scalar};
use super::shell::ShellCommand;
use super::symbols::Symbols;
use crate::program::AbortReason;
use ground::c_numbers;
use ground::random::{Random, Span};
use thiserror::Error;
use wire::Rows;
use wire::statement::QueryMode;
use wire::value::Value;

/// A command of a script, or a part of one.
#[derive(Debug)]
pub struct Step {
    /// The index of the command in its script.
    pub command: usize,
    pub operation: Operation,
}

/// The operation that a step does. The enum's tag has a byte of its own, so that one instruction can read it.
#[derive(Debug)]
#[repr(u8)]
pub enum Operation {
    /// The most common `\set`: a uniform random draw from a range that is known when scripts are linked.
    Draw {
        slot: usize,
        span: Span,
    },
    Set {
        target: VariableTarget,
        expression: Expression,
    },
    SetShell {
        target: VariableTarget,
        command: ShellCommand,
    },
    Shell(ShellCommand),
    Sleep(Sleep),
    /// The condition of `\if` or `\elif`. If it is true, the next step follows, and otherwise the step `otherwise`.
    Branch {
        word: &'static str,
        condition: Expression,
        otherwise: usize,
    },
    /// The jump at `\elif` or `\else`, which ends a branch that was executed.
    Jump(usize),
    /// The command `\endif`, which ends the last branch.
    EndIf,
    Query {
        statement: usize,
        store: Option<Box<Store>>,
    },
    /// The start of a pipeline. The field has the indexes of the pipeline's statements, which are prepared before the
    /// pipeline starts.
    StartPipeline(Range<usize>),
    SyncPipeline,
    EndPipeline,
}

/// The variable that a command sets, or a name that is not valid for a variable.
#[derive(Debug)]
pub enum VariableTarget {
    Slot(usize),
    Invalid(String),
}

/// The arguments of `\sleep`.
#[derive(Debug)]
pub struct Sleep {
    /// The command as the script has it. Error messages begin with this word.
    pub word: String,
    pub amount: Amount,
    pub unit: Unit,
}

/// The time to sleep, as a number of units: a constant, or the value of a variable.
#[derive(Debug)]
pub enum Amount {
    Literal(i32),
    Variable { slot: usize, name: String },
}

/// The arguments of `\gset` or `\aset`, which store the results of the previous statement in variables.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Store {
    /// The prefix of the variables' names. The column's name follows it.
    pub prefix: String,
    /// True to store the results of all queries of the statement (`\aset`); false to store only the results of the last
    /// query (`\gset`).
    pub all: bool,
    /// The slots (indexes) of the variables that the command may set, as far as some script uses them. The keys are the
    /// names of the columns whose values the variables get. The entries are added when all scripts have been compiled.
    pub slots: HashMap<Vec<u8>, usize>,
}

impl Store {
    /// Returns the name of the command: `gset` or `aset`.
    pub fn word(&self) -> &'static str {
        if self.all { "aset" } else { "gset" }
    }
}

/// The unit of `\sleep`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Microseconds,
    Milliseconds,
    Seconds,
}

/// The state of a client: its variables, its random generators, and its position in the script.
pub struct ScriptState {
    pub values: Vec<Value>,
    pub random: Random,
    /// The state of the client's random generator at the beginning of the transaction, from which a retry starts.
    pub started: Random,
    pub script: usize,
    /// The index of the step that is executed next.
    pub step: usize,
    pub in_pipeline: bool,
    /// True if the client has already reported to the event loop that the command of the next step begins, so that the
    /// step can be executed now.
    pub is_announced: bool,
    /// The reason for which the event loop has to abort this client; `None` as long as there is none.
    pub aborted: Option<Box<AbortReason>>,
}

/// The result of executing a step: the next action of the client, if there is one.
pub enum StepResult {
    /// No action: the client continues with the next step.
    Done,
    Query(usize, Rows),
    StartPipeline(Range<usize>),
    SyncPipeline,
    EndPipeline,
    Sleep(Duration),
}

impl ScriptState {
    /// Executes one step of the script, and returns the action that it results in.
    pub fn execute(&mut self, symbols: &Symbols, mode: QueryMode, step: &Step) -> Result<StepResult, Box<AbortReason>> {
        let place = Place { symbols, mode, script: self.script, command: step.command };
        match &step.operation {
            Operation::Draw { slot, span } => self.values[*slot] = Value::Int(span.draw(&mut self.random)),
            Operation::Set { target, expression } => {
                let scalar = place.evaluate(expression, "set", &self.values, &mut self.random)?;
                let slot = target.slot("set").map_err(|error| {
                    place.failed("set", "assignment of meta-command failed", Some(error.to_string()))
                })?;
                self.values[slot] = scalar.into();
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
                    Some(store) if self.in_pipeline => {
                        let reason = format!("\\{} is not allowed in pipeline mode", store.word());
                        return Err(place.failed(store.word(), &reason, None));
                    }
                    Some(_) => Rows::Kept,
                    None => Rows::Skipped,
                };
                return Ok(StepResult::Query(*statement, rows));
            }
            Operation::Sleep(sleep) => {
                let time = sleep.time(&self.values);
                return time.map(StepResult::Sleep).map_err(|error| place.not_executed("sleep", &error));
            }
            Operation::Shell(shell) => {
                shell.run(&self.values).map_err(|error| place.not_executed("shell", &error))?;
            }
            Operation::SetShell { target, command } => {
                let number = command.result(&self.values).map_err(|error| place.not_executed("setshell", &error))?;
                let slot = target.slot("setshell").map_err(|error| place.not_executed("setshell", &error))?;
                self.values[slot] = Value::Int(number);
            }
            Operation::StartPipeline(statements) => {
                place.check_start(self.in_pipeline)?;
                self.in_pipeline = true;
                return Ok(StepResult::StartPipeline(statements.clone()));
            }
            Operation::SyncPipeline => {
                place.check_in_pipeline("syncpipeline", self.in_pipeline)?;
                return Ok(StepResult::SyncPipeline);
            }
            Operation::EndPipeline => {
                place.check_in_pipeline("endpipeline", self.in_pipeline)?;
                self.in_pipeline = false;
                return Ok(StepResult::EndPipeline);
            }
        }
        Ok(StepResult::Done)
    }
}

/// The command that a client is executing, with the details that error messages contain.
struct Place<'a> {
    symbols: &'a Symbols,
    mode: QueryMode,
    script: usize,
    command: usize,
}

impl Place<'_> {
    #[cold]
    fn failed(&self, word: &'static str, reason: &str, detail: Option<String>) -> Box<AbortReason> {
        Box::new(AbortReason::Command { command: self.command, word, reason: reason.to_owned(), detail })
    }

    #[cold]
    fn not_executed(&self, word: &'static str, error: &dyn std::error::Error) -> Box<AbortReason> {
        self.failed(word, "execution of meta-command failed", Some(error.to_string()))
    }

    fn check_start(&self, in_pipeline: bool) -> Result<(), Box<AbortReason>> {
        let reason = match (self.mode, in_pipeline) {
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
        let symbols = self.symbols;
        let mut context = Context { values, symbols, random, script: self.script, command: self.command };
        expression
            .evaluate(&mut context)
            .map_err(|error| self.failed(word, "evaluation of meta-command failed", error.into_sentence()))
    }
}

/// An error in the values of a meta-command's arguments. The message follows the name of the command.
#[derive(Debug, Error)]
pub enum VariableError {
    #[error("{word}: invalid variable name: \"{name}\"")]
    Name { word: &'static str, name: String },
    #[error("{word}: undefined variable \"{name}\"")]
    Undefined { word: String, name: String },
    #[error("{word}: invalid sleep time \"{text}\" for variable \"{name}\"")]
    SleepTime { word: String, text: String, name: String },
}

impl VariableTarget {
    /// Returns the slot (index) of the variable. If the name is not valid for a variable, returns an error with the
    /// command's name `word`.
    fn slot(&self, word: &'static str) -> Result<usize, VariableError> {
        match self {
            VariableTarget::Slot(slot) => Ok(*slot),
            VariableTarget::Invalid(name) => Err(VariableError::Name { word, name: name.clone() }),
        }
    }
}

impl Sleep {
    /// Returns the time to sleep. As in pgbench, microseconds have 32 bits: a greater value wraps around, and a
    /// negative one means no sleep.
    fn time(&self, values: &[Value]) -> Result<Duration, VariableError> {
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

    fn variable(&self, value: &Value, name: &str) -> Result<i32, VariableError> {
        if let Value::Int(number) = value {
            return Ok(*number as i32);
        }
        let mut text = Vec::new();
        value.write_text(&mut text);
        match c_numbers::atoi(&text) {
            _ if *value == Value::Unset => {
                Err(VariableError::Undefined { word: self.word.clone(), name: name.to_owned() })
            }
            0 if !text.first().is_some_and(u8::is_ascii_digit) => Err(VariableError::SleepTime {
                word: self.word.clone(),
                text: ground::text::of(&text),
                name: name.to_owned(),
            }),
            number => Ok(number),
        }
    }
}
