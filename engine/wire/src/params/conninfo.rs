//! Connection strings of the form `keyword=value ...`.

use super::error::ParamsError;
use super::options::Options;

/// Reads a connection string into the options, over any earlier values.
///
/// Values may be quoted with `'`; a backslash takes the next character as it is, inside and outside of quotes; blanks
/// may surround the `=`. Source: PostgreSQL 18 documentation, 32.1.1.1.
pub(super) fn parse(text: &str, options: &mut Options) -> Result<(), ParamsError> {
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let end = rest.find(|c| c == '=' || is_space(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let after = after
            .trim_start_matches(is_space)
            .strip_prefix('=')
            .ok_or_else(|| ParamsError::MissingEquals(name.to_owned()))?
            .trim_start_matches(is_space);
        let (value, after) = match after.strip_prefix('\'') {
            Some(quoted) => quoted_value(quoted)?,
            None => bare_value(after),
        };
        options.store(name, &value)?;
        rest = after.trim_start_matches(is_space);
    }
    Ok(())
}

/// A value up to the next blank, and what follows it.
fn bare_value(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            c if is_space(c) => return (value, &text[at..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            c => value.push(c),
        }
    }
    (value, "")
}

/// A value up to the closing quote, and what follows that.
fn quoted_value(text: &str) -> Result<(String, &str), ParamsError> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\'' => return Ok((value, &text[at + 1..])),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            c => value.push(c),
        }
    }
    Err(ParamsError::UnterminatedQuote)
}

/// What C's `isspace` takes for a blank.
pub(super) fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Result<Options, ParamsError> {
        let mut options = Options::default();
        parse(text, &mut options).map(|()| options)
    }

    fn message(text: &str) -> String {
        parsed(text).err().unwrap().to_string()
    }

    #[test]
    fn blanks_may_surround_everything() {
        let options = parsed("  host = a\tport=\n1  dbname='x y'user=u").unwrap();
        assert_eq!(options.get("host"), Some("a"));
        assert_eq!(options.get("port"), Some("1"));
        assert_eq!(options.get("dbname"), Some("x y"));
        assert_eq!(options.get("user"), Some("u"));
    }

    #[test]
    fn backslashes_escape_inside_and_outside_of_quotes() {
        let options = parsed(r"password='it\'s \\' user=a\ b\'c\").unwrap();
        assert_eq!(options.get("password"), Some(r"it's \"));
        assert_eq!(options.get("user"), Some("a b'c"));
    }

    #[test]
    fn a_value_may_be_empty() {
        assert_eq!(parsed("host='' port=1").unwrap().get("host"), Some(""));
        assert_eq!(parsed("host=").unwrap().get("host"), Some(""));
        let swallowed = parsed("host= port=1").unwrap();
        assert_eq!(swallowed.get("host"), Some("port=1"));
    }

    #[test]
    fn errors_have_libpq_wording() {
        assert_eq!(message("host port=1"), "missing \"=\" after \"host\" in connection info string");
        assert_eq!(message("host='a"), "unterminated quoted string in connection info string");
        assert_eq!(message("hots=a"), "invalid connection option \"hots\"");
        assert_eq!(message("=a"), "invalid connection option \"\"");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,80}") {
            let _ = parsed(&text);
        }

        #[test]
        fn a_quoted_value_comes_back_as_it_was(value in "[^\0]{0,40}") {
            let quoted = value.replace('\\', r"\\").replace('\'', r"\'");
            let options = parsed(&format!("user = '{quoted}' port=7")).unwrap();
            prop_assert_eq!(options.get("user"), Some(value.as_str()));
            prop_assert_eq!(options.get("port"), Some("7"));
        }
    }
}
