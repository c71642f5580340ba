//! Values of a client's variables, and how they are written into statements.

use std::io::Write;
use std::ops::RangeInclusive;

/// The value of a variable.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// No command has given the variable a value yet.
    #[default]
    Unset,
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    /// The value comes from outside: from the command line, a shell command or a row. Its type is determined when an
    /// expression uses it.
    Text(Box<[u8]>),
}

impl Value {
    /// Appends the text form of the value, as pgbench inserts it into a statement. Appends nothing for `Unset`.
    #[inline]
    pub fn write_text(&self, out: &mut Vec<u8>) {
        match self {
            Value::Unset => {}
            Value::Null => out.extend_from_slice(b"NULL"),
            Value::Bool(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
            Value::Int(number) => out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes()),
            Value::Double(number) => write_double(*number, out),
            Value::Text(text) => out.extend_from_slice(text),
        }
    }

    /// Sets the value to a text. If the old value was a text of the same length, its memory is reused.
    pub fn set_text(&mut self, text: &[u8]) {
        match self {
            Value::Text(old) if old.len() == text.len() => old.copy_from_slice(text),
            _ => *self = Value::Text(text.into()),
        }
    }
}

/// Appends a value as a parameter of Bind: the length of the text in four bytes, then the text. [`Value::Unset`] is
/// sent as NULL, which has the length -1 and no text; [`Value::Null`] is sent as the text `NULL`.
pub fn write_parameter(value: &Value, out: &mut Vec<u8>) {
    match (short_parameter(value), value) {
        (Some((field, length)), _) => out.extend_from_slice(&field[..length]),
        (None, Value::Unset) => out.extend_from_slice(&(-1i32).to_be_bytes()),
        (None, other) => write_long_parameter(other, out),
    }
}

/// The maximum length of the parameters that [`short_parameter`] returns, in bytes.
pub const SHORT_PARAMETER: usize = 12;

/// Returns the encoded Bind parameter of a number of at most eight characters, and its length in bytes. Returns `None`
/// for any other value.
#[inline(always)]
pub fn short_parameter(value: &Value) -> Option<([u8; SHORT_PARAMETER], usize)> {
    let Value::Int(number) = value else { return None };
    if !SHORT.contains(number) {
        return None;
    }
    let (digits, length) = eight_bytes(*number);
    let mut field = [0; SHORT_PARAMETER];
    field[..4].copy_from_slice(&length.to_be_bytes());
    field[4..].copy_from_slice(&digits.to_le_bytes());
    Some((field, 4 + length as usize))
}

#[inline(never)]
fn write_long_parameter(value: &Value, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    value.write_text(out);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// The numbers whose text has at most eight bytes, including the sign.
const SHORT: RangeInclusive<i64> = -9_999_999..=99_999_999;

/// Returns the text of a short number as the bytes of one word, with the first character in the lowest byte, and the
/// number of its characters.
#[inline(always)]
fn eight_bytes(number: i64) -> (u64, u32) {
    let (digits, length) = eight_digits(number.unsigned_abs() as u32);
    if number < 0 { (digits << 8 | u64::from(b'-'), length + 1) } else { (digits, length) }
}

/// Returns the digits of a number below 10^8, with the first digit in the lowest byte, and the number of digits.
/// Halves, pairs and then single digits are divided side by side in one word, and leading zeros are shifted out.
#[inline(always)]
fn eight_digits(number: u32) -> (u64, u32) {
    const ZEROS: u64 = u64::from_le_bytes(*b"00000000");
    let number = u64::from(number);
    // Two numbers below 10^4 in 32 bits each. `n * 109951163 >> 40` is n / 10^4, and `n * 10486 >> 20` is n / 100 for
    // all of them.
    let high = (number * 109_951_163) >> 40;
    let fours = high | (number - high * 10_000) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    // Four numbers below 10^2 in 16 bits each. `n * 103 >> 10` is n / 10 for all of them.
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let digits = tens | (twos - tens * 10) << 8;
    // The last digit is kept even if it is zero.
    let zeros = (digits | 1 << 63).trailing_zeros() & !7;
    ((digits | ZEROS) >> zeros, 8 - zeros / 8)
}

/// The number of significant digits in the text of a double, as in C's `DBL_DIG`.
const DIGITS: usize = 15;

/// The maximum number of bytes for a sign, the digits with their point, and an exponent.
const SCIENTIFIC: usize = DIGITS + 8;

/// Appends a double as PostgreSQL's `printf("%.15g")` writes it: with at most 15 significant digits and without
/// trailing zeros. If the exponent is below -4 or above 14, the number is written with an exponent of at least two
/// digits.
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
    // The first digit of the number, then the digits after the point.
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
        out.extend_from_slice(itoa::Buffer::new().format(exponent).as_bytes());
    } else if negative {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + exponent - 1, b'0');
        out.extend_from_slice(digits);
    } else {
        write_mantissa(digits, exponent + 1, out);
    }
}

/// Returns true if an exponent is negative, and its absolute value.
fn decimal_exponent(text: &[u8]) -> (bool, usize) {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    (negative, digits.iter().fold(0, |sum, c| sum * 10 + usize::from(c - b'0')))
}

/// Writes the digits with the point after the first `whole` digits. If there are fewer digits than that, zeros follow
/// before the point.
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

/// Returns a double as PostgreSQL's `printf("%f")` writes it.
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
    use proptest::prelude::*;

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

    /// Compares the texts of doubles with those of the C library's `printf '%.15g'`.
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

    fn check(number: i64) {
        let text = number.to_string();
        let (mut parameter, mut digits) = (Vec::new(), Vec::new());
        write_parameter(&Value::Int(number), &mut parameter);
        Value::Int(number).write_text(&mut digits);
        assert_eq!(digits, text.as_bytes());
        assert_eq!(parameter, [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat());
    }

    #[test]
    fn the_edges_are_written_as_the_formatter_writes_them() {
        for power in 0..19 {
            let number = 10i64.pow(power);
            [number - 1, number, number + 1, -number].into_iter().for_each(check);
        }
        [i64::MIN, i64::MAX, i64::from(u32::MAX), i64::from(u32::MAX) + 1].into_iter().for_each(check);
    }

    proptest! {
        #[test]
        fn any_number_is_written_as_the_formatter_writes_it(number: i64, shift in 0u32..64) {
            check(number >> shift);
        }
    }
}
