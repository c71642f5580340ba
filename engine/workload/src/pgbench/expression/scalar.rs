//! Typed values in expressions, and the conversions between their types.

use ground::c_numbers;
use ground::c_numbers::NumberError;
use wire::value::{Value, fixed};

/// A value in an expression, with its type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
}

/// An error in the evaluation of an expression, with pgbench's message. The message is `None` where pgbench prints
/// none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluationError(Box<Option<String>>);

impl EvaluationError {
    /// Makes an error with a message.
    #[cold]
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(Box::new(Some(sentence.into())))
    }

    /// Makes an error for which pgbench prints no message.
    #[cold]
    pub fn silent() -> Self {
        Self(Box::new(None))
    }

    /// Returns the message, if there is one.
    pub fn into_sentence(self) -> Option<String> {
        *self.0
    }
}

/// The result of an evaluation. A success allocates no memory.
pub type Evaluated<T = Scalar> = Result<T, EvaluationError>;

impl Scalar {
    /// Returns the value as an integer. Doubles are rounded to the nearest integer, and halves to the nearest even one.
    /// Fails for other types.
    #[inline]
    pub fn int(self) -> Evaluated<i64> {
        match self {
            Scalar::Int(number) => Ok(number),
            Scalar::Double(number) => {
                let rounded = number.round_ties_even();
                let fits = rounded >= i64::MIN as f64 && rounded < -(i64::MIN as f64);
                if fits {
                    Ok(rounded as i64)
                } else {
                    Err(EvaluationError::new(format!("double to int overflow for {}", fixed(rounded))))
                }
            }
            _ => Err(self.no("int")),
        }
    }

    /// Returns the value as a double.
    #[inline]
    pub fn double(self) -> Evaluated<f64> {
        match self {
            Scalar::Double(number) => Ok(number),
            Scalar::Int(number) => Ok(number as f64),
            _ => Err(self.no("double")),
        }
    }

    /// Returns the value of a boolean. Fails for numbers.
    #[inline]
    pub fn bool(self) -> Evaluated<bool> {
        match self {
            Scalar::Bool(truth) => Ok(truth),
            _ => Err(self.no("boolean")),
        }
    }

    /// Returns the value as the truth of a condition: numbers other than zero are true, and NULL is false.
    #[inline]
    pub fn truth(self) -> bool {
        match self {
            Scalar::Null => false,
            Scalar::Bool(truth) => truth,
            Scalar::Int(number) => number != 0,
            Scalar::Double(number) => number != 0.0,
        }
    }

    /// True if two values are both NULL, or both the same boolean.
    pub fn is(self, other: Scalar) -> bool {
        match (self, other) {
            (Scalar::Null, Scalar::Null) => true,
            (Scalar::Bool(a), Scalar::Bool(b)) => a == b,
            _ => false,
        }
    }

    #[cold]
    fn no(self, wanted: &str) -> EvaluationError {
        let name = match self {
            Scalar::Null => "null",
            Scalar::Bool(_) => "boolean",
            Scalar::Int(_) => "int",
            Scalar::Double(_) => "double",
        };
        EvaluationError::new(format!("cannot coerce {name} to {wanted}"))
    }
}

impl From<Scalar> for Value {
    #[inline]
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Null => Value::Null,
            Scalar::Bool(truth) => Value::Bool(truth),
            Scalar::Int(number) => Value::Int(number),
            Scalar::Double(number) => Value::Double(number),
        }
    }
}

/// Returns the value of the variable `name`. The type of the value is determined from its text.
#[inline]
pub fn of_variable(value: &Value, name: impl Fn() -> String) -> Evaluated {
    match value {
        Value::Int(number) => Ok(Scalar::Int(*number)),
        Value::Double(number) => Ok(Scalar::Double(*number)),
        Value::Bool(truth) => Ok(Scalar::Bool(*truth)),
        Value::Null => Ok(Scalar::Null),
        Value::Text(text) => of_text(text, name),
        Value::Unset => Err(EvaluationError::new(format!("undefined variable \"{}\"", name()))),
    }
}

