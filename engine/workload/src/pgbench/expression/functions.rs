//! The functions and operators of expressions. Each has a row in a table, as in pgbench's `PGBENCH_FUNCTIONS`.

use super::super::hashes;
use super::super::symbols::Symbols;
use super::scalar::{Evaluated, EvaluationError, Scalar};
use ground::output::write_stderr;
use ground::random::{MAX_ZIPFIAN_PARAMETER, MIN_GAUSSIAN_PARAMETER, MIN_ZIPFIAN_PARAMETER, Random};
use wire::value::{Value, fixed, write_double};

/// The greatest number of arguments of a call. A call with more arguments fails.
pub const MAX_ARGUMENTS: usize = 16;

/// The data that the evaluation of an expression uses: the values of variables, the random generator, and the current
/// command.
#[derive(Debug)]
pub struct Context<'a> {
    pub values: &'a [Value],
    pub symbols: &'a Symbols,
    pub random: &'a mut Random,
    /// The index of the script, which `debug()` prints.
    pub script: usize,
    /// The index of the command, which `debug()` prints.
    pub command: usize,
}

/// A function or an operator.
#[derive(Debug)]
pub struct Function {
    /// The name in scripts. For an operator it is its sign, or a name that scripts cannot write.
    pub name: &'static str,
    pub arity: Arity,
    /// True if the result depends only on the arguments and the function has no side effect.
    pub is_pure: bool,
    /// True if the function receives NULL arguments; if false, a NULL argument makes the result NULL without a call.
    pub takes_null: bool,
    /// The function that computes the result. It gets as many arguments as `arity` allows.
    pub result: fn(&[Scalar], &mut Context<'_>) -> Evaluated,
}

/// The number of arguments that a function takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    Exactly(usize),
    AtLeastOne,
    /// This number of arguments, and optionally a seed.
    Seeded(usize),
}

use Arity::{AtLeastOne, Exactly, Seeded};

/// The name of the function that most `\set` commands use.
pub const RANDOM: &str = "random";

/// The names of operators for which scripts have a syntax of their own. No script can write these names as a function.
pub const IS: &str = "!is";
pub const NOT: &str = "!not";

static FUNCTIONS: [Function; 37] = [
    pure("+", Exactly(2), |a, _| arithmetic(a, |l, r| l + r, i64::checked_add, "add")),
    pure("-", Exactly(2), |a, _| arithmetic(a, |l, r| l - r, i64::checked_sub, "sub")),
    pure("*", Exactly(2), |a, _| arithmetic(a, |l, r| l * r, i64::checked_mul, "mul")),
    pure("/", Exactly(2), |a, _| divide(a)),
    pure("%", Exactly(2), |a, _| modulo(a)),
    pure("=", Exactly(2), |a, _| compare(a, f64::eq, i64::eq)),
    pure("<>", Exactly(2), |a, _| compare(a, f64::ne, i64::ne)),
    pure("<=", Exactly(2), |a, _| compare(a, f64::le, i64::le)),
    pure("<", Exactly(2), |a, _| compare(a, f64::lt, i64::lt)),
    pure("&", Exactly(2), |a, _| of_ints(a, |[l, r]| l & r)),
    pure("|", Exactly(2), |a, _| of_ints(a, |[l, r]| l | r)),
    pure("#", Exactly(2), |a, _| of_ints(a, |[l, r]| l ^ r)),
    // Only the low six bits of the distance count, as on the processors on which pgbench runs.
    pure("<<", Exactly(2), |a, _| of_ints(a, |[l, r]| l.wrapping_shl(r as u32))),
    pure(">>", Exactly(2), |a, _| of_ints(a, |[l, r]| l.wrapping_shr(r as u32))),
    pure(NOT, Exactly(1), |a, _| Ok(Scalar::Bool(!a[0].bool()?))),
    Function { takes_null: true, ..pure(IS, Exactly(2), |a, _| Ok(Scalar::Bool(a[0].is(a[1])))) },
    pure("abs", Exactly(1), |a, _| Ok(absolute(a[0]))),
    Function { takes_null: true, ..impure("debug", Exactly(1), debug) },
    pure("double", Exactly(1), |a, _| of_double(a, |x| x)),
    pure("exp", Exactly(1), |a, _| of_double(a, f64::exp)),
    pure("greatest", AtLeastOne, |a, _| extreme(a, f64::gt, i64::max)),
    pure("hash", Seeded(1), |a, _| of_ints(a, |[value, seed]| hashes::murmur2(value, seed))),
    pure("hash_fnv1a", Seeded(1), |a, _| of_ints(a, |[value, seed]| hashes::fnv1a(value, seed))),
    pure("hash_murmur2", Seeded(1), |a, _| of_ints(a, |[value, seed]| hashes::murmur2(value, seed))),
    pure("int", Exactly(1), |a, _| of_ints(a, |[x]| x)),
    pure("least", AtLeastOne, |a, _| extreme(a, f64::lt, i64::min)),
    pure("ln", Exactly(1), |a, _| of_double(a, f64::ln)),
    pure("mod", Exactly(2), |a, _| modulo(a)),
    pure("permute", Seeded(2), |a, _| permuted(a)),
    pure("pi", Exactly(0), |_, _| Ok(Scalar::Double(std::f64::consts::PI))),
    pure("pow", Exactly(2), |a, _| power(a)),
    pure("power", Exactly(2), |a, _| power(a)),
    impure(RANDOM, Exactly(2), |a, context| range(a).map(|(low, high)| Scalar::Int(context.random.range(low, high)))),
    impure("random_exponential", Exactly(3), random_exponential),
    impure("random_gaussian", Exactly(3), random_gaussian),
    impure("random_zipfian", Exactly(3), random_zipfian),
    pure("sqrt", Exactly(1), |a, _| of_double(a, f64::sqrt)),
];

