//! Splits a value into pieces: words, numbers and dates that tokens replace, and the text between them that stays.

use std::borrow::Cow;

use super::escapes::{as_body, of_escape_string, of_json, of_unicode_string};
use crate::sql::tokens::{TokenKind, Tokens};
use crate::sql::units::UNITS;
use crate::time::days_since_1970;

/// The form in which a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The text of an SQL literal, with its quotes.
    Literal,
    /// A plain value without quotes or escapes, such as the value of a bound parameter.
    Value,
}

/// A piece of a value. Tokens replace all pieces except `Kept`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Text that tokens do not replace.
    Kept(&'a str),
    /// A run of digits.
    Digits(&'a str),
    /// A run of letters.
    Letters(&'a str),
    /// A run of hexadecimal digits.
    Hex(&'a str),
    /// A run of octal digits.
    Octal(&'a str),
    /// A run of the digits 0 and 1 in a bit string or a binary number.
    Bits(&'a str),
    /// A date such as `2026-11-23`, as the number of days since 1970-01-01.
    Date(i64),
}

/// The function to which the pieces of a value are passed, in their order.
pub type Take<'a> = dyn FnMut(Piece<'_>) + 'a;

/// Values, in lower case, that tokens do not replace: truth values, and words that date and number types accept as
/// input.
const KEPT_WHOLE: &[&str] = &[
    "true",
    "false",
    "t",
    "f",
    "yes",
    "no",
    "on",
    "off",
    "null",
    "now",
    "today",
    "tomorrow",
    "yesterday",
    "epoch",
    "infinity",
    "-infinity",
    "nan",
    "",
];

/// Words of JSON and of arrays, which tokens do not replace.
const KEPT_WORDS: &[&str] = &["true", "false", "null", "NULL"];

/// Splits a value that is written in the given form, and passes its pieces to `take`.
pub fn cut(text: &str, form: Form, take: &mut Take<'_>) {
    match form {
        Form::Literal => of_literal(text, take),
        Form::Value => of_value(text, take),
    }
}

/// Splits a literal as it stands in a statement: a string with its quotes, a number, a list of strings and numbers, or
/// the text of a comment.
fn of_literal(text: &str, take: &mut Take<'_>) {
    for token in Tokens::of(text) {
        match token.kind {
            TokenKind::Text => of_string(token.text, take),
            TokenKind::Number => of_number(token.text, take),
            _ => of_value(token.text, take),
        }
    }
}

/// Splits a string that is given with its prefix and its quotes.
fn of_string(text: &str, take: &mut Take<'_>) {
    let is_dollar = text.starts_with('$');
    let quote = if is_dollar { '$' } else { '\'' };
    let Some(opening) = text.find(quote) else { return of_value(text, take) };
    let opening = match is_dollar {
        true => text[1..].find('$').map_or(text.len(), |end| end + 2),
        false => opening + 1,
    };
    let (begin, rest) = text.split_at(opening);
    let closing = if is_dollar { begin } else { "'" };
    let body = rest.strip_suffix(closing).unwrap_or(rest);
    take(Piece::Kept(begin));
    match begin {
        "X'" | "x'" => take(Piece::Hex(body)),
        "B'" | "b'" if body.bytes().all(|c| matches!(c, b'0' | b'1')) => take(Piece::Bits(body)),
        "E'" | "e'" => of_decoded(&of_escape_string(body), take),
        "U&'" | "u&'" => of_decoded(&of_unicode_string(body), take),
        _ => of_value(body, take),
    }
    take(Piece::Kept(&rest[body.len()..]));
}

/// Splits the value of a string after its escapes were decoded. Text that tokens do not replace is escaped again for
/// the new string. Tokens contain no character that needs an escape.
fn of_decoded(value: &str, take: &mut Take<'_>) {
    of_value(value, &mut |piece| match piece {
        Piece::Kept(text) => take(Piece::Kept(&as_body(text))),
        other => take(other),
    });
}

/// Splits a number that is written as an SQL literal.
fn of_number(text: &str, take: &mut Take<'_>) {
    match text.get(..2) {
        Some(base @ ("0x" | "0X")) => {
            take(Piece::Kept(base));
            take(Piece::Hex(&text[2..]));
        }
        Some(base @ ("0o" | "0O")) => {
            take(Piece::Kept(base));
            take(Piece::Octal(&text[2..]));
        }
        Some(base @ ("0b" | "0B")) => {
            take(Piece::Kept(base));
            take(Piece::Bits(&text[2..]));
        }
        _ => of_value(text, take),
    }
}

/// Splits a value that has no quotes.
fn of_value(text: &str, take: &mut Take<'_>) {
    if KEPT_WHOLE.iter().any(|kept| text.eq_ignore_ascii_case(kept)) || is_interval(text) {
        return of_kept_words(text, take);
    }
    if let Some(hex) = text.strip_prefix("\\x").filter(|hex| hex.bytes().all(|c| c.is_ascii_hexdigit())) {
        take(Piece::Kept("\\x"));
        return take(Piece::Hex(hex));
    }
    let mut at = 0;
    while at < text.len() {
        at += piece(text, at, take);
    }
}

/// Splits a value in which words stay as they are and only digits are replaced, such as the interval `3 days`.
fn of_kept_words(text: &str, take: &mut Take<'_>) {
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let is_digit = c.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_digit).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        take(if is_digit { Piece::Digits(run) } else { Piece::Kept(run) });
        rest = after;
    }
}

/// True if a text contains a digit and at least one word, and all of its words are units of time, such as `3 days`.
fn is_interval(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).peekable();
    let has_digit = text.bytes().any(|c| c.is_ascii_digit());
    let is_unit = |word: &str| UNITS.iter().any(|unit| word.eq_ignore_ascii_case(unit));
    has_digit && words.peek().is_some() && words.all(is_unit)
}

/// Passes the piece that begins at byte `at` of the text to `take`, and returns the piece's length in bytes.
fn piece(text: &str, at: usize, take: &mut Take<'_>) -> usize {
    let rest = &text[at..];
    if let Some(length) = uuid(rest, take).or_else(|| date_and_time(rest, take)) {
        return length;
    }
    if let Some(hex) = hexadecimal(text, at) {
        take(Piece::Hex(hex));
        return hex.len();
    }
    let Some((first, _)) = of_json(rest) else { return 0 };
    if first.is_ascii_digit() {
        let (digits, length) = run(rest, |c| c.is_ascii_digit());
        take(Piece::Digits(&digits));
        return length;
    }
    if is_letter(first) {
        let (word, length) = run(rest, is_letter);
        let is_kept = KEPT_WORDS.contains(&&*word) || is_exponent(text, at, length);
        take(if is_kept { Piece::Kept(&word) } else { Piece::Letters(&word) });
        return length;
    }
    let length = if first == '\\' { escape_length(rest) } else { first.len_utf8() };
    take(Piece::Kept(&rest[..length]));
    length
}

/// Returns the characters at the beginning of a text for which `is_its` is true, and the number of bytes that they take
/// there. Characters that JSON has escaped are decoded.
fn run(text: &str, is_its: impl Fn(char) -> bool) -> (Cow<'_, str>, usize) {
    let plain = text.find(|c| !is_its(c)).unwrap_or(text.len());
    if !text[plain..].starts_with('\\') {
        return (Cow::Borrowed(&text[..plain]), plain);
    }
    let mut decoded = String::new();
    let mut length = 0;
    while let Some((c, size)) = of_json(&text[length..]).filter(|(c, _)| is_its(*c)) {
        decoded.push(c);
        length += size;
    }
    (Cow::Owned(decoded), length)
}

/// Returns the word at `at` if it looks like a hexadecimal number, such as a digest: it has at least eight characters,
/// both digits and the letters a to f, and is not a decimal number with an exponent.
fn hexadecimal(text: &str, at: usize) -> Option<&str> {
    // This is checked first, because a long word of many pieces would otherwise be scanned again for each piece.
    if text[..at].ends_with(char::is_alphanumeric) {
        return None;
    }
    let rest = &text[at..];
    let word = &rest[..rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len())];
    if word.len() < 8 || !word.bytes().all(|c| c.is_ascii_hexdigit()) {
        return None;
    }
    let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
    let is_number = letters == 0 || (letters == 1 && word[1..].contains(['e', 'E']));
    (!is_number && letters < word.len()).then_some(word)
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() && !c.is_ascii_digit()
}

