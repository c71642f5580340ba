//! Numbers of varying length in the encoding LEB128: seven bits in each byte, the lowest bits first. Signed numbers are
//! zigzag-encoded before.

/// Appends a number as a varint: seven bits in each byte, the lowest first, and the high bit set in all bytes except
/// the last.
pub fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a signed number as a zigzag-encoded varint.
pub fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// Appends the length of `bytes` as a varint, and then the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Removes a varint from the beginning of `bytes` and returns its number. Returns `None` if the bytes end within the
/// varint or the number does not fit into 64 bits.
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Removes a signed varint from the beginning of `bytes` and returns its number.
pub fn take_signed(bytes: &mut &[u8]) -> Option<i64> {
    let number = take(bytes)?;
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}

/// Removes a varint from the beginning of `bytes` and returns its number, or `None` if it does not fit into 32 bits.
pub fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    take(bytes)?.try_into().ok()
}

/// Removes a length, and then as many bytes, from the beginning of `bytes`. Returns these bytes.
pub fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take(bytes)?.try_into().ok()?;
    take_slice(bytes, length)
}

/// Removes `length` bytes from the beginning of `bytes` and returns them, or returns `None` if there are fewer.
pub fn take_slice<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(number: u64, signed: i64, text: Vec<u8>) {
            let mut out = Vec::new();
            put(&mut out, number);
            put_signed(&mut out, signed);
            put_bytes(&mut out, &text);
            let mut rest = out.as_slice();
            prop_assert_eq!(take(&mut rest), Some(number));
            prop_assert_eq!(take_signed(&mut rest), Some(signed));
            prop_assert_eq!(take_bytes(&mut rest), Some(text.as_slice()));
            prop_assert!(rest.is_empty());
        }
    }

    #[test]
    fn what_ends_early_or_does_not_fit_is_no_number() {
        for bytes in
            [&[][..], &[0x80], &[0xff; 9], &[0xff; 10], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]]
        {
            assert_eq!(take(&mut &bytes[..]), None, "{bytes:?}");
        }
        assert_eq!(take_bytes(&mut &[3, 1, 2][..]), None);
    }
}
