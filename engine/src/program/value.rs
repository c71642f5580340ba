//! Values of a client's variables, and how they are written into statements.

/// A variable's value. `Unset` is a variable that no command has given a value yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    #[default]
    Unset,
    Int(i64),
}

impl Value {
    /// Appends the text form, as pgbench substitutes it into a statement; nothing for `Unset`.
    #[inline]
    pub fn write_text(&self, out: &mut Vec<u8>) {
        match self {
            Value::Unset => {}
            Value::Int(number) => write_int(*number, out),
        }
    }
}

/// Appends a decimal number without the formatting machinery: the hot path writes one per parameter.
#[inline]
fn write_int(number: i64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_as_the_formatter_writes_them() {
        for number in [0, 7, -1, 10, 99, 100, -5000, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            Value::Int(number).write_text(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }
}
