//! The functions of expressions; operators are functions without a name.

use super::super::hashes;
use super::Scalar;
use super::scalar::{Evaluated, EvaluationError};
use crate::pgbench::permute::permute;
use ground::random::Random;
use ground::random::{MAX_ZIPFIAN_PARAMETER, MIN_GAUSSIAN_PARAMETER, MIN_ZIPFIAN_PARAMETER};
use wire::value::fixed;

/// More arguments are refused when the function is called.
pub const MAX_ARGUMENTS: usize = 16;

/// What is done with evaluated arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    LessOrEqual,
    Less,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Not,
    Is,
    Abs,
    Debug,
    Double,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    Int,
    Least,
    Ln,
    Permute,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

/// How many arguments a function takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    Exactly(usize),
    AtLeastOne,
    /// So many, and a seed that may be left out.
    Seeded(usize),
}

/// The functions that have names.
const NAMED: [(&str, Arity, Function); 21] = [
    ("abs", Arity::Exactly(1), Function::Abs),
    ("debug", Arity::Exactly(1), Function::Debug),
    ("double", Arity::Exactly(1), Function::Double),
    ("exp", Arity::Exactly(1), Function::Exp),
    ("greatest", Arity::AtLeastOne, Function::Greatest),
    ("hash", Arity::Seeded(1), Function::HashMurmur2),
    ("hash_fnv1a", Arity::Seeded(1), Function::HashFnv1a),
    ("hash_murmur2", Arity::Seeded(1), Function::HashMurmur2),
    ("int", Arity::Exactly(1), Function::Int),
    ("least", Arity::AtLeastOne, Function::Least),
    ("ln", Arity::Exactly(1), Function::Ln),
    ("mod", Arity::Exactly(2), Function::Modulo),
    ("permute", Arity::Seeded(2), Function::Permute),
    ("pi", Arity::Exactly(0), Function::Pi),
    ("pow", Arity::Exactly(2), Function::Power),
    ("power", Arity::Exactly(2), Function::Power),
    ("random", Arity::Exactly(2), Function::Random),
    ("random_exponential", Arity::Exactly(3), Function::RandomExponential),
    ("random_gaussian", Arity::Exactly(3), Function::RandomGaussian),
    ("random_zipfian", Arity::Exactly(3), Function::RandomZipfian),
    ("sqrt", Arity::Exactly(1), Function::Sqrt),
];

/// The function of a name, in upper or lower case: the name as it is spelled in messages, and what it takes.
pub fn find(name: &str) -> Option<(&'static str, Arity, Function)> {
    NAMED.into_iter().find(|(known, ..)| known.eq_ignore_ascii_case(name))
}

impl Function {
    /// Whether the result depends on nothing but the arguments and nothing is said.
    pub fn is_pure(self) -> bool {
        !self.draws() && self != Function::Debug
    }

    /// Whether the generator is used.
    pub fn draws(self) -> bool {
        use Function::{Random, RandomExponential, RandomGaussian, RandomZipfian};
        matches!(self, Random | RandomExponential | RandomGaussian | RandomZipfian)
    }

    /// Whether NULL is an argument like others; elsewhere it makes the result NULL.
    pub fn takes_null(self) -> bool {
        matches!(self, Function::Is | Function::Debug)
    }

    /// The value for arguments, as many as the function takes; none is NULL unless the function takes NULL.
    pub fn apply(self, arguments: &[Scalar], random: &mut Random) -> Evaluated {
        use Function as F;
        match (self, arguments) {
            (F::Pi, _) => Ok(Scalar::Double(std::f64::consts::PI)),
            (F::Least | F::Greatest, [_, ..]) => self.extreme(arguments),
            (_, [only]) => self.unary(*only),
            (F::Random, [low, high]) => {
                let (low, high) = range(*low, *high)?;
                Ok(Scalar::Int(random.range(low, high)))
            }
            (F::Permute, [value, size, seed]) => {
                let (value, size, seed) = (value.int()?, size.int()?, seed.int()?);
                if size <= 0 {
                    return Err(EvaluationError::new("permute size parameter must be greater than zero"));
                }
                Ok(Scalar::Int(permute(value, size, seed)))
            }
            (_, [low, high, parameter]) => self.skewed(*low, *high, *parameter, random),
            (_, [left, right]) => self.binary(*left, *right),
            _ => Err(EvaluationError::silent()),
        }
    }

    fn unary(self, argument: Scalar) -> Evaluated {
        Ok(match self {
            Function::Abs => match argument {
                Scalar::Int(number) => Scalar::Int(number.wrapping_abs()),
                Scalar::Double(number) => Scalar::Double(if number < 0.0 { -number } else { number }),
                // pgbench takes the bits of a boolean for those of a double.
                other => Scalar::Double(f64::from_bits(u64::from(other.truth()))),
            },
            Function::Not => Scalar::Bool(!argument.bool()?),
            Function::Int => Scalar::Int(argument.int()?),
            Function::Double => Scalar::Double(argument.double()?),
            Function::Sqrt => Scalar::Double(argument.double()?.sqrt()),
            Function::Ln => Scalar::Double(argument.double()?.ln()),
            Function::Exp => Scalar::Double(argument.double()?.exp()),
            _ => argument,
        })
    }

