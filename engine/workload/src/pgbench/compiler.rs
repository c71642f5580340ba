//! Compiles a script into steps: each name of a variable becomes a slot (the variable's index among the values of a
//! client), conditions become jumps, and statements get parameters.
//!
//! The compiler also finds the script's legs. A leg is a series of `\set` commands that draw random numbers, and the
//! query after them. Nearly all scripts consist of legs. A client executes a leg at once instead of step by step, which
//! is faster.

use std::collections::HashMap;
use std::ops::Range;

use super::error::ScriptError;
use super::expression::fold::Resolver;
use super::expression::{Expression, Scalar, Syntax};
use super::sql;
use super::steps::{Operation, Step, Store, VariableTarget};
use super::symbols::{Symbols, is_valid};
use crate::program::ScriptInfo;
use ground::random::Span;
use wire::statement::{QueryMode, Statement};

/// A compiled script.
#[derive(Debug)]
pub struct Script {
    pub info: ScriptInfo,
    pub steps: Vec<Step>,
    /// The statements, in the order in which they stand in the script.
    pub statements: Vec<Statement>,
    pub legs: Legs,
}

/// Makes the steps of one script.
pub struct Compiler<'a> {
    pub symbols: &'a mut Symbols,
    constants: &'a HashMap<String, Scalar>,
    mode: QueryMode,
    /// The number of the script's first statement among all statements of the run.
    first_statement: usize,
    /// The statements of each pipeline. The key is the index of the command that starts the pipeline.
    pipelines: HashMap<usize, Range<usize>>,
    /// The index of the command that is being compiled.
    command: usize,
    steps: Vec<Step>,
    statements: Vec<Statement>,
    /// The conditions that are open at the current command, the innermost last.
    open: Vec<OpenIf>,
}

#[derive(Default)]
struct OpenIf {
    /// The step that tests the condition of the last `\if` or `\elif`. The target of its jump, the next branch, is not
    /// known yet.
    failing: Option<usize>,
    /// The steps that jump behind the `\endif`, whose position is not known yet.
    jumps: Vec<usize>,
}

impl<'a> Compiler<'a> {
    /// Makes a compiler for one script. `first_statement` is the number of its first statement among all statements of
    /// the run, and `pipelines` has the statements of each pipeline by the command that starts it.
    pub fn new(
        symbols: &'a mut Symbols,
        constants: &'a HashMap<String, Scalar>,
        mode: QueryMode,
        first_statement: usize,
        pipelines: HashMap<usize, Range<usize>>,
    ) -> Self {
        let (command, steps, statements, open) = Default::default();
        Self { symbols, constants, mode, first_statement, pipelines, command, steps, statements, open }
    }

    /// Begins to compile the command with the index `command`. The steps that are added from now on belong to it.
    pub fn begin(&mut self, command: usize) {
        self.command = command;
    }

    /// Adds the step that sends a query.
    pub fn query(&mut self, text: &[u8], store: Option<Box<Store>>) -> Result<(), ScriptError> {
        let statement = self.statements.len();
        self.statements.push(sql::compile(text, self.first_statement + statement, self.mode, self.symbols)?);
        self.push(Operation::Query { statement, store });
        Ok(())
    }

    /// Returns the compiled script. The variables of `\gset` and `\aset` are added later, when all scripts are known.
    pub fn finish(self, info: ScriptInfo) -> Script {
        let legs = Legs::find(&self.steps);
        Script { info, steps: self.steps, statements: self.statements, legs }
    }

    /// Adds a step to the command that is being compiled.
    pub fn push(&mut self, operation: Operation) {
        self.steps.push(Step { command: self.command, operation });
    }

    /// Returns the indexes of the statements in the pipeline that the current command starts.
    pub fn pipeline(&self) -> Range<usize> {
        self.pipelines.get(&self.command).cloned().unwrap_or_default()
    }

    /// Returns the expression with slots (indexes of variables) in place of their names, and with constant parts
    /// evaluated.
    pub fn resolve(&mut self, syntax: &Syntax) -> Expression {
        Resolver { symbols: self.symbols, constants: self.constants }.resolve(syntax)
    }

    /// Returns the variable that a command sets. `name` is the variable's name in the command, which may turn out not
    /// to be valid.
    pub fn target(&mut self, name: &str) -> VariableTarget {
        match is_valid(name.as_bytes()) {
            true => VariableTarget::Slot(self.symbols.slot(name)),
            false => VariableTarget::Invalid(name.to_owned()),
        }
    }

