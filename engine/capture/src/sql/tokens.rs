//! Splits SQL into tokens, as far as this is needed to tell literals from other text. Every text can be split: even a
//! token that PostgreSQL would reject, such as a string without an end, ends at the latest with the text.

use ground::sql::{comment_end, dollar_quoted_end, escape_string_end, is_name, quoted_end};

/// A token of an SQL text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SqlToken<'a> {
    pub kind: TokenKind,
    /// The byte offset at which the token begins in the text.
    pub at: usize,
    pub text: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    Space,
    Comment,
    /// A keyword or an unquoted name.
    Word,
    QuotedName,
    /// A string with its prefix and quotes, however it is quoted.
    Text,
    Number,
    /// A parameter such as `$1`.
    Parameter,
    /// A single character that belongs to no other kind of token.
    Symbol,
}

impl SqlToken<'_> {
    pub fn end(&self) -> usize {
        self.at + self.text.len()
    }

    /// True if the token is the keyword `word`, which is given in lower case.
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text.eq_ignore_ascii_case(word)
    }

    pub fn is_symbol(&self, symbol: &str) -> bool {
        self.kind == TokenKind::Symbol && self.text == symbol
    }

    /// True if the token is a space or a comment.
    pub fn is_blank(&self) -> bool {
        matches!(self.kind, TokenKind::Space | TokenKind::Comment)
    }

    /// Returns the number of a parameter; `None` for other tokens.
    pub fn parameter(&self) -> Option<u32> {
        if self.kind == TokenKind::Parameter { self.text[1..].parse().ok() } else { None }
    }
}

/// The meaning of a backslash in a string without a prefix: `'it\'s'`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backslashes {
    /// A backslash is an ordinary character, as with `standard_conforming_strings = on`.
    #[default]
    Plain,
    /// A backslash escapes the next character, as in strings with the prefix `E`.
    Escape,
}

/// An iterator over the tokens of a text. The tokens cover the text without gaps.
#[derive(Debug, Clone)]
pub struct Tokens<'a> {
    text: &'a str,
    at: usize,
    backslashes: Backslashes,
    /// The kind of the previous token.
    before: TokenKind,
}

impl<'a> Tokens<'a> {
    /// Splits a text in whose strings backslashes are ordinary characters.
    pub fn of(text: &'a str) -> Self {
        Self::with(text, Backslashes::Plain)
    }

    /// Splits a text. `backslashes` says what a backslash means in its strings.
    pub fn with(text: &'a str, backslashes: Backslashes) -> Self {
        Self { text, at: 0, backslashes, before: TokenKind::Space }
    }

    /// Returns the kind of the next token, and the byte offset at which it ends.
    fn scan_token(&self) -> (TokenKind, usize) {
        let (text, at) = (self.text.as_bytes(), self.at);
        let next = text.get(at + 1).copied().unwrap_or(0);
        if let Some(end) = comment_end(text, at) {
            return (TokenKind::Comment, end);
        }
        match text[at] {
            c if c.is_ascii_whitespace() => (TokenKind::Space, run(text, at, |c| c.is_ascii_whitespace())),
            b'\'' => (TokenKind::Text, self.string_end(at)),
            b'"' => (TokenKind::QuotedName, doubled_end(text, at)),
            b'e' | b'E' if next == b'\'' => (TokenKind::Text, escape_string_end(text, at + 1)),
            b'n' | b'N' if next == b'\'' => (TokenKind::Text, self.string_end(at + 1)),
            b'b' | b'B' | b'x' | b'X' if next == b'\'' => (TokenKind::Text, doubled_end(text, at + 1)),
            b'u' | b'U' if next == b'&' && text.get(at + 2) == Some(&b'\'') => {
                (TokenKind::Text, doubled_end(text, at + 2))
            }
            b'u' | b'U' if next == b'&' && text.get(at + 2) == Some(&b'"') => {
                (TokenKind::QuotedName, doubled_end(text, at + 2))
            }
            c if c.is_ascii_digit() => (TokenKind::Number, number_end(text, at)),
            // Behind a name, a point does not begin a number, but separates a table from its column.
            b'.' if next.is_ascii_digit() && !matches!(self.before, TokenKind::Word | TokenKind::QuotedName) => {
                (TokenKind::Number, number_end(text, at))
            }
            c if is_name(c) => (TokenKind::Word, run(text, at, |c| is_name(c) || c == b'$')),
            b'$' if next.is_ascii_digit() => (TokenKind::Parameter, run(text, at + 1, |c| c.is_ascii_digit())),
            b'$' => match dollar_quoted_end(text, at) {
                Some(end) => (TokenKind::Text, end),
                None => (TokenKind::Symbol, at + 1),
            },
            _ => (TokenKind::Symbol, at + 1),
        }
    }

