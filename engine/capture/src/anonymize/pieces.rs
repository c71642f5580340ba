//! Cuts a value into the pieces that are replaced by tokens and those that are not.

use std::borrow::Cow;

use super::escapes::{as_body, of_escape_string, of_json, of_unicode_string};
use crate::sql::tokens::{TokenKind, Tokens};
use crate::sql::units::UNITS;
use crate::time::days_since_1970;

/// The form in which a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The value is the text of a literal, with its quotes.
    Literal,
    /// The value is as the server knows it: that of a bound parameter.
    Value,
}

/// A piece of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A part of a value that is not replaced.
    Kept(&'a str),
    /// A run of digits.
    Digits(&'a str),
    /// A run of letters.
    Letters(&'a str),
    /// A run of hexadecimal digits.
    Hex(&'a str),
    /// A run of the digits 0 and 1 of a bit string.
    Bits(&'a str),
    /// A date, `2026-11-23`, as days since 1970.
    Date(i64),
}

/// The function that is called with each piece of a value, in order.
pub type Take<'a> = dyn FnMut(Piece<'_>) + 'a;

/// Values, in lower case, that are not replaced at all: truth values, and words that date and number types accept.
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

/// Words of JSON and of arrays, which are never replaced.
const KEPT_WORDS: &[&str] = &["true", "false", "null", "NULL"];

/// Cuts a value that is written in this form.
pub fn cut(text: &str, form: Form, take: &mut Take<'_>) {
    match form {
        Form::Literal => of_literal(text, take),
        Form::Value => of_value(text, take),
    }
}

/// Cuts the text of a literal as a statement has it: strings with quotes, numbers, lists of both, the text of a
/// comment.
fn of_literal(text: &str, take: &mut Take<'_>) {
    for token in Tokens::of(text) {
        match token.kind {
            TokenKind::Text => of_string(token.text, take),
            TokenKind::Number => of_number(token.text, take),
            _ => of_value(token.text, take),
        }
    }
}

/// Cuts a string with its prefix and its quotes.
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

/// Cuts the value of a string with escapes. What is kept of it is escaped again; tokens need no escapes.
fn of_decoded(value: &str, take: &mut Take<'_>) {
    of_value(value, &mut |piece| match piece {
        Piece::Kept(text) => take(Piece::Kept(&as_body(text))),
        other => take(other),
    });
}

/// Cuts a number as SQL writes it.
fn of_number(text: &str, take: &mut Take<'_>) {
    match text.get(..2) {
        Some(base @ ("0x" | "0X")) => {
            take(Piece::Kept(base));
            take(Piece::Hex(&text[2..]));
        }
        Some("0b" | "0B" | "0o" | "0O") => take(Piece::Kept(text)),
        _ => of_value(text, take),
    }
}

/// Cuts a value without quotes.
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

/// Cuts a value in which words are not replaced, but digits are.
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

/// Returns true if all words of a text are units of time and there is at least one.
fn is_interval(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).peekable();
    let has_digit = text.bytes().any(|c| c.is_ascii_digit());
    let is_unit = |word: &str| UNITS.iter().any(|unit| word.eq_ignore_ascii_case(unit));
    has_digit && words.peek().is_some() && words.all(is_unit)
}

/// Takes one piece from the text at `at`. Returns its length in bytes.
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

/// Returns the characters of this kind at the front of a text, whether or not JSON has them as escapes, and their
/// length in bytes there.
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

/// Returns a word at `at` that has both digits and the letters of hexadecimal numbers, eight characters or more, such
/// as a digest. A number with an exponent is none.
fn hexadecimal(text: &str, at: usize) -> Option<&str> {
    // Looked at first, so that a long word of many pieces is read once.
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

/// Returns true if a letter is the `e` of `1.5e-10`.
fn is_exponent(text: &str, at: usize, length: usize) -> bool {
    let text = text.as_bytes();
    let next = match text.get(at + length) {
        Some(b'+' | b'-') => text.get(at + length + 1),
        next => next,
    };
    let is_digit = |c: Option<&u8>| c.is_some_and(u8::is_ascii_digit);
    length == 1 && matches!(text[at], b'e' | b'E') && at > 0 && is_digit(text.get(at - 1)) && is_digit(next)
}

/// Returns the length of a backslash with the character that it escapes and that is kept: `\n`, `\"`, `\u0022`.
fn escape_length(rest: &str) -> usize {
    match rest.as_bytes().get(1) {
        Some(b'u') => 2 + rest.bytes().skip(2).take(4).take_while(u8::is_ascii_hexdigit).count(),
        Some(b'b' | b'f' | b'n' | b'r' | b't' | b'x' | b'"' | b'/' | b'\\') => 2,
        _ => 1,
    }
}

/// Takes `8-4-4-4-12` hexadecimal digits as one number.
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

/// Cuts a date such as `2026-11-23` from the front, with the time of day and the zone that may follow it, which are not
/// replaced.
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

/// Returns the length of the time of day, such as ` 08:00:00.123+00`, at the beginning of the text that follows a date;
/// 0 if there is none.
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

    /// Cuts a text into pieces and writes them in a row. Pieces that would be replaced are in brackets and begin with
    /// their kind: `#` for digits, `a` for letters, `x` for hexadecimal digits, `b` for bits, `d` for a date.
    fn cut(text: &str, of: fn(&str, &mut Take<'_>)) -> String {
        let mut all = String::new();
        of(text, &mut |piece| match piece {
            Piece::Kept(text) => all += text,
            Piece::Digits(text) => all += &format!("[#{text}]"),
            Piece::Letters(text) => all += &format!("[a{text}]"),
            Piece::Hex(text) => all += &format!("[x{text}]"),
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
                    Piece::Kept(text) | Piece::Digits(text) | Piece::Letters(text) | Piece::Hex(text) | Piece::Bits(text) => {
                        all += text;
                    }
                    Piece::Date(_) => all += "2026-01-01",
                });
                prop_assert_eq!(&all, &text);
            }
        }
    }
}
