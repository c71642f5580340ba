//! Splits a backslash command into words. Words are separated by spaces. The command ends with its line, unless the
//! line ends with a backslash.

use super::expression::continuation;

/// A word of a command, with the offset at which it starts in the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub text: Vec<u8>,
    pub at: usize,
}

impl Word {
    /// Returns the word as text, for messages and names.
    pub fn shown(&self) -> String {
        ground::text::of(&self.text)
    }
}

/// Returns the first word from byte `at` on, and moves `at` behind it. If the command has no more words, returns `None`
/// and moves `at` behind the line.
pub fn next(text: &[u8], at: &mut usize) -> Option<Word> {
    loop {
        let rest = &text[*at..];
        match rest {
            [] => return None,
            [b'\n', ..] => {
                *at += 1;
                return None;
            }
            [c, ..] if is_blank(*c) => *at += 1,
            _ if continuation(rest) > 0 => *at += continuation(rest),
            _ => {
                let start = *at;
                let length = rest.iter().take_while(|c| !is_blank(**c) && **c != b'\n').count();
                *at += length;
                return Some(Word { text: without_mark(text, start, at), at: start });
            }
        }
    }
}

/// Returns the word from byte `start` to `at`. If the word ends with the backslash that continues the line, it is left
/// out, and `at` moves behind it.
fn without_mark(text: &[u8], start: usize, at: &mut usize) -> Vec<u8> {
    let word = &text[start..*at];
    match continuation(&text[*at - 1..]) {
        0 => word.to_vec(),
        length => {
            *at += length - 1;
            word[..word.len() - 1].to_vec()
        }
    }
}

/// True for a space that does not end a line.
fn is_blank(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> (Vec<String>, usize) {
        let (mut at, mut found) = (0, Vec::new());
        while let Some(word) = next(text.as_bytes(), &mut at) {
            found.push(word.shown());
        }
        (found, at)
    }

    #[test]
    fn words_end_at_space_and_commands_at_the_line() {
        assert_eq!(words("a  b:c\td\r\ne"), (vec!["a".into(), "b:c".into(), "d".into()], 10));
        assert_eq!(words(""), (vec![], 0));
    }

    #[test]
    fn a_backslash_continues_the_line_even_behind_a_word() {
        let expected = vec!["a".to_owned(), "b".to_owned(), "c\\".to_owned(), "d".to_owned()];
        assert_eq!(words("a\\\n b \\\r\n c\\\\\nd").0, expected);
        assert_eq!(words("a\\b").0, ["a\\b"]);
    }
}
