//! Splits an expression into tokens. An expression ends with its line, unless the line ends with a backslash.

use ground::c_numbers;
use ground::c_numbers::NumberError;
use ground::sql::is_name;

/// A token of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum ExpressionToken {
    /// An operator or a punctuation sign, such as `<=`.
    Sign(&'static str),
    Keyword(&'static str),
    Bool(bool),
    Int(i64),
    /// The number 9223372036854775808, which is a valid integer only with a minus in front of it.
    IntLimit,
    Double(f64),
    Variable(String),
    /// A word that is not a keyword. The parser takes it for the name of a function.
    Name(String),
    End,
}

/// The keywords, which may be in upper or lower case.
const KEYWORDS: [&str; 12] =
    ["and", "or", "not", "null", "is", "isnull", "notnull", "case", "when", "then", "else", "end"];

/// The operators and punctuation signs. A longer sign stands before the shorter ones with which it begins, so that it
/// is recognized first.
const SIGNS: [&str; 21] =
    ["<>", "!=", "<=", ">=", "<<", ">>", "+", "-", "*", "/", "%", "=", "<", ">", "|", "&", "#", "~", "(", ")", ","];

/// A mistake in an expression: pgbench's message, the token in question, and the offset behind that token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    pub message: &'static str,
    pub more: Option<String>,
    pub at: usize,
}

/// Returns the tokens of an expression one after another.
#[derive(Debug)]
pub struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    ended: bool,
}

impl<'a> Lexer<'a> {
    /// Makes a lexer that starts at byte `at` of a script.
    pub fn new(text: &'a [u8], at: usize) -> Self {
        Self { text, at, ended: false }
    }

    /// Returns the offset behind the token that was returned last.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Returns the next token. Behind the last token it always returns `End`.
    pub fn next(&mut self) -> Result<ExpressionToken, Mistake> {
        if self.ended {
            return Ok(ExpressionToken::End);
        }
        self.skip_space();
        let rest = &self.text[self.at..];
        match rest {
            [] => {
                self.ended = true;
                Ok(ExpressionToken::End)
            }
            [b'\n', ..] => {
                self.ended = true;
                self.at += 1;
                Ok(ExpressionToken::End)
            }
            [b':', c, ..] if is_name(*c) => {
                self.at += 1;
                Ok(ExpressionToken::Variable(self.take(is_name)))
            }
            [b'0'..=b'9', ..] | [b'.', b'0'..=b'9', ..] => self.number(),
            [c, ..] if is_name(*c) => Ok(word(self.take(is_name))),
            [c, ..] => self.sign(*c),
        }
    }

    /// Reads on to the end of the line after a mistake, and returns the last mistake of the line. As in pgbench, a
    /// later token that cannot be read replaces the earlier mistake.
    pub fn finish(&mut self, mut mistake: Mistake) -> Mistake {
        loop {
            match self.next() {
                Ok(ExpressionToken::End) => return mistake,
                Ok(_) => {}
                Err(later) => mistake = later,
            }
        }
    }

    /// Returns a mistake at the token that was returned last.
    pub fn mistake(&self, message: &'static str, more: Option<String>) -> Mistake {
        Mistake { message, more, at: self.at }
    }

    fn skip_space(&mut self) {
        loop {
            match &self.text[self.at..] {
                [b' ' | b'\t' | b'\r' | 0x0b | 0x0c, ..] => self.at += 1,
                rest => match continuation(rest) {
                    0 => return,
                    length => self.at += length,
                },
            }
        }
    }

    fn take(&mut self, wanted: impl Fn(u8) -> bool) -> String {
        let rest = &self.text[self.at..];
        let length = rest.iter().take_while(|c| wanted(**c)).count();
        self.at += length;
        ground::text::of(&rest[..length])
    }