    /// Begins a conditional block at `\if`.
    pub fn begin_if(&mut self, condition: &Syntax) {
        self.open.push(OpenIf::default());
        self.branch("if", condition);
    }

    /// Adds the step that tests the condition of an `\if` or `\elif`.
    pub fn branch(&mut self, word: &'static str, condition: &Syntax) {
        if let Some(open) = self.open.last_mut() {
            open.failing = Some(self.steps.len());
        }
        let condition = self.resolve(condition);
        self.push(Operation::Branch { word, condition, otherwise: 0 });
    }

    /// Ends a branch at `\elif` or `\else`. A branch that was executed jumps to the end of the block, and a condition
    /// that was false continues here.
    pub fn end_branch(&mut self) {
        if let Some(open) = self.open.last_mut() {
            open.jumps.push(self.steps.len());
        }
        self.push(Operation::Jump(0));
        if let Some(failing) = self.open.last_mut().and_then(|open| open.failing.take()) {
            self.aim(failing);
        }
    }

    /// Ends a conditional block at `\endif`. The jumps of its branches and the last condition, if it was false,
    /// continue behind it.
    pub fn end_if(&mut self) {
        self.push(Operation::EndIf);
        let open = self.open.pop().unwrap_or_default();
        open.jumps.into_iter().chain(open.failing).for_each(|step| self.aim(step));
    }

    /// Sets the target of a step's jump to the step that will be added next.
    fn aim(&mut self, step: usize) {
        let next = self.steps.len();
        if let Operation::Jump(to) | Operation::Branch { otherwise: to, .. } = &mut self.steps[step].operation {
            *to = next;
        }
    }
}

/// The legs of one script. A leg is a series of random draws, and the query after them, which a client executes at
/// once.
#[derive(Debug, Default)]
pub struct Legs {
    /// For each step of the script, the leg (random draws and a query) that begins there. `None` if another kind of
    /// step comes before the next query.
    legs: Vec<Option<Leg>>,
    /// The random draws of all legs of the script. A leg is a series of draws and the query after them. Legs that begin
    /// at different steps and end with the same query share the later draws.
    draws: Vec<Draw>,
}

/// A series of random draws, which may be empty, and the query after them. The query does not store its rows.
#[derive(Debug, Clone)]
pub struct Leg {
    /// The index of the leg's first draw among the draws of all legs.
    first: usize,
    /// The index behind the leg's last draw.
    end: usize,
    /// The index of the query's command.
    pub command: usize,
    /// The index of the query's statement.
    pub statement: usize,
    /// The index of the step after the query.
    pub next: usize,
    /// True if there is no step after the query.
    pub is_last: bool,
}

/// A variable that gets a random number, and the range of that number.
#[derive(Debug)]
pub struct Draw {
    pub slot: usize,
    pub span: Span,
}

impl Legs {
    /// Finds the legs (series of random draws, each with the query after them) of a script that has these steps.
    pub fn find(steps: &[Step]) -> Self {
        let mut found = Self { legs: vec![None; steps.len()], draws: Vec::new() };
        let mut begun = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            begun.push((at, found.draws.len()));
            match &step.operation {
                Operation::Draw { slot, span } => found.draws.push(Draw { slot: *slot, span: *span }),
                Operation::Query { statement, store: None } => {
                    let end = found.draws.len();
                    for (begin, first) in begun.drain(..) {
                        found.legs[begin] = Some(Leg {
                            first,
                            end,
                            command: step.command,
                            statement: *statement,
                            next: at + 1,
                            is_last: at + 1 == steps.len(),
                        });
                    }
                }
                _ => begun.clear(),
            }
        }
        found
    }

    /// Returns the leg (a series of random draws and the query after them) that begins at a step; `None` if no leg
    /// begins there.
    #[inline(always)]
    pub fn leg(&self, step: usize) -> Option<&Leg> {
        self.legs.get(step)?.as_ref()
    }

    /// Returns the random draws of a leg, which a client makes before it sends the leg's query, in their order.
    #[inline(always)]
    pub fn draws(&self, leg: &Leg) -> &[Draw] {
        self.draws.get(leg.first..leg.end).unwrap_or_default()
    }
}

impl Leg {
    /// True if the leg has random draws before its query.
    #[inline(always)]
    pub fn has_draws(&self) -> bool {
        self.first != self.end
    }
}
