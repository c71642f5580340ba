//! Evaluates expressions.

use super::functions::{Context, Function, MAX_ARGUMENTS};
use super::scalar::{self, Evaluated, EvaluationError, Scalar};
use super::tree::{Expression, Tree};

impl Expression {
    /// Returns the value of the expression. The text of a variable gets its type (such as integer or double) here.
    pub fn evaluate(&self, context: &mut Context) -> Evaluated {
        match self {
            Tree::Constant(scalar) => Ok(*scalar),
            Tree::Variable(slot) => {
                scalar::of_variable(&context.values[*slot], || context.symbols.name(*slot).to_owned())
            }
            Tree::Call(function, arguments) => match &**arguments {
                [left, right] => {
                    let left = left.evaluate(context)?;
                    call(function, &[left, right.evaluate(context)?], context)
                }
                [only] => call(function, &[only.evaluate(context)?], context),
                arguments => call_with_many(function, arguments, context),
            },
            Tree::Logic(decides, operands) => connect(operands, *decides, context),
            Tree::Case(branches) => {
                let mut pairs = branches.chunks_exact(2);
                for pair in &mut pairs {
                    if pair[0].evaluate(context)?.truth() {
                        return pair[1].evaluate(context);
                    }
                }
                pairs.remainder().first().map_or(Ok(Scalar::Null), |otherwise| otherwise.evaluate(context))
            }
        }
    }
}

/// Evaluates `AND` or `OR`. The first operand that is NULL or equals `decides` (false for `AND`, true for `OR`) is the
/// result, and the operands behind it are not evaluated.
fn connect(operands: &[Expression], decides: bool, context: &mut Context) -> Evaluated {
    for operand in operands {
        match operand.evaluate(context)? {
            Scalar::Null => return Ok(Scalar::Null),
            scalar if scalar.bool()? == decides => return Ok(Scalar::Bool(decides)),
            _ => {}
        }
    }
    Ok(Scalar::Bool(!decides))
}

fn call_with_many(function: &Function, arguments: &[Expression], context: &mut Context) -> Evaluated {
    let mut values = [Scalar::Null; MAX_ARGUMENTS];
    for (value, argument) in values.iter_mut().zip(arguments) {
        *value = argument.evaluate(context)?;
    }
    match values.get(..arguments.len()) {
        Some(values) => call(function, values, context),
        None => Err(EvaluationError::new(format!("too many function arguments, maximum is {MAX_ARGUMENTS}"))),
    }
}

/// Calls a function. If an argument is NULL, the result is NULL, unless the function accepts NULL.
#[inline]
fn call(function: &Function, arguments: &[Scalar], context: &mut Context) -> Evaluated {
    if arguments.contains(&Scalar::Null) && !function.takes_null {
        return Ok(Scalar::Null);
    }
    (function.result)(arguments, context)
}
