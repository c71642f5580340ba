//! Reads numbers in text as the C library reads them: `strtol`, `strtod`, `atoi`, `atof`, `sscanf`. These functions
//! determine which values pgbench and sysbench accept.

/// The reason for which a text is not a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberError {
    Syntax,
    Range,
}

/// Reads a whole text as an integer, as `strtoll` does: white space and a sign may come before the digits.
pub fn integer(text: &[u8]) -> Result<i64, NumberError> {
    let (value, rest) = leading_integer(text);
    match value {
        Some(value) if rest.is_empty() => i64::try_from(value).map_err(|_| NumberError::Range),
        _ => Err(NumberError::Syntax),
    }
}

/// Reads the integer at the beginning of a text, as `strtol` does, and returns it with the rest of the text. An integer
/// that does not fit becomes the nearest one that fits.
pub fn integer_prefix(text: &[u8]) -> (Option<i64>, &[u8]) {
    let (value, rest) = leading_integer(text);
    (value.map(|value| value.clamp(i64::MIN.into(), i64::MAX.into()) as i64), rest)
}

/// Reads the integer at the beginning of a text, as `atoi` does: only its low 32 bits are returned, and 0 if there is
/// no integer.
pub fn atoi(text: &[u8]) -> i32 {
    integer_prefix(text).0.unwrap_or(0) as i32
}

/// Reads the number at the beginning of a text, as `atof` does. It accepts all notations of [`double`], and returns 0
/// if there is no number.
pub fn atof(text: &str) -> f64 {
    let text = trim_start(text.as_bytes());
    let letters = text.iter().take_while(|c| c.is_ascii_alphanumeric() || b"+-._()".contains(c)).count();
    let mut numbers = (1..=letters).rev().filter_map(|end| match double(&text[..end]) {
        Ok(number) => Some(number),
        Err(NumberError::Range) => Some(out_of_range(&text[..end])),
        Err(NumberError::Syntax) => None,
    });
    numbers.next().unwrap_or(0.0)
}

/// Returns the double that is nearest to a number which is out of range.
fn out_of_range(text: &[u8]) -> f64 {
    let infinity = if text.starts_with(b"-") { f64::NEG_INFINITY } else { f64::INFINITY };
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(infinity)
}

/// Reads a whole text as `sscanf` does with `%lu`: after a minus sign the value wraps around, and a number that does
/// not fit becomes the largest one.
pub fn unsigned(text: &str) -> Option<u64> {
    let (value, rest) = leading_integer(text.as_bytes());
    let value = value.filter(|_| rest.is_empty())?;
    Some(if value.unsigned_abs() > u64::MAX.into() { u64::MAX } else { value as u64 })
}

/// Reads a size in bytes as sysbench does: digits, and at most one of the letters K, M, G and T in either case, which
/// stand for powers of 1024.
pub fn size(text: &str) -> Option<i64> {
    let letter = text.chars().last()?;
    let shift = match letter.to_ascii_uppercase() {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        'T' => 40,
        _ => 0,
    };
    let digits = if shift == 0 { text } else { &text[..text.len() - 1] };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<i64>().ok()?.checked_mul(1 << shift)
}

/// Reads the integer at the beginning of a text, and returns it with the rest of the text. Beyond 64 bits only its sign
/// is exact.
fn leading_integer(text: &[u8]) -> (Option<i128>, &[u8]) {
    let (negative, digits) = sign(trim_start(text));
    let length = digits.iter().take_while(|c| c.is_ascii_digit()).count();
    if length == 0 {
        return (None, text);
    }
    let size = digits[..length].iter().fold(0i128, |sum, c| {
        let sum = sum * 10 + i128::from(c - b'0');
        sum.min(1 << 64)
    });
    (Some(if negative { -size } else { size }), &digits[length..])
}