/// True if the letter at `at` is the `e` of a number such as `1.5e-10`.
fn is_exponent(text: &str, at: usize, length: usize) -> bool {
    let text = text.as_bytes();
    let next = match text.get(at + length) {
        Some(b'+' | b'-') => text.get(at + length + 1),
        next => next,
    };
    let is_digit = |c: Option<&u8>| c.is_some_and(u8::is_ascii_digit);
    length == 1 && matches!(text[at], b'e' | b'E') && at > 0 && is_digit(text.get(at - 1)) && is_digit(next)
}

/// Returns the length of an escape at the beginning of the text, such as `\n`, `\"` or `\u0022`, which stays as it is.
fn escape_length(rest: &str) -> usize {
    match rest.as_bytes().get(1) {
        Some(b'u') => 2 + rest.bytes().skip(2).take(4).take_while(u8::is_ascii_hexdigit).count(),
        Some(b'b' | b'f' | b'n' | b'r' | b't' | b'x' | b'"' | b'/' | b'\\') => 2,
        _ => 1,
    }
}

/// Passes the 32 hexadecimal digits of a UUID (`8-4-4-4-12` digits) to `take`, and returns the length of the UUID.
/// Returns `None` if the text does not begin with one.
fn uuid(rest: &str, take: &mut Take<'_>) -> Option<usize> {
    let uuid = rest.get(..36)?;
    let is_uuid = uuid.bytes().enumerate().all(|(at, c)| match at {
        8 | 13 | 18 | 23 => c == b'-',
        _ => c.is_ascii_hexdigit(),
    });
    let ends = !rest[36..].starts_with(|c: char| c.is_ascii_hexdigit());
    (is_uuid && ends).then(|| {
        for (index, part) in uuid.split('-').enumerate() {
            if index > 0 {
                take(Piece::Kept("-"));
            }
            take(Piece::Hex(part));
        }
        36
    })
}

