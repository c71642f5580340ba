//! The tree of an expression.

use super::functions::Function;
use super::scalar::Scalar;

/// A tree whose variables are `V`: names as parsed, slots when resolved.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree<V> {
    Constant(Scalar),
    Variable(V),
    /// A function or an operator; all arguments are evaluated, from left to right.
    Call(&'static Function, Box<[Tree<V>]>),
    /// `AND` or `OR`, whose result is the truth of the first operand that has this value.
    Logic(bool, Box<[Tree<V>]>),
    /// `CASE`, with its conditions and results in turn. The last result is that of `ELSE`.
    Case(Box<[Tree<V>]>),
}

/// An expression as it stands in a script.
pub type Syntax = Tree<String>;

/// An expression that can be evaluated.
pub type Expression = Tree<usize>;