/// Reads a whole text as a double, as `strtod` does: decimal, hexadecimal, `inf` or `nan`. A number is out of range if
/// it overflows. A decimal number is also out of range if it is not 0 and below the smallest normal number.
pub fn double(text: &[u8]) -> Result<f64, NumberError> {
    let (negative, rest) = sign(trim_start(text));
    let is = |word: &str| rest.eq_ignore_ascii_case(word.as_bytes());
    let size = if is("inf") || is("infinity") {
        f64::INFINITY
    } else if is("nan") || is_tagged_nan(rest) {
        f64::NAN
    } else if rest.len() > 2 && rest[..2].eq_ignore_ascii_case(b"0x") {
        hexadecimal(&rest[2..])?
    } else {
        decimal(rest)?
    };
    Ok(if negative { -size } else { size })
}

/// Returns true if the text is `nan(TAG)`, with any tag.
fn is_tagged_nan(text: &[u8]) -> bool {
    let (Some((word, tag)), Some(b')')) = (text.split_at_checked(4), text.last()) else { return false };
    word.eq_ignore_ascii_case(b"nan(") && tag[..tag.len() - 1].iter().all(|c| c.is_ascii_alphanumeric() || *c == b'_')
}

fn decimal(text: &[u8]) -> Result<f64, NumberError> {
    let plain = |c: &u8| c.is_ascii_digit() || matches!(c, b'.' | b'e' | b'E' | b'+' | b'-');
    if matches!(text.first(), Some(b'+' | b'-')) || !text.iter().all(plain) {
        return Err(NumberError::Syntax);
    }
    let text = std::str::from_utf8(text).map_err(|_| NumberError::Syntax)?;
    let value: f64 = text.parse().map_err(|_| NumberError::Syntax)?;
    let mantissa = text.split(['e', 'E']).next().unwrap_or("");
    let is_zero = !mantissa.bytes().any(|c| matches!(c, b'1'..=b'9'));
    if value.is_normal() || is_zero { Ok(value) } else { Err(NumberError::Range) }
}

/// Reads the text after `0x`: hexadecimal digits, which may have a point, and a binary exponent.
fn hexadecimal(text: &[u8]) -> Result<f64, NumberError> {
    let mut parts = text.splitn(2, |c| c.eq_ignore_ascii_case(&b'p'));
    let mantissa = parts.next().unwrap_or(b"");
    let exponent = match parts.next() {
        None => 0,
        Some(digits) if digits.first().is_some_and(|c| c.is_ascii_whitespace()) => return Err(NumberError::Syntax),
        Some(digits) => integer(digits)?.clamp(-5000, 5000) as i32,
    };
    let (mut value, mut scale, mut digits, mut point) = (0f64, exponent, 0, false);
    for c in mantissa {
        match (*c as char).to_digit(16) {
            Some(digit) => {
                value = value * 16.0 + f64::from(digit);
                digits += 1;
                scale -= if point { 4 } else { 0 };
            }
            None if *c == b'.' && !point => point = true,
            None => return Err(NumberError::Syntax),
        }
    }
    if digits == 0 {
        return Err(NumberError::Syntax);
    }
    // The number is scaled in two steps, since the whole scale may be too large for a double.
    let value = value * 2f64.powi(scale / 2) * 2f64.powi(scale - scale / 2);
    if value.is_finite() { Ok(value) } else { Err(NumberError::Range) }
}

fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    }
}

