//! Whole numbers as parameters on the wire: the length of the decimal digits in four bytes, then these.

use std::ops::RangeInclusive;

use super::message::Message;

/// Four bytes of length and at most twenty of digits and sign.
const LONGEST: usize = 24;

/// The same for a short number.
pub const LONGEST_SHORT: usize = 12;

/// Numbers whose digits and sign are at most eight bytes.
const SHORT: RangeInclusive<i64> = -9_999_999..=99_999_999;

/// Appends a number as a parameter, without the formatting machinery: the hot path writes one per parameter.
#[inline(always)]
pub fn push_int(number: i64, out: &mut Message) {
    if !SHORT.contains(&number) {
        return push_long(number, out);
    }
    let (digits, length) = eight_bytes(number);
    let mut field = [0; LONGEST];
    field[..4].copy_from_slice(&length.to_be_bytes());
    field[4..12].copy_from_slice(&digits.to_le_bytes());
    out.push(&field, 4 + length as usize);
}

/// A short number as a parameter: length and digits in the first bytes, and how many bytes they are; `None` for longer
/// numbers.
#[inline(always)]
pub fn short_field(number: i64) -> Option<([u8; LONGEST_SHORT], u8)> {
    if !SHORT.contains(&number) {
        return None;
    }
    let (digits, length) = eight_bytes(number);
    let mut field = [0; LONGEST_SHORT];
    field[..4].copy_from_slice(&length.to_be_bytes());
    field[4..].copy_from_slice(&digits.to_le_bytes());
    Some((field, 4 + length as u8))
}

#[cold]
fn push_long(number: i64, out: &mut Message) {
    let mut digits = Vec::with_capacity(LONGEST);
    write_int(number, &mut digits);
    out.extend(&(digits.len() as u32).to_be_bytes());
    out.extend(&digits);
}

/// Appends the digits alone.
pub fn write_int(number: i64, out: &mut Vec<u8>) {
    if SHORT.contains(&number) {
        let (digits, length) = eight_bytes(number);
        return out.extend_from_slice(&digits.to_le_bytes()[..length as usize]);
    }
    if number < 0 {
        out.push(b'-');
    }
    let start = out.len();
    let mut rest = number.unsigned_abs();
    while rest > 0 {
        out.push(b'0' + (rest % 10) as u8);
        rest /= 10;
    }
    out[start..].reverse();
}

/// Sign and digits of a short number, the first byte in the lowest, and how many they are.
#[inline(always)]
fn eight_bytes(number: i64) -> (u64, u32) {
    let (digits, length) = eight_digits(number.unsigned_abs() as u32);
    if number < 0 { (digits << 8 | u64::from(b'-'), length + 1) } else { (digits, length) }
}

/// The digits of a number below 10^8, the first one in the lowest byte, and how many there are: halves, then pairs,
/// then digits are divided side by side in one word, and leading zeros are shifted out.
#[inline(always)]
fn eight_digits(number: u32) -> (u64, u32) {
    const ZEROS: u64 = u64::from_le_bytes(*b"00000000");
    let number = u64::from(number);
    // Two numbers below 10^4 in 32 bits each (n * 109951163 >> 40 is n / 10^4); n * 10486 >> 20 is n / 100 for all of them.
    let high = (number * 109_951_163) >> 40;
    let fours = high | (number - high * 10_000) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    // Four numbers below 10^2 in 16 bits each; n * 103 >> 10 is n / 10 for all of them.
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let digits = tens | (twos - tens * 10) << 8;
    // The last digit stays even if it is zero.
    let zeros = (digits | 1 << 63).trailing_zeros() & !7;
    ((digits | ZEROS) >> zeros, 8 - zeros / 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(number: i64) {
        let text = number.to_string();
        let (mut message, mut digits) = (Message::default(), Vec::new());
        push_int(number, &mut message);
        write_int(number, &mut digits);
        assert_eq!(digits, text.as_bytes());
        assert_eq!(message.as_bytes(), [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat());
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