/// Parses a text as NULL, a boolean (`true`, `yes`, `false`, `no` or a beginning of one of these words, `on`, `off` or
/// `of`), an integer or a double.
fn of_text(text: &[u8], name: impl Fn() -> String) -> Evaluated {
    let is = |word: &str| text.eq_ignore_ascii_case(word.as_bytes());
    let begins =
        |word: &str| word.get(..text.len()).is_some_and(|beginning| text.eq_ignore_ascii_case(beginning.as_bytes()));
    let shown = || ground::text::of(text);
    if text.is_empty() {
        return Err(EvaluationError::silent());
    }
    if is("null") {
        return Ok(Scalar::Null);
    }
    if begins("true") || begins("yes") || is("on") {
        return Ok(Scalar::Bool(true));
    }
    if begins("false") || begins("no") || is("off") || is("of") {
        return Ok(Scalar::Bool(false));
    }
    if looks_like_int(text) {
        return c_numbers::integer(text).map(Scalar::Int).map_err(|error| {
            EvaluationError::new(match error {
                NumberError::Range => format!("value \"{}\" is out of range for type bigint", shown()),
                NumberError::Syntax => format!("invalid input syntax for type bigint: \"{}\"", shown()),
            })
        });
    }
    c_numbers::double(text)
        .map(Scalar::Double)
        .map_err(|_| EvaluationError::new(format!("malformed variable \"{}\" value: \"{}\"", name(), shown())))
}

/// True if a text consists of white space, a sign and digits, of which any may be missing, as in pgbench.
fn looks_like_int(text: &[u8]) -> bool {
    let text = c_numbers::trim_start(text);
    let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    digits.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Result<Scalar, Option<String>> {
        of_variable(&Value::Text(text.as_bytes().into()), || "v".to_owned()).map_err(EvaluationError::into_sentence)
    }

    #[test]
    fn texts_get_their_types_when_they_are_used() {
        for text in ["t", "TRUE", "y", "Yes", "on"] {
            assert_eq!(typed(text), Ok(Scalar::Bool(true)), "{text}");
        }
        for text in ["f", "fal", "n", "NO", "off", "of"] {
            assert_eq!(typed(text), Ok(Scalar::Bool(false)), "{text}");
        }
        assert_eq!(typed("Null"), Ok(Scalar::Null));
        assert_eq!(typed(" -7"), Ok(Scalar::Int(-7)));
        assert_eq!(typed("1e2"), Ok(Scalar::Double(100.0)));
        assert_eq!(typed(".5"), Ok(Scalar::Double(0.5)));
    }

    #[test]
    fn bad_texts_are_refused_in_pgbenchs_words() {
        let refused = |text: &str| typed(text).unwrap_err();
        assert_eq!(refused(""), None);
        assert_eq!(refused("o").unwrap(), "malformed variable \"v\" value: \"o\"");
        assert_eq!(refused("1 ").unwrap(), "malformed variable \"v\" value: \"1 \"");
        assert_eq!(refused("1e999").unwrap(), "malformed variable \"v\" value: \"1e999\"");
        assert_eq!(refused("-").unwrap(), "invalid input syntax for type bigint: \"-\"");
        let large = "9223372036854775808";
        assert_eq!(refused(large).unwrap(), format!("value \"{large}\" is out of range for type bigint"));
    }

    #[test]
    fn doubles_become_integers_by_rounding_to_even() {
        for (double, int) in [(0.5, 0), (1.5, 2), (-2.5, -2), (-9223372036854775808.0, i64::MIN)] {
            assert_eq!(Scalar::Double(double).int(), Ok(int));
        }
        for (double, shown) in [(9223372036854775808.0, "9223372036854775808.000000"), (f64::NAN, "NaN")] {
            let error = Scalar::Double(double).int().unwrap_err().into_sentence().unwrap();
            assert_eq!(error, format!("double to int overflow for {shown}"));
        }
    }

    #[test]
    fn other_types_do_not_mix() {
        let sentence = |error: EvaluationError| error.into_sentence().unwrap();
        assert_eq!(sentence(Scalar::Int(1).bool().unwrap_err()), "cannot coerce int to boolean");
        assert_eq!(sentence(Scalar::Bool(true).int().unwrap_err()), "cannot coerce boolean to int");
        assert_eq!(sentence(Scalar::Null.double().unwrap_err()), "cannot coerce null to double");
        assert_eq!(sentence(Scalar::Double(1.0).bool().unwrap_err()), "cannot coerce double to boolean");
    }
}