/// Returns true if C's `isspace` counts this byte as white space.
pub fn is_space(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Returns the text without the white space at its beginning.
pub fn trim_start(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|c| is_space(**c)).count();
    &text[spaces..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_a_sign_and_leading_space_but_nothing_behind() {
        assert_eq!(integer(b" \t-42"), Ok(-42));
        assert_eq!(integer(b"+9223372036854775807"), Ok(i64::MAX));
        assert_eq!(integer(b"-9223372036854775808"), Ok(i64::MIN));
        assert_eq!(integer(b"9223372036854775808"), Err(NumberError::Range));
        assert_eq!(integer(b"99999999999999999999999999999999999999999999"), Err(NumberError::Range));
        for text in ["", "-", "1 ", "1.0", "x", "- 1"] {
            assert_eq!(integer(text.as_bytes()), Err(NumberError::Syntax), "{text}");
        }
    }

    #[test]
    fn a_leading_integer_leaves_the_rest() {
        assert_eq!(integer_prefix(b"12 \n"), (Some(12), &b" \n"[..]));
        assert_eq!(integer_prefix(b"abc"), (None, &b"abc"[..]));
        assert_eq!(atoi(b"10ms"), 10);
        assert_eq!(atoi(b"4294967297"), 1);
        assert_eq!(atoi(b"99999999999999999999"), -1);
        assert_eq!(atoi(b""), 0);
    }

    #[test]
    fn beginnings_of_numbers_are_numbers_as_in_c() {
        for (text, number) in [
            ("2.5ms", 2.5),
            (" \t1e2x", 100.0),
            ("-3", -3.0),
            ("x", 0.0),
            ("", 0.0),
            (".5.5", 0.5),
            ("1,5", 1.0),
            ("1e", 1.0),
            ("0x", 0.0),
            ("0x400", 1024.0),
            ("0x.8p1q", 1.0),
            ("+0X1.8", 1.5),
            ("infx", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("1e400x", f64::INFINITY),
            ("-1e400", f64::NEG_INFINITY),
            ("0x1p2000", f64::INFINITY),
            ("1e-400", 0.0),
            ("5e-324", 5e-324),
            ("\u{a0}5", 0.0),
        ] {
            assert_eq!(atof(text), number, "{text}");
        }
        assert!(["nan", "nan(1)z", "-nan", "nan("].into_iter().all(|text| atof(text).is_nan()));
        for (text, number) in [("7x", 7), (" -3", -3), ("x", 0), ("", 0), ("-", 0), ("4294967297", 1), ("+2", 2)] {
            assert_eq!(atoi(text.as_bytes()), number, "{text}");
        }
    }

    #[test]
    fn seeds_are_scanned_as_c_scans_them() {
        assert_eq!(unsigned(" 42"), Some(42));
        assert_eq!(unsigned("-1"), Some(u64::MAX));
        assert_eq!(unsigned("99999999999999999999999"), Some(u64::MAX));
        for text in ["", "x", "42x", "42 ", "0x10", "-"] {
            assert_eq!(unsigned(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_take_a_letter() {
        for (written, bytes) in [("64K", 65_536), ("5k", 5_120), ("1M", 1 << 20), ("5G", 5 << 30), ("7", 7)] {
            assert_eq!(size(written), Some(bytes), "{written}");
        }
        for wrong in ["", "K", "x", "64Q", "5kB", "-1", "+1", "9999999999T", "é"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn doubles_are_read_in_all_notations_of_c() {
        assert_eq!(double(b" 1.5e3"), Ok(1500.0));
        assert_eq!(double(b"-.5"), Ok(-0.5));
        assert_eq!(double(b"+1."), Ok(1.0));
        assert_eq!(double(b"0x1.8p1"), Ok(3.0));
        assert_eq!(double(b"0XfF"), Ok(255.0));
        assert_eq!(double(b"-Infinity"), Ok(f64::NEG_INFINITY));
        for text in ["NaN", "nan()", "nan(a_1)"] {
            assert!(double(text.as_bytes()).is_ok_and(f64::is_nan), "{text}");
        }
        assert_eq!(double(b"0e999"), Ok(0.0));
        for text in ["1e400", "1e-400", "-1e309"] {
            assert_eq!(double(text.as_bytes()), Err(NumberError::Range), "{text}");
        }
        for text in ["", " ", "1e", "1 ", "--1", "0x", "0x.p1", "1x", "nan(", "nan(-)", "infinit", "\u{e9}"] {
            assert_eq!(double(text.as_bytes()), Err(NumberError::Syntax), "{text}");
        }
    }
}
