//! Finds the ends of comments and quoted texts in SQL. A comment or quoted text that is not closed ends with the text.

/// Returns true if a byte can be part of an unquoted name: a letter, a digit, `_`, or a byte outside ASCII.
pub fn is_name(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || !c.is_ascii()
}

/// Returns the end of the comment that begins at `at`, or `None` if no comment begins there. A comment after two dashes
/// ends before the end of its line. Comments between `/*` and `*/` can be nested.
pub fn comment_end(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at..at + 2)? {
        b"--" => {
            let length = text[at..].iter().position(|c| matches!(c, b'\n' | b'\r'));
            Some(length.map_or(text.len(), |length| at + length))
        }
        b"/*" => Some(block_end(text, at)),
        _ => None,
    }
}

fn block_end(text: &[u8], mut at: usize) -> usize {
    let mut depth = 0;
    loop {
        match text.get(at..at + 2) {
            None => return text.len(),
            Some(b"/*") => depth += 1,
            Some(b"*/") => depth -= 1,
            Some(_) => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
}

/// Returns the end of the quoted text whose opening quote is at `at`. A doubled quote ends one quoted text and begins
/// the next.
pub fn quoted_end(text: &[u8], at: usize) -> usize {
    let length = text[at + 1..].iter().position(|c| *c == text[at]);
    length.map_or(text.len(), |length| at + length + 2)
}

/// Returns the end of a string such as `E'...'`, in which backslashes escape characters. A doubled quote is part of the
/// string.
pub fn escape_string_end(text: &[u8], mut at: usize) -> usize {
    at += 1;
    loop {
        match &text[at..] {
            [] => return at,
            [b'\\', _, ..] | [b'\'', b'\'', ..] => at += 2,
            [b'\'', ..] => return at + 1,
            _ => at += 1,
        }
    }
}

/// Returns the end of the dollar-quoted text that begins at `at`, or `None` if none begins there.
pub fn dollar_quoted_end(text: &[u8], at: usize) -> Option<usize> {
    let tag = text[at + 1..].iter().take_while(|c| is_name(**c)).count();
    let body = at + tag + 2;
    if text[at + 1..].first().is_some_and(u8::is_ascii_digit) || text.get(body - 1) != Some(&b'$') {
        return None;
    }
    let quote = &text[at..body];
    let length = text[body..].windows(quote.len()).position(|window| window == quote);
    Some(length.map_or(text.len(), |length| body + length + quote.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_end_where_postgresqls_do() {
        for (token, end) in [("-- a\nb", 4), ("--\r\n", 2), ("--", 2), ("/* /* */ */ b", 11), ("/* a *", 6)] {
            assert_eq!(comment_end(token.as_bytes(), 0), Some(end), "{token}");
        }
        assert_eq!([comment_end(b"- -", 0), comment_end(b"-", 0), comment_end(b"/ *", 0)], [None; 3]);
        assert_eq!([quoted_end(b"'a;''", 0), quoted_end(b"\"a\"b", 0), quoted_end(b"'a", 0)], [4, 3, 2]);
        assert_eq!(
            ["'a\\'b'c", "'a''b'c", "'a\\", "'"].map(|text| escape_string_end(text.as_bytes(), 0)),
            [6, 6, 3, 1]
        );
        for (token, end) in
            [("$$;$$b", Some(5)), ("$a$;$$;$a$b", Some(10)), ("$a$;", Some(4)), ("$1$;$1$", None), ("$a", None)]
        {
            assert_eq!(dollar_quoted_end(token.as_bytes(), 0), end, "{token}");
        }
    }
}
