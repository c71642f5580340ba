//! Replaces the names in a parsed expression by slots (indexes of variables), and evaluates in advance the parts that
//! cannot change during the load.

use std::collections::HashMap;

use super::super::symbols::Symbols;
use super::functions::{Context, RANDOM};
use super::scalar::Scalar;
use super::tree::{Expression, Syntax, Tree};
use ground::random::Random;

/// The variables of a run, which replace the names in expressions. They are all known when the scripts are linked, that
/// is, when the scripts of the run get one common table of variables.
#[derive(Debug)]
pub struct Resolver<'a> {
    pub symbols: &'a mut Symbols,
    /// The values of the variables that no command changes.
    pub constants: &'a HashMap<String, Scalar>,
}

impl Resolver<'_> {
    /// Returns the expression with slots (indexes of variables) in place of names. Constant parts are replaced by their
    /// values. A constant part whose evaluation fails stays as it is, because the error must occur only when the
    /// command is executed.
    pub fn resolve(&mut self, syntax: &Syntax) -> Expression {
        let tree = match syntax {
            Tree::Constant(scalar) => return Tree::Constant(*scalar),
            Tree::Variable(name) => {
                return match self.constants.get(name) {
                    Some(scalar) => Tree::Constant(*scalar),
                    None => Tree::Variable(self.symbols.slot(name)),
                };
            }
            Tree::Call(function, arguments) => Tree::Call(function, self.resolve_all(arguments)),
            Tree::Logic(decides, operands) => Tree::Logic(*decides, self.resolve_all(operands)),
            Tree::Case(branches) => Tree::Case(self.resolve_all(branches)),
        };
        if !is_foldable(&tree) {
            return tree;
        }
        let random = &mut Random::seeded(0);
        let mut context = Context { values: &[], symbols: self.symbols, random, script: 0, command: 0 };
        match tree.evaluate(&mut context) {
            Ok(scalar) => Tree::Constant(scalar),
            Err(_) => tree,
        }
    }

    fn resolve_all(&mut self, trees: &[Syntax]) -> Box<[Expression]> {
        trees.iter().map(|tree| self.resolve(tree)).collect()
    }
}

/// True if a tree always has the same value. Constant parts of the tree must have been replaced by their values before.
fn is_foldable(tree: &Expression) -> bool {
    let constant = |tree: &Expression| matches!(tree, Tree::Constant(_));
    match tree {
        Tree::Constant(_) => true,
        Tree::Variable(_) => false,
        // `random` on a range of only one number consumes no random number, so its result is constant.
        Tree::Call(function, arguments) if function.name == RANDOM => {
            matches!(&**arguments, [Tree::Constant(low), Tree::Constant(high)]
                if low.int().is_ok_and(|low| high.int() == Ok(low)))
        }
        Tree::Call(function, arguments) => function.is_pure && arguments.iter().all(constant),
        Tree::Logic(_, parts) | Tree::Case(parts) => parts.iter().all(constant),
    }
}