/// Returns the function of this name, in upper or lower case, or the operator with this sign.
pub fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name.eq_ignore_ascii_case(name))
}

/// Two functions are equal if their names are.
impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

const fn pure(name: &'static str, arity: Arity, result: fn(&[Scalar], &mut Context<'_>) -> Evaluated) -> Function {
    Function { name, arity, is_pure: true, takes_null: false, result }
}

const fn impure(name: &'static str, arity: Arity, result: fn(&[Scalar], &mut Context<'_>) -> Evaluated) -> Function {
    Function { name, arity, is_pure: false, takes_null: false, result }
}

/// Returns the first `N` arguments as integers.
fn ints<const N: usize>(arguments: &[Scalar]) -> Evaluated<[i64; N]> {
    let mut ints = [0; N];
    for (int, argument) in ints.iter_mut().zip(arguments) {
        *int = argument.int()?;
    }
    Ok(ints)
}

fn of_ints<const N: usize>(arguments: &[Scalar], result: fn([i64; N]) -> i64) -> Evaluated {
    ints(arguments).map(|ints| Scalar::Int(result(ints)))
}

fn of_double(arguments: &[Scalar], result: fn(f64) -> f64) -> Evaluated {
    Ok(Scalar::Double(result(arguments[0].double()?)))
}

/// True if one of the arguments is a double. Arithmetic, comparisons, `least` and `greatest` then use doubles.
fn any_double(arguments: &[Scalar]) -> bool {
    arguments.iter().any(|argument| matches!(argument, Scalar::Double(_)))
}

fn arithmetic(
    arguments: &[Scalar],
    doubles: fn(f64, f64) -> f64,
    checked: fn(i64, i64) -> Option<i64>,
    name: &str,
) -> Evaluated {
    if any_double(arguments) {
        return Ok(Scalar::Double(doubles(arguments[0].double()?, arguments[1].double()?)));
    }
    let [left, right] = ints(arguments)?;
    let result = checked(left, right).map(Scalar::Int);
    result.ok_or_else(|| EvaluationError::new(format!("bigint {name} out of range")))
}

fn compare(arguments: &[Scalar], doubles: fn(&f64, &f64) -> bool, integers: fn(&i64, &i64) -> bool) -> Evaluated {
    if any_double(arguments) {
        return Ok(Scalar::Bool(doubles(&arguments[0].double()?, &arguments[1].double()?)));
    }
    let [left, right] = ints(arguments)?;
    Ok(Scalar::Bool(integers(&left, &right)))
}

fn divide(arguments: &[Scalar]) -> Evaluated {
    if !any_double(arguments) && ints::<2>(arguments)?[1] == 0 {
        return Err(EvaluationError::new("division by zero"));
    }
    arithmetic(arguments, |left, right| left / right, i64::checked_div, "div")
}

fn modulo(arguments: &[Scalar]) -> Evaluated {
    match ints(arguments)? {
        [_, 0] => Err(EvaluationError::new("division by zero")),
        [left, right] => Ok(Scalar::Int(left.wrapping_rem(right))),
    }
}

fn power(arguments: &[Scalar]) -> Evaluated {
    Ok(Scalar::Double(arguments[0].double()?.powf(arguments[1].double()?)))
}

