//! The tree of a parsed expression.

use super::functions::Function;
use super::scalar::Scalar;

/// A tree in which variables have the type `V`: a name after parsing, and a slot (the index of the variable) after
/// names were replaced.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree<V> {
    Constant(Scalar),
    Variable(V),
    /// A call of a function or an operator. All arguments are evaluated, from left to right.
    Call(&'static Function, Box<[Tree<V>]>),
    /// `OR` if the field is true, `AND` if it is false. The first operand with this value decides the result.
    Logic(bool, Box<[Tree<V>]>),
    /// `CASE`. Conditions and results alternate, and the last element is the result of `ELSE`.
    Case(Box<[Tree<V>]>),
}

/// An expression as it was parsed, with the names of its variables.
pub type Syntax = Tree<String>;

/// An expression that can be evaluated. Its variables are slots, the indexes of the values of a client.
pub type Expression = Tree<usize>;