/// Passes a date such as `2026-11-23` at the beginning of the text to `take`, and then the time of day and zone behind
/// it, which stay as they are. Returns the length of the date with the time and zone, or `None` if the text does not
/// begin with a date.
fn date_and_time(rest: &str, take: &mut Take<'_>) -> Option<usize> {
    let date = rest.get(..10)?;
    let shape =
        date.bytes().enumerate().all(|(at, c)| if matches!(at, 4 | 7) { c == b'-' } else { c.is_ascii_digit() });
    if !shape || rest[10..].starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let number = |from: usize, to: usize| date[from..to].parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    take(Piece::Date(days_since_1970(year, month, day)));
    let length = time_length(&rest[10..]);
    take(Piece::Kept(&rest[10..10 + length]));
    Some(10 + length)
}

/// Returns the length of the time of day and zone that follow a date, such as ` 08:00:00.123+00`; 0 if the text does
/// not begin with a time of day.
fn time_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let is_time = matches!(bytes, [b' ' | b'T', a, b, b':', ..] if a.is_ascii_digit() && b.is_ascii_digit());
    if !is_time {
        return 0;
    }
    let time = 1 + bytes[1..].iter().take_while(|c| c.is_ascii_digit() || matches!(c, b':' | b'.')).count();
    let zone = match bytes.get(time) {
        Some(b'Z') => 1,
        Some(b'+' | b'-') => 1 + bytes[time + 1..].iter().take_while(|c| c.is_ascii_digit() || **c == b':').count(),
        _ if rest[time..].starts_with(" UTC") => 4,
        _ => 0,
    };
    time + zone
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Splits a text with `of` and joins its pieces again. Pieces that tokens would replace are in brackets and begin
    /// with a letter for their kind: `#` for digits, `a` for letters, `x` for hexadecimal digits, `o` for octal digits,
    /// `b` for bits, `d` for a date.
    fn cut(text: &str, of: fn(&str, &mut Take<'_>)) -> String {
        let mut all = String::new();
        of(text, &mut |piece| match piece {
            Piece::Kept(text) => all += text,
            Piece::Digits(text) => all += &format!("[#{text}]"),
            Piece::Letters(text) => all += &format!("[a{text}]"),
            Piece::Hex(text) => all += &format!("[x{text}]"),
            Piece::Octal(text) => all += &format!("[o{text}]"),
            Piece::Bits(text) => all += &format!("[b{text}]"),
            Piece::Date(days) => all += &format!("[d{days}]"),
        });
        all
    }

    #[test]
    fn values_have_words_and_numbers() {
        for (text, expected) in [
            ("Anna Müller-17", "[aAnna] [aMüller]-[#17]"),
            ("12.50", "[#12].[#50]"),
            ("-1.5e-10", "-[#1].[#5]e-[#10]"),
            ("{\"name\": true, \"a\\n\\u00e9\": null}", "{\"[aname]\": true, \"[aa]\\n[aé]\": null}"),
            (r#"{"\u0410\u043dna": "\u0022\u0031\u0032"}"#, r#"{"[aАнna]": "\u0022[#12]"}"#),
            (r"C:\Users\anna", r"[aC]:\[aUsers]\[aanna]"),
            ("a1b2c3d4e5f6 12345e67", "[xa1b2c3d4e5f6] [#12345]e[#67]"),
            ("{1,NULL,x}", "{[#1],NULL,[ax]}"),
            ("t", "t"),
            ("True", "True"),
            ("-infinity", "-infinity"),
            ("3 days 02:00:00", "[#3] days [#02]:[#00]:[#00]"),
            ("3 days late", "[#3] [adays] [alate]"),
            ("\\x00ff", "\\x[x00ff]"),
            ("1970-01-02 08:00:00.5+02 x", "[d1] 08:00:00.5+02 [ax]"),
            ("1970-01-02T08:00:00Z", "[d1]T08:00:00Z"),
            ("1970-13-02", "[#1970]-[#13]-[#02]"),
            ("6F9619FF-8B86-D011-B42D-00C04FC964FF", "[x6F9619FF]-[x8B86]-[xD011]-[xB42D]-[x00C04FC964FF]"),
        ] {
            assert_eq!(cut(text, of_value), expected, "{text}");
        }
    }

    #[test]
    fn literals_keep_their_quotes() {
        for (text, expected) in [
            ("'it''s'", "'[ait]''[as]'"),
            ("E'a\\n'", "E'[aa]\n'"),
            (r"E'\x41\x6e\u0430 it\'s \\'", r"E'[aAnа] [ait]''[as] \\'"),
            (r"U&'\0410nna'", "U&'[aАnna]'"),
            ("B'secret'", "B'[asecret]'"),
            ("$q$a$q$", "$q$[aa]$q$"),
            ("$$a$$", "$$[aa]$$"),
            ("X'1f'", "X'[x1f]'"),
            ("B'01'", "B'[b01]'"),
            ("0x1F", "0x[x1F]"),
            ("0o17, 0b101", "0o[o17], 0b[b101]"),
            ("1, -2 , 'a'", "[#1], -[#2] , '[aa]'"),
            ("'1970-01-02'", "'[d1]'"),
            (" trace id ", " [atrace] [aid] "),
        ] {
            assert_eq!(cut(text, of_literal), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn pieces_cover_any_value(text in "([-a-df-tv-zA-DF-TV-Z0-9 '\"$.:{}é€]|'|\\$\\$|2026-01-01| 08:00|\\\\[^ue]){0,30}") {
            for of in [of_value, of_literal] {
                let mut all = String::new();
                of(&text, &mut |piece| match piece {
                    Piece::Kept(text)
                    | Piece::Digits(text)
                    | Piece::Letters(text)
                    | Piece::Hex(text)
                    | Piece::Octal(text)
                    | Piece::Bits(text) => all += text,
                    Piece::Date(_) => all += "2026-01-01",
                });
                prop_assert_eq!(&all, &text);
            }
        }
    }
}
