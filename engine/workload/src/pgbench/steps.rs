//! From commands to steps: what a client executes one after another, with jumps for conditions.

use std::collections::HashMap;
use std::ops::Range;

use super::commands::{Meta, Unit};
use super::error::ScriptError;
use super::expression::fold::Resolver;
use super::expression::{Expression, Function, Scalar, Syntax, Tree};
use super::legs::Legs;
use super::script::{Command, Parsed, Sql};
use super::shell::ShellCommand;
use super::sql;
use super::words::Word;
use crate::pgbench::symbols;
use crate::pgbench::symbols::Symbols;
use crate::program::{CommandInfo, ScriptInfo};
use ground::c_numbers;
use ground::random::Span;
use wire::statement::{QueryMode, Statement};

/// A script that can be run.
#[derive(Debug)]
pub struct Script {
    pub info: ScriptInfo,
    pub steps: Vec<Step>,
    /// In the order of the script.
    pub statements: Vec<Statement>,
    pub legs: Legs,
}

/// A command, or a part of one.
#[derive(Debug)]
pub struct Step {
    /// The command's index in the script.
    pub command: usize,
    pub operation: Operation,
}

/// What a step does. The tag has a byte of its own, so that it is read in one instruction.
#[derive(Debug)]
#[repr(u8)]
pub enum Operation {
    /// The usual `\set`: a uniform draw from a range that is known.
    Draw {
        slot: usize,
        span: Span,
    },
    Set {
        target: Target,
        expression: Expression,
    },
    SetShell {
        target: Target,
        command: ShellCommand,
    },
    Shell(ShellCommand),
    Sleep(Sleep),
    /// `\if` and `\elif`: goes on if the condition holds, and at the step `otherwise` if not.
    Branch {
        word: &'static str,
        condition: Expression,
        otherwise: usize,
    },
    /// `\elif` and `\else` at the end of a branch that has been executed.
    Jump(usize),
    /// `\endif` at the end of the last branch.
    EndIf,
    Query {
        statement: usize,
        store: Option<Box<Store>>,
    },
    /// The statements up to the pipeline's end are prepared before it starts.
    StartPipeline(Range<usize>),
    SyncPipeline,
    EndPipeline,
}

/// The variable that a command sets, or a name that no variable can have.
#[derive(Debug)]
pub enum Target {
    Slot(usize),
    Invalid(String),
}

/// `\sleep`
#[derive(Debug)]
pub struct Sleep {
    /// The command as it is written: errors begin with it.
    pub word: String,
    pub amount: Amount,
    pub unit: Unit,
}

/// How long to sleep, in the command's unit.
#[derive(Debug)]
pub enum Amount {
    Literal(i32),
    Variable { slot: usize, name: String },
}

/// `\gset` and `\aset`
#[derive(Debug)]
pub struct Store {
    pub prefix: String,
    pub all: bool,
    /// The slots of columns whose variables are used anywhere, by the columns' names.
    pub slots: HashMap<Vec<u8>, usize>,
}

impl Store {
    /// The command's word.
    pub fn word(&self) -> &'static str {
        if self.all { "aset" } else { "gset" }
    }
}

/// Makes steps of a script's commands.
pub struct Compiler<'a> {
    pub symbols: &'a mut Symbols,
    pub constants: &'a HashMap<String, Scalar>,
    pub mode: QueryMode,
    /// The number of the script's first statement in the run.
    pub first_statement: usize,
    steps: Vec<Step>,
    statements: Vec<Statement>,
    /// The conditions that are open, the innermost last.
    open: Vec<OpenIf>,
}

#[derive(Default)]
struct OpenIf {
    /// The branch whose condition may fail before another is reached.
    failing: Option<usize>,
    /// The steps that go to the end.
    jumps: Vec<usize>,
}

impl<'a> Compiler<'a> {
    /// Prepares for one script.
    pub fn new(
        symbols: &'a mut Symbols,
        constants: &'a HashMap<String, Scalar>,
        mode: QueryMode,
        first_statement: usize,
    ) -> Self {
        let (steps, statements, open) = Default::default();
        Self { symbols, constants, mode, first_statement, steps, statements, open }
    }

    /// The script of `parsed`. Slots of `\gset` are added when all scripts are known.
    pub fn compile(mut self, parsed: Parsed) -> Result<Script, ScriptError> {
        let mut infos = Vec::new();
        let pipelines = pipelines(&parsed.commands);
        for (command, parsed) in parsed.commands.into_iter().enumerate() {
            let (line, is_sql) = match &parsed {
                Command::Sql(sql) => (sql::first_line(&sql.text), true),
                Command::Meta(_, line) => (line.clone(), false),
            };
            infos.push(CommandInfo { line, is_sql });
            match parsed {
                Command::Sql(sql) => self.query(command, sql)?,
                Command::Meta(meta, _) => self.meta(command, meta, &pipelines),
            }
        }
        let info = ScriptInfo { description: parsed.description, weight: parsed.weight, commands: infos };
        let legs = Legs::find(&self.steps);
        Ok(Script { info, steps: self.steps, statements: self.statements, legs })
    }

