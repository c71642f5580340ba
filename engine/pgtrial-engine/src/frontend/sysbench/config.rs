//! Reads the file of the option `--config-file`. Each line sets one option: `NAME = VALUE`.
//!
//! A value is one word. The value of a list may have several words, separated by commas or white space. A word in
//! single or double quotes may contain any character except this quote. Empty lines and lines in square brackets are
//! ignored, and so is the rest of a line after a `#` at the beginning of a word.
//!
//! sysbench 1.0.20 reads some lines differently: a space before the equals sign becomes a part of the name, any value
//! of a switch means `on`, only the first of several words is used, and unknown options are ignored. Here spaces around
//! the equals sign are allowed, and unknown options and invalid values are errors.

use thiserror::Error;

/// A line of the file that sets an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigLine {
    /// The number of the line, counted from 1.
    pub number: usize,
    pub name: String,
    pub words: Vec<String>,
}

/// The error in a line of the file. The messages contain the number of the line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    #[error("unexpected EOL on line {0}")]
    OpenQuote(usize),
    #[error("line {0} is not of the form NAME=VALUE")]
    NoOption(usize),
    #[error("line {0} has text right after a closing quote")]
    AfterQuote(usize),
}

/// Reads the text of a whole file.
pub fn parse(text: &str) -> Result<Vec<ConfigLine>, ConfigError> {
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        let is_section = line.starts_with('[') && line.ends_with(']');
        if line.is_empty() || line.starts_with('#') || is_section {
            continue;
        }
        let (name, value) = line.split_once('=').ok_or(ConfigError::NoOption(number))?;
        let name = name.trim_end();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(ConfigError::NoOption(number));
        }
        lines.push(ConfigLine { number, name: name.to_owned(), words: words(value, number)? });
    }
    Ok(lines)
}

fn is_separator(c: char) -> bool {
    c == ',' || c.is_whitespace()
}

fn words(value: &str, number: usize) -> Result<Vec<String>, ConfigError> {
    let mut words = Vec::new();
    let mut rest = value.trim_start_matches(is_separator);
    while let Some(first) = rest.chars().next() {
        let after = match first {
            '#' => break,
            '\'' | '"' => {
                let (word, after) = rest[1..].split_once(first).ok_or(ConfigError::OpenQuote(number))?;
                words.push(word.to_owned());
                if after.starts_with(|c: char| !is_separator(c)) {
                    return Err(ConfigError::AfterQuote(number));
                }
                after
            }
            _ => {
                let (word, after) = rest.split_at(rest.find(is_separator).unwrap_or(rest.len()));
                words.push(word.to_owned());
                after
            }
        };
        rest = after.trim_start_matches(is_separator);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Vec<(usize, String, Vec<String>)> {
        parse(text).unwrap().into_iter().map(|line| (line.number, line.name, line.words)).collect()
    }

    fn values(line: &str) -> Vec<String> {
        parsed(line).remove(0).2
    }

    #[test]
    fn lines_have_a_name_and_words() {
        let text = "# comment\n[section]\n\nthreads=7\n time = 33 \nreport-checkpoints=1,2, 3 4\nempty=\n";
        let expected = [
            (4, "threads", vec!["7"]),
            (5, "time", vec!["33"]),
            (6, "report-checkpoints", vec!["1", "2", "3", "4"]),
            (7, "empty", vec![]),
        ];
        let found = parsed(text);
        let found: Vec<_> = found
            .iter()
            .map(|(number, name, words)| (*number, name.as_str(), words.iter().map(String::as_str).collect()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn quotes_keep_a_word_together() {
        assert_eq!(values("a='b, \"c' , \"it's\",d\"e"), ["b, \"c", "it's", "d\"e"]);
        assert_eq!(values("a=''"), [""]);
    }

    #[test]
    fn a_comment_starts_at_a_word() {
        assert_eq!(values("a=b#c # d"), ["b#c"]);
        assert_eq!(values("a='#b'"), ["#b"]);
    }

    #[test]
    fn what_is_not_understood_is_an_error_with_its_line() {
        assert_eq!(parse("a=1\nb='c"), Err(ConfigError::OpenQuote(2)));
        assert_eq!(parse("threads 4"), Err(ConfigError::NoOption(1)));
        assert_eq!(parse("=4"), Err(ConfigError::NoOption(1)));
        assert_eq!(parse("a b=4"), Err(ConfigError::NoOption(1)));
        assert_eq!(parse("a='b'c"), Err(ConfigError::AfterQuote(1)));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z=,'\"# \n\u{e9}\u{2003}]{0,40}") {
            let _ = parse(&text);
        }

        #[test]
        fn quoted_words_come_back(words in prop::collection::vec("[^'\r\n]{0,8}", 0..5)) {
            let quoted: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
            prop_assert_eq!(values(&format!("name={}", quoted.join(","))), words);
        }
    }
}