    fn sign(&mut self, first: u8) -> Result<ExpressionToken, Mistake> {
        let rest = &self.text[self.at..];
        if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign.as_bytes())) {
            self.at += sign.len();
            return Ok(ExpressionToken::Sign(sign));
        }
        self.at += 1;
        Err(self.mistake("unexpected character", Some(char::from(first).to_string())))
    }

    fn number(&mut self) -> Result<ExpressionToken, Mistake> {
        let rest = &self.text[self.at..];
        let digits = |from: usize| rest[from..].iter().take_while(|c| c.is_ascii_digit()).count();
        let whole = digits(0);
        let mut length = whole;
        if rest.get(length) == Some(&b'.') {
            length += 1;
            length += digits(length);
        }
        if matches!(rest.get(length), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(rest.get(length + 1), Some(b'+' | b'-')));
            let exponent = rest.get(length + 1 + sign..).map_or(0, |_| digits(length + 1 + sign));
            if exponent > 0 {
                length += 1 + sign + exponent;
            }
        }
        let text = &rest[..length];
        self.at += length;
        if text == b"9223372036854775808" {
            return Ok(ExpressionToken::IntLimit);
        }
        let token = if length == whole {
            c_numbers::integer(text).map(ExpressionToken::Int)
        } else {
            c_numbers::double(text).map(ExpressionToken::Double)
        };
        token.map_err(|_: NumberError| {
            let message = if length == whole { "bigint constant overflow" } else { "double constant overflow" };
            self.mistake(message, Some(ground::text::of(text)))
        })
    }
}

fn word(text: String) -> ExpressionToken {
    if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
        return ExpressionToken::Bool(text.eq_ignore_ascii_case("true"));
    }
    match KEYWORDS.into_iter().find(|word| text.eq_ignore_ascii_case(word)) {
        Some(keyword) => ExpressionToken::Keyword(keyword),
        None => ExpressionToken::Name(text),
    }
}

/// Returns the length of a backslash and a line end at the beginning of `text`, which continue the line. Returns 0 if
/// `text` does not begin with them.
pub fn continuation(text: &[u8]) -> usize {
    match text {
        [b'\\', b'\n', ..] => 2,
        [b'\\', b'\r', b'\n', ..] => 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<ExpressionToken> {
        let mut lexer = Lexer::new(text.as_bytes(), 0);
        let mut found = Vec::new();
        loop {
            match lexer.next().unwrap() {
                ExpressionToken::End => return found,
                token => found.push(token),
            }
        }
    }

    #[test]
    fn numbers_are_integers_unless_they_have_a_point_or_an_exponent() {
        assert_eq!(
            tokens("1 2. .5 1e3 1.5E-2"),
            [
                ExpressionToken::Int(1),
                ExpressionToken::Double(2.0),
                ExpressionToken::Double(0.5),
                ExpressionToken::Double(1000.0),
                ExpressionToken::Double(0.015),
            ]
        );
        assert_eq!(tokens("1e"), [ExpressionToken::Int(1), ExpressionToken::Name("e".into())]);
        assert_eq!(tokens("9223372036854775808"), [ExpressionToken::IntLimit]);
    }

    #[test]
    fn words_and_signs_need_no_space_between() {
        assert_eq!(
            tokens(":a<=b!=TRUE"),
            [
                ExpressionToken::Variable("a".into()),
                ExpressionToken::Sign("<="),
                ExpressionToken::Name("b".into()),
                ExpressionToken::Sign("!="),
                ExpressionToken::Bool(true),
            ]
        );
    }

    #[test]
    fn a_backslash_continues_the_line() {
        assert_eq!(
            tokens("1 \\\n 2\\\r\n3\n4"),
            [ExpressionToken::Int(1), ExpressionToken::Int(2), ExpressionToken::Int(3)]
        );
    }

    #[test]
    fn the_last_unreadable_word_of_a_line_is_reported() {
        let mut lexer = Lexer::new(b"$ 99999999999999999999 @ 1\n!", 0);
        let first = lexer.next().unwrap_err();
        assert_eq!(first.more.as_deref(), Some("$"));
        assert_eq!(lexer.finish(first).more.as_deref(), Some("@"));
        assert_eq!(lexer.position(), 27);
    }
}