    fn query(&mut self, command: usize, sql: Sql) -> Result<(), ScriptError> {
        let statement = self.statements.len();
        self.statements.push(sql::compile(&sql.text, self.first_statement + statement, self.mode, self.symbols)?);
        let store =
            sql.store.map(|store| Box::new(Store { prefix: store.prefix, all: store.all, slots: HashMap::new() }));
        self.push(command, Operation::Query { statement, store });
        Ok(())
    }

    fn meta(&mut self, command: usize, meta: Meta, pipelines: &HashMap<usize, Range<usize>>) {
        let operation = match meta {
            Meta::Set { name, expression } => self.set(&name, &expression),
            Meta::SetShell { name, words } => {
                Operation::SetShell { target: self.target(&name), command: ShellCommand::new(&words, self.symbols) }
            }
            Meta::Shell { words } => Operation::Shell(ShellCommand::new(&words, self.symbols)),
            Meta::Sleep { word, amount, unit } => Operation::Sleep(Sleep { word, amount: self.amount(&amount), unit }),
            Meta::If(condition) => {
                self.open.push(OpenIf { failing: Some(self.steps.len()), jumps: Vec::new() });
                self.branch("if", &condition)
            }
            Meta::Elif(condition) => {
                self.end_branch(command);
                if let Some(open) = self.open.last_mut() {
                    open.failing = Some(self.steps.len());
                }
                self.branch("elif", &condition)
            }
            Meta::Else => return self.end_branch(command),
            Meta::EndIf => {
                self.push(command, Operation::EndIf);
                return self.close();
            }
            Meta::StartPipeline => Operation::StartPipeline(pipelines.get(&command).cloned().unwrap_or_default()),
            Meta::SyncPipeline => Operation::SyncPipeline,
            Meta::EndPipeline => Operation::EndPipeline,
            Meta::Store { .. } => return,
        };
        self.push(command, operation);
    }

    fn push(&mut self, command: usize, operation: Operation) {
        self.steps.push(Step { command, operation });
    }

    fn resolve(&mut self, syntax: &Syntax) -> Expression {
        Resolver { symbols: self.symbols, constants: self.constants }.resolve(syntax)
    }

    fn target(&mut self, name: &str) -> Target {
        match symbols::is_valid(name.as_bytes()) {
            true => Target::Slot(self.symbols.slot(name)),
            false => Target::Invalid(name.to_owned()),
        }
    }

    fn set(&mut self, name: &str, syntax: &Syntax) -> Operation {
        let expression = self.resolve(syntax);
        let target = self.target(name);
        match (target, known_span(&expression)) {
            (Target::Slot(slot), Some(span)) => Operation::Draw { slot, span },
            (target, _) => Operation::Set { target, expression },
        }
    }

    fn amount(&mut self, word: &Word) -> Amount {
        match word.text.strip_prefix(b":") {
            Some(name) => {
                let name = String::from_utf8_lossy(name).into_owned();
                Amount::Variable { slot: self.symbols.slot(&name), name }
            }
            None => Amount::Literal(c_numbers::atoi(&word.text)),
        }
    }

    fn branch(&mut self, word: &'static str, condition: &Syntax) -> Operation {
        Operation::Branch { word, condition: self.resolve(condition), otherwise: 0 }
    }

    /// Ends a branch: who has executed it goes to the end, who has not comes here.
    fn end_branch(&mut self, command: usize) {
        if let Some(open) = self.open.last_mut() {
            open.jumps.push(self.steps.len());
        }
        self.push(command, Operation::Jump(0));
        if let Some(failing) = self.open.last_mut().and_then(|open| open.failing.take()) {
            self.aim(failing);
        }
    }

    /// Who comes from a branch before the last or from a failed condition goes on behind the `\endif`.
    fn close(&mut self) {
        let open = self.open.pop().unwrap_or_default();
        open.jumps.into_iter().chain(open.failing).for_each(|step| self.aim(step));
    }

    /// Makes a step go to the next one to come.
    fn aim(&mut self, step: usize) {
        let next = self.steps.len();
        if let Operation::Jump(to) | Operation::Branch { otherwise: to, .. } = &mut self.steps[step].operation {
            *to = next;
        }
    }
}

/// The range of an expression that is one uniform draw.
fn known_span(expression: &Expression) -> Option<Span> {
    let Tree::Call(Function::Random, arguments) = expression else { return None };
    let [Tree::Constant(low), Tree::Constant(high)] = &**arguments else { return None };
    let (low, high) = (low.int().ok()?, high.int().ok()?);
    let fits = high.checked_sub(low).is_some_and(|difference| difference > 0 && difference < i64::MAX);
    fits.then(|| Span::new(low, high))
}

/// For each `\startpipeline` the statements up to the next `\endpipeline`.
fn pipelines(commands: &[Command]) -> HashMap<usize, Range<usize>> {
    let mut found = HashMap::new();
    let mut started = Vec::new();
    let mut statements = 0;
    for (index, command) in commands.iter().enumerate() {
        match command {
            Command::Sql(_) => statements += 1,
            Command::Meta(Meta::StartPipeline, _) => started.push((index, statements)),
            Command::Meta(Meta::EndPipeline, _) => {
                found.extend(started.drain(..).map(|(index, first)| (index, first..statements)));
            }
            Command::Meta(..) => {}
        }
    }
    found.extend(started.into_iter().map(|(index, first)| (index, first..statements)));
    found
}
