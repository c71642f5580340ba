//! The legs of a script: draws and the query after them, of which nearly all scripts consist, done in one go.

use super::steps::{Operation, Step};
use ground::random::Span;

/// The legs of one script.
#[derive(Debug, Default)]
pub struct Legs {
    /// By the step at which they begin; none where something else comes before the next query.
    legs: Vec<Option<Leg>>,
    /// Of all legs: one that begins at a later draw shares the rest with those before.
    draws: Vec<Draw>,
}

/// What a client does from a step on, up to a query whose rows are not wanted.
#[derive(Debug, Clone)]
pub struct Leg {
    /// Its draws among those of all legs.
    first: usize,
    end: usize,
    /// The query's command, and its statement among the script's.
    pub command: usize,
    pub statement: usize,
    /// The step after it, and whether there is none.
    pub next: usize,
    pub is_last: bool,
}

/// A variable that is given a random number.
#[derive(Debug)]
pub struct Draw {
    pub slot: usize,
    pub span: Span,
}

impl Legs {
    /// The legs of a script with these steps.
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

    /// The leg that begins at a step.
    #[inline(always)]
    pub fn leg(&self, step: usize) -> Option<&Leg> {
        self.legs.get(step)?.as_ref()
    }

    /// What is drawn on a leg, in this order.
    #[inline(always)]
    pub fn draws(&self, leg: &Leg) -> &[Draw] {
        self.draws.get(leg.first..leg.end).unwrap_or_default()
    }
}

impl Leg {
    /// Whether it begins with draws.
    #[inline(always)]
    pub fn has_draws(&self) -> bool {
        self.first != self.end
    }
}
