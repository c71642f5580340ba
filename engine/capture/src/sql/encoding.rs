//! Finds the values by which a statement chooses the encoding of its session. The texts of a capture are in UTF-8,
//! whatever encoding the application has chosen, so a replay has to send UTF8 in place of these values.

use std::borrow::Cow;
use std::ops::Range;

use super::tokens::{SqlToken, Tokens};

const SETTING: &str = "client_encoding";

/// A parameter of a statement that chooses the encoding of its session: `set_config('client_encoding', $1, false)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodingParameter {
    /// The number of the parameter that names the setting, counted from 1; `None` if the text names `client_encoding`.
    pub name: Option<u32>,
    /// The number of the parameter whose value is the encoding, counted from 1.
    pub value: u32,
}

/// The values by which a statement chooses the encoding.
#[derive(Default)]
struct Found {
    texts: Vec<Range<usize>>,
    parameters: Vec<EncodingParameter>,
}

/// True if statements with this text, or with this text as their template, may choose an encoding. This quick check
/// spares most statements the parsing.
pub fn may_choose_encoding(text: &str) -> bool {
    [SETTING, "names", "set_config"].iter().any(|word| has_word(text, word))
}

/// Returns the text of a statement with UTF8 in place of each encoding that it chooses.
pub fn in_utf8(text: &str) -> Cow<'_, str> {
    let found = find(text);
    if found.texts.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut changed, mut done) = (String::new(), 0);
    for place in found.texts {
        changed += &text[done..place.start];
        changed += "'UTF8'";
        done = place.end;
    }
    Cow::Owned(changed + &text[done..])
}

/// Returns the parameters of a statement that choose an encoding.
pub fn encoding_parameters(text: &str) -> Vec<EncodingParameter> {
    find(text).parameters
}

/// True if a value is the name of the setting for the encoding.
pub fn is_encoding_setting(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(SETTING.as_bytes())
}

fn find(text: &str) -> Found {
    let tokens: Vec<_> = Tokens::of(text).filter(|token| !token.is_blank()).collect();
    let mut found = Found::default();
    let mut begins = true;
    for (at, token) in tokens.iter().enumerate() {
        let rest = &tokens[at + 1..];
        if begins && token.is_word("set") {
            found.texts.extend(set_value(rest).map(|value| value.at..value.end()));
        } else if token.is_word("set_config") {
            found.add_call(rest);
        }
        begins = token.is_symbol(";");
    }
    found
}

/// Returns the value of a statement `SET client_encoding TO value` or `SET NAMES value`, of which the tokens behind SET
/// are given.
fn set_value<'t, 'a>(tokens: &'t [SqlToken<'a>]) -> Option<&'t SqlToken<'a>> {
    let is_scope = |token: &SqlToken<'_>| token.is_word("session") || token.is_word("local");
    let tokens = match tokens {
        [first, rest @ ..] if is_scope(first) => rest,
        _ => tokens,
    };
    match tokens {
        [names, value, ..] if names.is_word("names") => Some(value),
        [name, to, value, ..] if is_setting(name) && (to.is_word("to") || to.is_symbol("=")) => Some(value),
        _ => None,
    }
}

impl Found {
    /// Adds the value of a call of `set_config`, of which the tokens behind its name are given.
    fn add_call(&mut self, tokens: &[SqlToken<'_>]) {
        let [open, tokens @ ..] = tokens else { return };
        let name = argument(tokens);
        let value = argument(tokens.get(name.len() + 1..).unwrap_or_default());
        let (Some(name), Some(first), Some(last)) = (name.first(), value.first(), value.last()) else { return };
        if !open.is_symbol("(") || (name.parameter().is_none() && !is_setting(name)) {
            return;
        }
        match (name.parameter(), first.parameter()) {
            (name, Some(value)) => self.parameters.push(EncodingParameter { name, value }),
            (None, None) => self.texts.push(first.at..last.end()),
            (Some(_), None) => {}
        }
    }
}

/// Returns the tokens of an argument of a function, up to the comma or the parenthesis behind it.
fn argument<'t, 'a>(tokens: &'t [SqlToken<'a>]) -> &'t [SqlToken<'a>] {
    let mut depth = 0;
    let length = tokens.iter().position(|token| {
        match token.text {
            "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            _ => {}
        }
        depth < 0 || (depth == 0 && token.is_symbol(","))
    });
    &tokens[..length.unwrap_or(tokens.len())]
}

fn is_setting(token: &SqlToken<'_>) -> bool {
    is_encoding_setting(token.text.trim_matches(['\'', '"']).as_bytes())
}

/// True if a text contains a word in upper or lower case. `word` is given in lower case.
fn has_word(text: &str, word: &str) -> bool {
    text.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_encodings_become_utf8() {
        for (text, changed) in [
            ("SET client_encoding TO 'LATIN1'", "SET client_encoding TO 'UTF8'"),
            ("set session \"client_encoding\" = sjis;", "set session \"client_encoding\" = 'UTF8';"),
            ("/* a */ SET LOCAL NAMES 'latin1'", "/* a */ SET LOCAL NAMES 'UTF8'"),
            (
                "SET DateStyle='ISO'; SET client_encoding TO 'LATIN1'; SELECT 'x'",
                "SET DateStyle='ISO'; SET client_encoding TO 'UTF8'; SELECT 'x'",
            ),
            (
                "select set_config('Client_Encoding', 'LAT' || 'IN1', false), f(1)",
                "select set_config('Client_Encoding', 'UTF8', false), f(1)",
            ),
        ] {
            assert!(may_choose_encoding(text), "{text}");
            assert_eq!(in_utf8(text), changed);
        }
        for text in [
            "SET work_mem = '1MB'",
            "select client_encoding from names",
            "reset client_encoding",
            "update t set client_encoding = 'x'",
            "select set_config('work_mem', '1MB', false)",
            "select set_config('client_encoding', $1, false)",
            "select set_config(",
            "set names",
        ] {
            assert_eq!(in_utf8(text), text);
        }
    }

    #[test]
    fn parameters_that_choose_an_encoding_are_found() {
        let of_text = EncodingParameter { name: None, value: 1 };
        let of_both = EncodingParameter { name: Some(2), value: 3 };
        let text = "select set_config('client_encoding', $1, false), pg_catalog.set_config($2, $3::text, true)";
        assert_eq!(encoding_parameters(text), [of_text, of_both]);
        assert!(encoding_parameters("select set_config('work_mem', $1, false), $2").is_empty());
    }
}