    /// Returns the byte offset at which a string without a prefix ends that begins at `at`.
    fn string_end(&self, at: usize) -> usize {
        match self.backslashes {
            Backslashes::Plain => doubled_end(self.text.as_bytes(), at),
            Backslashes::Escape => escape_string_end(self.text.as_bytes(), at),
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = SqlToken<'a>;

    fn next(&mut self) -> Option<SqlToken<'a>> {
        if self.at == self.text.len() {
            return None;
        }
        let (kind, end) = self.scan_token();
        let token = SqlToken { kind, at: self.at, text: &self.text[self.at..end] };
        (self.at, self.before) = (end, kind);
        Some(token)
    }
}

fn run(text: &[u8], at: usize, is_its: impl Fn(u8) -> bool) -> usize {
    text[at..].iter().position(|c| !is_its(*c)).map_or(text.len(), |length| at + length)
}

/// Returns the byte offset at which a quoted text ends. A doubled quote stands for a quote within the text.
fn doubled_end(text: &[u8], at: usize) -> usize {
    let mut end = quoted_end(text, at);
    while text.get(end) == Some(&text[at]) {
        end = quoted_end(text, end);
    }
    end
}

/// Returns the byte offset at which a number ends. It consists of digits with `_`, a fraction and an exponent, or of
/// digits of another base behind `0x`, `0o` or `0b`.
fn number_end(text: &[u8], at: usize) -> usize {
    let is_digit = |c: u8| c.is_ascii_digit() || c == b'_';
    if text[at] == b'0' && matches!(text.get(at + 1), Some(b'x' | b'X' | b'o' | b'O' | b'b' | b'B')) {
        let end = run(text, at + 2, |c| c.is_ascii_hexdigit() || c == b'_');
        return if end > at + 2 { end } else { at + 1 };
    }
    let mut end = run(text, at, is_digit);
    if text.get(end) == Some(&b'.') && text.get(end + 1) != Some(&b'.') {
        end = run(text, end + 1, is_digit);
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        let digits = run(text, end + 1 + sign, |c| c.is_ascii_digit());
        if digits > end + 1 + sign {
            return digits;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds(text: &str) -> Vec<(TokenKind, &str)> {
        Tokens::of(text).filter(|token| token.kind != TokenKind::Space).map(|token| (token.kind, token.text)).collect()
    }

    #[test]
    fn values_are_told_from_names() {
        for text in [
            "'a''b'",
            "''",
            "E'a\\'b'",
            "e'\\\\'",
            "$$a$b$$",
            "$f$ $$ $f$",
            "B'01'",
            "X'ff'",
            "N'a'",
            "U&'\\0061'",
            "'é\n'",
        ] {
            assert_eq!(kinds(text), [(TokenKind::Text, text)]);
        }
        for text in ["1", "1.5", "1.", ".5", "1e10", "1.5E-3", "0x1F", "1_000", "0b01"] {
            assert_eq!(kinds(text), [(TokenKind::Number, text)]);
        }
        for text in ["a1", "_1", "é1", "a$1", "e1", "x"] {
            assert_eq!(kinds(text), [(TokenKind::Word, text)]);
        }
        for text in ["\"a'1\"\"b\"", "U&\"\\0061\""] {
            assert_eq!(kinds(text), [(TokenKind::QuotedName, text)]);
        }
        assert_eq!(kinds("$12")[0].0, TokenKind::Parameter);
        assert_eq!(Tokens::of("$12").next().unwrap().parameter(), Some(12));
    }

    #[test]
    fn tokens_end_where_the_next_begins() {
        let expected =
            [(TokenKind::Number, "1"), (TokenKind::Symbol, "."), (TokenKind::Symbol, "."), (TokenKind::Number, "2")];
        assert_eq!(kinds("1..2")[..2], expected[..2]);
        assert_eq!(kinds("1e")[0], (TokenKind::Number, "1"));
        assert_eq!(kinds("t.5"), [(TokenKind::Word, "t"), (TokenKind::Symbol, "."), (TokenKind::Number, "5")]);
        assert_eq!(kinds("-5"), [(TokenKind::Symbol, "-"), (TokenKind::Number, "5")]);
        assert_eq!(
            kinds("a--'b\n'c'"),
            [(TokenKind::Word, "a"), (TokenKind::Comment, "--'b"), (TokenKind::Text, "'c'")]
        );
    }

    proptest! {
        #[test]
        fn tokens_cover_any_text(text in "([-a-zA-Z0-9_ '\"$.;,()/*\\\\\né]|'a'|E'|\\$\\$|/\\*|\\*/|--){0,40}") {
            let mut at = 0;
            for token in Tokens::of(&text) {
                prop_assert_eq!(token.at, at);
                prop_assert!(!token.text.is_empty());
                at = token.end();
            }
            prop_assert_eq!(at, text.len());
        }
    }
}