fn absolute(argument: Scalar) -> Scalar {
    match argument {
        Scalar::Int(number) => Scalar::Int(number.wrapping_abs()),
        Scalar::Double(number) => Scalar::Double(if number < 0.0 { -number } else { number }),
        // pgbench interprets the bits of a boolean as the bits of a double.
        Scalar::Null | Scalar::Bool(_) => Scalar::Double(f64::from_bits(u64::from(argument.truth()))),
    }
}

/// Returns the least or the greatest argument. The result is a double if any argument is a double.
fn extreme(arguments: &[Scalar], keeps: fn(&f64, &f64) -> bool, integers: fn(i64, i64) -> i64) -> Evaluated {
    if any_double(arguments) {
        let mut extreme = arguments[0].double()?;
        for argument in &arguments[1..] {
            let number = argument.double()?;
            extreme = if keeps(&extreme, &number) { extreme } else { number };
        }
        return Ok(Scalar::Double(extreme));
    }
    let mut extreme = arguments[0].int()?;
    for argument in &arguments[1..] {
        extreme = integers(extreme, argument.int()?);
    }
    Ok(Scalar::Int(extreme))
}

fn permuted(arguments: &[Scalar]) -> Evaluated {
    let [value, size, seed] = ints(arguments)?;
    if size <= 0 {
        return Err(EvaluationError::new("permute size parameter must be greater than zero"));
    }
    Ok(Scalar::Int(hashes::permute(value, size, seed)))
}

/// Returns the range of a random draw. Fails unless the size of the range fits into 63 bits.
fn range(arguments: &[Scalar]) -> Evaluated<(i64, i64)> {
    let [low, high] = ints(arguments)?;
    if low > high {
        return Err(EvaluationError::new("empty range given to random"));
    }
    match high.checked_sub(low).and_then(|difference| difference.checked_add(1)) {
        Some(_) => Ok((low, high)),
        None => Err(EvaluationError::new("random range is too large")),
    }
}

fn random_exponential(arguments: &[Scalar], context: &mut Context) -> Evaluated {
    let ((low, high), parameter) = (range(arguments)?, arguments[2].double()?);
    if parameter <= 0.0 {
        let shown = fixed(parameter);
        return Err(EvaluationError::new(format!("exponential parameter must be greater than zero (not {shown})")));
    }
    Ok(Scalar::Int(context.random.exponential(low, high, parameter)))
}

fn random_gaussian(arguments: &[Scalar], context: &mut Context) -> Evaluated {
    let ((low, high), parameter) = (range(arguments)?, arguments[2].double()?);
    if parameter < MIN_GAUSSIAN_PARAMETER {
        let (least, shown) = (fixed(MIN_GAUSSIAN_PARAMETER), fixed(parameter));
        return Err(EvaluationError::new(format!("gaussian parameter must be at least {least} (not {shown})")));
    }
    Ok(Scalar::Int(context.random.gaussian(low, high, parameter)))
}

/// Draws from Zipf's distribution. The parameter NaN is rejected too, because pgbench would never return from such a
/// draw.
fn random_zipfian(arguments: &[Scalar], context: &mut Context) -> Evaluated {
    let ((low, high), parameter) = (range(arguments)?, arguments[2].double()?);
    if !(MIN_ZIPFIAN_PARAMETER..=MAX_ZIPFIAN_PARAMETER).contains(&parameter) {
        return Err(EvaluationError::new(format!(
            "zipfian parameter must be in range [{MIN_ZIPFIAN_PARAMETER:.3}, {MAX_ZIPFIAN_PARAMETER:.0}] (not {})",
            fixed(parameter)
        )));
    }
    Ok(Scalar::Int(context.random.zipfian(low, high, parameter)))
}

/// Writes the argument to standard error and returns it. Errors of writing are ignored.
#[cold]
fn debug(arguments: &[Scalar], context: &mut Context) -> Evaluated {
    let mut line = format!("debug(script={},command={}): ", context.script, context.command + 1).into_bytes();
    match arguments[0] {
        Scalar::Null => line.extend_from_slice(b"null"),
        Scalar::Bool(truth) => line.extend_from_slice(if truth { b"boolean true" } else { b"boolean false" }),
        Scalar::Int(number) => line.extend_from_slice(format!("int {number}").as_bytes()),
        Scalar::Double(number) => {
            line.extend_from_slice(b"double ");
            write_double(number, &mut line);
        }
    }
    line.push(b'\n');
    write_stderr(&line);
    Ok(arguments[0])
}