    /// Functions and operators of two values. Arithmetic and comparisons are done in doubles if one is a double.
    #[inline]
    pub fn binary(self, left: Scalar, right: Scalar) -> Evaluated {
        use Function as F;
        match self {
            F::Add | F::Subtract | F::Multiply | F::Divide | F::Equal | F::NotEqual | F::LessOrEqual | F::Less => {
                if matches!(left, Scalar::Double(_)) || matches!(right, Scalar::Double(_)) {
                    Ok(self.of_doubles(left.double()?, right.double()?))
                } else {
                    self.of_ints(left.int()?, right.int()?)
                }
            }
            F::Is => Ok(Scalar::Bool(left.is(right))),
            F::Power => Ok(Scalar::Double(left.double()?.powf(right.double()?))),
            _ => self.of_ints(left.int()?, right.int()?),
        }
    }

    fn of_doubles(self, left: f64, right: f64) -> Scalar {
        match self {
            Function::Add => Scalar::Double(left + right),
            Function::Subtract => Scalar::Double(left - right),
            Function::Multiply => Scalar::Double(left * right),
            Function::Divide => Scalar::Double(left / right),
            Function::Equal => Scalar::Bool(left == right),
            Function::NotEqual => Scalar::Bool(left != right),
            Function::LessOrEqual => Scalar::Bool(left <= right),
            _ => Scalar::Bool(left < right),
        }
    }

    #[inline]
    fn of_ints(self, left: i64, right: i64) -> Evaluated {
        let checked = |result: Option<i64>, name: &str| {
            result.map(Scalar::Int).ok_or_else(|| EvaluationError::new(format!("bigint {name} out of range")))
        };
        match self {
            Function::Add => checked(left.checked_add(right), "add"),
            Function::Subtract => checked(left.checked_sub(right), "sub"),
            Function::Multiply => checked(left.checked_mul(right), "mul"),
            Function::Divide | Function::Modulo if right == 0 => Err(EvaluationError::new("division by zero")),
            Function::Divide => checked(left.checked_div(right), "div"),
            Function::Modulo => Ok(Scalar::Int(left.wrapping_rem(right))),
            Function::Equal => Ok(Scalar::Bool(left == right)),
            Function::NotEqual => Ok(Scalar::Bool(left != right)),
            Function::LessOrEqual => Ok(Scalar::Bool(left <= right)),
            Function::Less => Ok(Scalar::Bool(left < right)),
            Function::BitAnd => Ok(Scalar::Int(left & right)),
            Function::BitOr => Ok(Scalar::Int(left | right)),
            Function::BitXor => Ok(Scalar::Int(left ^ right)),
            // Only the low six bits of the distance count, as on the machines that pgbench runs on.
            Function::ShiftLeft => Ok(Scalar::Int(left.wrapping_shl(right as u32))),
            Function::ShiftRight => Ok(Scalar::Int(left.wrapping_shr(right as u32))),
            Function::HashFnv1a => Ok(Scalar::Int(hashes::fnv1a(left, right))),
            Function::HashMurmur2 => Ok(Scalar::Int(hashes::murmur2(left, right))),
            _ => Err(EvaluationError::silent()),
        }
    }

    /// The least or the greatest; a double if one argument is.
    fn extreme(self, arguments: &[Scalar]) -> Evaluated {
        let least = self == Function::Least;
        if arguments.iter().any(|argument| matches!(argument, Scalar::Double(_))) {
            let mut extreme = arguments[0].double()?;
            for argument in &arguments[1..] {
                let number = argument.double()?;
                let keep = if least { extreme < number } else { extreme > number };
                extreme = if keep { extreme } else { number };
            }
            return Ok(Scalar::Double(extreme));
        }
        let mut extreme = arguments[0].int()?;
        for argument in &arguments[1..] {
            let number = argument.int()?;
            extreme = if least { extreme.min(number) } else { extreme.max(number) };
        }
        Ok(Scalar::Int(extreme))
    }

    fn skewed(self, low: Scalar, high: Scalar, parameter: Scalar, random: &mut Random) -> Evaluated {
        let (low, high) = range(low, high)?;
        let parameter = parameter.double()?;
        let refuse = |sentence: String| Err(EvaluationError::new(sentence));
        Ok(Scalar::Int(match self {
            Function::RandomGaussian if parameter < MIN_GAUSSIAN_PARAMETER => {
                let least = fixed(MIN_GAUSSIAN_PARAMETER);
                return refuse(format!("gaussian parameter must be at least {least} (not {})", fixed(parameter)));
            }
            Function::RandomGaussian => random.gaussian(low, high, parameter),
            // What is no number is refused too: pgbench never comes to an end with it.
            Function::RandomZipfian if !(MIN_ZIPFIAN_PARAMETER..=MAX_ZIPFIAN_PARAMETER).contains(&parameter) => {
                return refuse(format!(
                    "zipfian parameter must be in range [{MIN_ZIPFIAN_PARAMETER:.3}, {MAX_ZIPFIAN_PARAMETER:.0}] (not {})",
                    fixed(parameter)
                ));
            }
            Function::RandomZipfian => random.zipfian(low, high, parameter),
            _ if parameter <= 0.0 => {
                return refuse(format!("exponential parameter must be greater than zero (not {})", fixed(parameter)));
            }
            _ => random.exponential(low, high, parameter),
        }))
    }
}

/// The range of a draw; its size fits in 63 bits.
fn range(low: Scalar, high: Scalar) -> Evaluated<(i64, i64)> {
    let (low, high) = (low.int()?, high.int()?);
    if low > high {
        return Err(EvaluationError::new("empty range given to random"));
    }
    match high.checked_sub(low).and_then(|difference| difference.checked_add(1)) {
        Some(_) => Ok((low, high)),
        None => Err(EvaluationError::new("random range is too large")),
    }
}
