//! Values of a client's variables, and how they are written into statements.

use std::io::Write;

use crate::int_field::write_int;

/// A variable's value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// No command has given it a value yet.
    #[default]
    Unset,
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    /// From outside: the command line, a shell command or a row; typed when an expression uses it.
    Text(Box<[u8]>),
}

impl Value {
    /// Appends the text form, as pgbench substitutes it into a statement; nothing for `Unset`.
    #[inline]
    pub fn write_text(&self, out: &mut Vec<u8>) {
        match self {
            Value::Unset => {}
            Value::Null => out.extend_from_slice(b"NULL"),
            Value::Bool(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
            Value::Int(number) => write_int(*number, out),
            Value::Double(number) => write_double(*number, out),
            Value::Text(text) => out.extend_from_slice(text),
        }
    }

    /// Takes a text over, into the room of the former one if it has the same length.
    pub fn set_text(&mut self, text: &[u8]) {
        match self {
            Value::Text(old) if old.len() == text.len() => old.copy_from_slice(text),
            _ => *self = Value::Text(text.into()),
        }
    }
}

/// Significant digits of a double's text, C's `DBL_DIG`.
const DIGITS: usize = 15;

/// Room for a sign, the digits with their point, and an exponent.
const SCIENTIFIC: usize = DIGITS + 8;

/// Appends a double as PostgreSQL's `printf("%.15g")` writes it: at most 15 significant digits without trailing zeros,
/// with an exponent of at least two digits where that is below -4 or above 14.
pub fn write_double(number: f64, out: &mut Vec<u8>) {
    if !number.is_finite() {
        return out.extend_from_slice(not_finite(number).as_bytes());
    }
    let mut text = [0u8; SCIENTIFIC];
    let mut left = &mut text[..];
    if write!(left, "{number:.*e}", DIGITS - 1).is_err() {
        return;
    }
    let length = SCIENTIFIC - left.len();
    let text = &text[..length];
    let Some(e) = text.iter().position(|c| *c == b'e') else { return };
    let (negative, exponent) = decimal_exponent(&text[e + 1..]);
    let mantissa = match text[..e].strip_prefix(b"-") {
        Some(rest) => {
            out.push(b'-');
            rest
        }
        None => &text[..e],
    };
    // The first digit, then those after the point.
    let mut digits = [b'0'; DIGITS];
    for (digit, c) in digits.iter_mut().zip(mantissa.iter().filter(|c| c.is_ascii_digit())) {
        *digit = *c;
    }
    let significant = digits.iter().rposition(|c| *c != b'0').map_or(1, |last| last + 1);
    let digits = &digits[..significant];
    if negative && exponent > 4 || !negative && exponent >= DIGITS {
        write_mantissa(digits, 1, out);
        out.extend_from_slice(if negative { b"e-" } else { b"e+" });
        if exponent < 10 {
            out.push(b'0');
        }
        write_int(exponent as i64, out);
    } else if negative {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + exponent - 1, b'0');
        out.extend_from_slice(digits);
    } else {
        write_mantissa(digits, exponent + 1, out);
    }
}

/// Whether an exponent is negative, and its size.
fn decimal_exponent(text: &[u8]) -> (bool, usize) {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    (negative, digits.iter().fold(0, |sum, c| sum * 10 + usize::from(c - b'0')))
}

/// Digits with the point after the first `whole`; there are zeros before the point where digits are missing.
fn write_mantissa(digits: &[u8], whole: usize, out: &mut Vec<u8>) {
    if digits.len() <= whole {
        out.extend_from_slice(digits);
        out.resize(out.len() + whole - digits.len(), b'0');
    } else {
        out.extend_from_slice(&digits[..whole]);
        out.push(b'.');
        out.extend_from_slice(&digits[whole..]);
    }
}

/// A double as PostgreSQL's `printf("%f")` writes it.
pub fn fixed(number: f64) -> String {
    if number.is_finite() { format!("{number:.6}") } else { not_finite(number).to_owned() }
}

fn not_finite(number: f64) -> &'static str {
    match (number.is_nan(), number > 0.0) {
        (true, _) => "NaN",
        (false, true) => "Infinity",
        (false, false) => "-Infinity",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: Value) -> String {
        let mut out = Vec::new();
        value.write_text(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers_are_written_as_the_formatter_writes_them() {
        for number in [0, 7, -1, 10, 99, 100, -5000, i64::MAX, i64::MIN] {
            assert_eq!(text(Value::Int(number)), number.to_string());
        }
    }

    /// The expected texts are those of `printf '%.15g'` of the C library.
    #[test]
    fn doubles_are_written_with_fifteen_significant_digits() {
        for (number, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (0.1 + 0.2, "0.3"),
            (1.0 / 3.0, "0.333333333333333"),
            (2.0 / 3.0, "0.666666666666667"),
            (100.0, "100"),
            (123456789012345.0, "123456789012345"),
            (999999999999999.0, "999999999999999"),
            (999999999999999.5, "1e+15"),
            (1e15, "1e+15"),
            (1.5e15, "1.5e+15"),
            (1e100, "1e+100"),
            (0.0001, "0.0001"),
            (0.00012345, "0.00012345"),
            (0.00001, "1e-05"),
            (1.25e-7, "1.25e-07"),
            (-1.25e-123, "-1.25e-123"),
            (f64::MAX, "1.79769313486232e+308"),
            (f64::MIN_POSITIVE, "2.2250738585072e-308"),
            (5e-324, "4.94065645841247e-324"),
            (std::f64::consts::PI, "3.14159265358979"),
            (9007199254740993.0, "9.00719925474099e+15"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(text(Value::Double(number)), expected);
        }
    }

    #[test]
    fn a_text_of_the_same_length_takes_the_room_of_the_former_one() {
        let mut value = Value::Text((*b"abc").into());
        let Value::Text(room) = &value else { unreachable!() };
        let room = room.as_ptr();
        value.set_text(b"xyz");
        assert!(matches!(&value, Value::Text(text) if **text == *b"xyz" && text.as_ptr() == room));
        value.set_text(b"longer");
        assert_eq!(text(value), "longer");
    }

    #[test]
    fn other_values_have_sqls_words() {
        assert_eq!(text(Value::Null), "NULL");
        assert_eq!(text(Value::Bool(true)), "true");
        assert_eq!(text(Value::Bool(false)), "false");
        assert_eq!(text(Value::Unset), "");
    }

    #[test]
    fn fixed_notation_has_six_decimals() {
        assert_eq!(fixed(1e19), "10000000000000000000.000000");
        assert_eq!(fixed(-0.5), "-0.500000");
        assert_eq!(fixed(f64::NAN), "NaN");
    }
}
