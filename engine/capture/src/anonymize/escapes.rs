//! Decodes the escape sequences of SQL strings and of JSON, so that a word gets the same token however it is escaped.

/// Returns the value of a string with the prefix `E`. `body` is the text between its quotes. Bytes that are not valid
/// UTF-8 become the replacement character. Source: PostgreSQL's `scan.l`.
pub fn of_escape_string(body: &str) -> String {
    let mut bytes = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some(c) = rest.chars().next() {
        let escaped = rest[c.len_utf8()..].chars().next();
        let (decoded, length) = match (c, escaped) {
            ('\'', Some('\'')) => ('\'', 2),
            ('\\', Some('b')) => ('\u{8}', 2),
            ('\\', Some('f')) => ('\u{c}', 2),
            ('\\', Some('n')) => ('\n', 2),
            ('\\', Some('r')) => ('\r', 2),
            ('\\', Some('t')) => ('\t', 2),
            ('\\', Some('u')) => of_code_point(rest, "\\u", 4).unwrap_or(('u', 2)),
            ('\\', Some('U')) => of_code_point(rest, "\\U", 8).unwrap_or(('U', 2)),
            ('\\', Some('x' | '0'..='7')) => match of_byte(rest) {
                Some((byte, length)) => {
                    bytes.push(byte);
                    rest = &rest[length..];
                    continue;
                }
                None => ('x', 2),
            },
            ('\\', Some(other)) => (other, 1 + other.len_utf8()),
            (other, _) => (other, other.len_utf8()),
        };
        bytes.extend_from_slice(decoded.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &rest[length..];
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the value of a string with the prefix `U&`. `body` is the text between its quotes. Only backslashes are
/// supported as the beginning of its escapes, not other characters that `UESCAPE` could declare.
pub fn of_unicode_string(body: &str) -> String {
    let mut value = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(c) = rest.chars().next() {
        let doubled = rest.starts_with("''") || rest.starts_with("\\\\");
        let plain = (c, if doubled { 2 } else { c.len_utf8() });
        let escaped = of_code_point(rest, "\\+", 6).or_else(|| of_code_point(rest, "\\", 4));
        let (decoded, length) = escaped.unwrap_or(plain);
        value.push(decoded);
        rest = &rest[length..];
    }
    value
}

/// Returns the text that stands for `value` between the quotes of a string with the prefix `E` or `U&`.
pub fn as_body(value: &str) -> String {
    value.replace('\\', "\\\\").replace('\'', "''")
}

/// Returns the first character of a JSON text, and the number of bytes that it takes there. If the text begins with an
/// escape of a letter or a digit, such as `\u0410`, the escape is decoded. Of any other escape only the backslash is
/// returned, because such an escape stays as it is.
pub fn of_json(text: &str) -> Option<(char, usize)> {
    let first = text.chars().next()?;
    let escaped = of_code_point(text, "\\u", 4).filter(|(decoded, _)| decoded.is_alphanumeric());
    Some(escaped.unwrap_or((first, first.len_utf8())))
}

/// Reads `prefix` with the given number of hexadecimal digits behind it, or two of these that form a surrogate pair.
/// Returns the character and the number of bytes read.
fn of_code_point(text: &str, prefix: &str, digits: usize) -> Option<(char, usize)> {
    let code = |text: &str| {
        let digits = text.strip_prefix(prefix)?.get(..digits)?;
        digits.bytes().all(|c| c.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
    };
    let length = prefix.len() + digits;
    let high = code(text)?;
    if let Some(decoded) = char::from_u32(high) {
        return Some((decoded, length));
    }
    let low = code(&text[length..])?;
    let pair = [u16::try_from(high).ok()?, u16::try_from(low).ok()?];
    let decoded = char::decode_utf16(pair).next()?.ok()?;
    Some((decoded, 2 * length))
}

/// Reads an escape such as `\x41` or `\101`, with one digit or more. Returns the byte and the length of the escape.
fn of_byte(text: &str) -> Option<(u8, usize)> {
    let (start, radix, most) = if text[1..].starts_with('x') { (2, 16, 2) } else { (1, 8, 3) };
    let digits = text[start..].chars().take(most).take_while(|c| c.is_digit(radix)).count();
    let value = u32::from_str_radix(&text[start..start + digits], radix).ok()?;
    Some((value as u8, start + digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_strings_are_decoded() {
        for (body, value) in [
            (r"\x41\x6e\x6e\x61", "Anna"),
            (r"\101nna", "Anna"),
            (r"\u0410\u043d\U0000043d\u0430", "Анна"),
            (r"\ud83d\ude00", "😀"),
            (r"caf\303\251", "café"),
            (r"it''s\'\\\n\q", "it's'\\\nq"),
            (r"\xg\u12", "xgu12"),
            ("\\", "\\"),
        ] {
            assert_eq!(of_escape_string(body), value, "{body}");
        }
        for (body, value) in
            [(r"\0410\043d\+00043d\0430", "Анна"), (r"a\\b''c", "a\\b'c"), (r"\d83d\de00", "😀"), (r"\", "\\")]
        {
            assert_eq!(of_unicode_string(body), value, "{body}");
        }
        assert_eq!(of_escape_string(&as_body("it's a \\")), "it's a \\");
        assert_eq!(of_unicode_string(&as_body("it's a \\")), "it's a \\");
    }

    #[test]
    fn json_escapes_of_letters_and_digits_are_decoded() {
        for (text, found) in [
            (r"\u0410b", Some(('А', 6))),
            (r"\u0031", Some(('1', 6))),
            (r"\u0022", Some(('\\', 1))),
            (r"\u12", Some(('\\', 1))),
            (r"\ud83d", Some(('\\', 1))),
            ("é", Some(('é', 2))),
            ("", None),
        ] {
            assert_eq!(of_json(text), found, "{text}");
        }
    }
}
