//! Splits a script into statements and backslash commands, as psql's scanner does. A semicolon ends a statement unless
//! it stands within quotes, comments, parentheses or the body of an SQL function. A backslash ends a statement unless
//! it stands within quotes or comments.

use ground::c_numbers::is_space;
use ground::sql;
use ground::sql::is_name;

/// The reason for which the scanner ends a piece of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Semicolon,
    /// A backslash command. The scanner stands behind its backslash.
    Backslash,
    End,
}

/// The number of words at the beginning of a statement by which `CREATE [OR REPLACE] {FUNCTION | PROCEDURE}` is
/// recognized.
const FIRST_WORDS: usize = 4;

/// Scans a script. Parentheses and function bodies that are open before a backslash command are still open behind it.
#[derive(Debug)]
pub struct Scanner<'a> {
    text: &'a [u8],
    /// The offset of the next byte to scan. The parser of a backslash command moves it behind the command.
    pub at: usize,
    /// The offset at which the SQL that was returned last begins.
    pub begin: usize,
    parentheses: usize,
    /// The number of `BEGIN` and `CASE` in the body of a function to which the scanner has not found the `END` yet.
    blocks: usize,
    words: usize,
    /// The first letters of the words at the beginning of the statement, as far as the words occur in `CREATE FUNCTION`
    /// and similar commands.
    initials: [u8; FIRST_WORDS],
}

impl<'a> Scanner<'a> {
    /// Makes a scanner that starts at the beginning. If the text has a zero byte, it ends there.
    pub fn new(text: &'a [u8]) -> Self {
        let end = text.iter().position(|c| *c == 0).unwrap_or(text.len());
        Self { text: &text[..end], at: 0, begin: 0, parentheses: 0, blocks: 0, words: 0, initials: [0; FIRST_WORDS] }
    }

    /// Returns the whole text of the script.
    pub fn text(&self) -> &'a [u8] {
        self.text
    }

    /// Returns the SQL up to the next semicolon, the next backslash command or the end of the script, and which of the
    /// three ended it. Spaces and comments before the SQL are left out. The SQL is empty if there is none.
    pub fn scan(&mut self) -> (Vec<u8>, Ending) {
        let mut sql = Vec::new();
        loop {
            let start = self.at;
            if sql.is_empty() {
                self.begin = start;
            }
            match self.text[start..] {
                [] => return (sql, Ending::End),
                [b'\\', c @ (b';' | b':'), ..] => {
                    self.at += 2;
                    sql.push(c);
                    if c == b';' {
                        self.words = 0;
                    }
                    continue;
                }
                [b'\\', ..] => {
                    self.at += 1;
                    return (sql, Ending::Backslash);
                }
                [b';', ..] => {
                    self.at += 1;
                    sql.push(b';');
                    if self.parentheses == 0 && self.blocks == 0 {
                        self.words = 0;
                        return (sql, Ending::Semicolon);
                    }
                    continue;
                }
                [b':', b'{', b'?', ..] => {
                    if let Some(length) = self.variable(3, b'}') {
                        self.at += length;
                        // In psql this syntax tests whether the variable is set. When pgbench reads a script, no
                        // variable is set.
                        sql.extend_from_slice(b"FALSE");
                        continue;
                    }
                    self.at += 1;
                }
                [c, ..] if is_space(c) => {
                    self.at += 1;
                    if sql.is_empty() {
                        continue;
                    }
                }
                [b'-', b'-', ..] => {
                    self.comment();
                    if sql.is_empty() {
                        continue;
                    }
                }
                _ => self.token(),
            }
            sql.extend_from_slice(&self.text[start..self.at]);
        }
    }

    /// Moves over one token. The caller has checked that the token neither ends the statement nor is a comment or
    /// another text that the statement does not contain.
    fn token(&mut self) {
        let rest = &self.text[self.at..];
        match rest {
            [b'/', b'*', ..] => self.comment(),
            // A doubled quote within the text is scanned as another quoted text.
            [b'\'' | b'"', ..] => self.at = sql::quoted_end(self.text, self.at),
            [b'e' | b'E', b'\'', ..] => self.escape_string(),
            [b'$', ..] => self.dollar(),
            [b':', quote @ (b'\'' | b'"'), ..] => self.at += self.variable(2, *quote).unwrap_or(1),
            [b':', b':', ..] => self.at += 2,
            [b':', ..] => {
                self.at += 1;
                self.skip_while(is_name);
            }
            [b'(', ..] => {
                self.parentheses += 1;
                self.at += 1;
            }
            [b')', ..] => {
                self.parentheses = self.parentheses.saturating_sub(1);
                self.at += 1;
            }
            [b'0'..=b'9', ..] | [b'.', b'0'..=b'9', ..] => self.number(),
            [c, ..] if is_name(*c) => self.word(),
            _ => self.at += 1,
        }
    }

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) {
        self.at += self.text[self.at..].iter().take_while(|c| wanted(**c)).count();
    }

    fn comment(&mut self) {
        self.at = sql::comment_end(self.text, self.at).unwrap_or(self.at);
    }

    /// Moves over a string with backslash escapes, including its continuation on other lines.
    fn escape_string(&mut self) {
        let mut quote = Some(self.at + 1);
        while let Some(at) = quote {
            self.at = sql::escape_string_end(self.text, at);
            quote = self.continuation();
        }
    }

    /// Returns the offset of the quote at which a string continues. Between the quote that ends the first part of the
    /// string and this quote there must be white space or comments with a line end.
    fn continuation(&self) -> Option<usize> {
        let (mut at, mut lines) = (self.at, false);
        loop {
            match &self.text[at..] {
                [b'\'', ..] if lines => return Some(at),
                [c, ..] if is_space(*c) => {
                    lines |= matches!(c, b'\n' | b'\r');
                    at += 1;
                }
                [b'-', b'-', ..] => at = sql::comment_end(self.text, at)?,
                _ => return None,
            }
        }
    }

    /// Moves over a string in dollar quotes, a single dollar sign, or a parameter such as `$1`.
    fn dollar(&mut self) {
        if let Some(end) = sql::dollar_quoted_end(self.text, self.at) {
            self.at = end;
            return;
        }
        self.at += 1;
        if self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.skip_digits();
            self.skip_junk();
        }
    }

    /// Moves over a number, with or without a fraction. A sign in the exponent belongs to the number, so that `1e--`
    /// does not begin a comment at its first minus.
    fn number(&mut self) {
        self.skip_digits();
        if let [b'.', next, ..] = self.text[self.at..] {
            if next != b'.' {
                self.at += 1;
                self.skip_digits();
            }
        }
        if let [b'e' | b'E', b'+' | b'-', rest @ ..] = &self.text[self.at..] {
            let is_whole = rest.first().is_some_and(u8::is_ascii_digit);
            self.at += 2;
            self.skip_digits();
            if !is_whole {
                return;
            }
        }
        self.skip_junk();
    }

    fn skip_digits(&mut self) {
        self.skip_while(|c| c.is_ascii_digit());
    }

    /// Moves over letters that directly follow a number. They belong to the number and do not form a word.
    fn skip_junk(&mut self) {
        if self.text.get(self.at).is_some_and(|c| is_name(*c)) {
            self.skip_while(is_word);
        }
    }

    /// Moves over a keyword or a name. In the definition of a function, `BEGIN` opens a body that `END` closes.
    fn word(&mut self) {
        let start = self.at;
        self.skip_while(is_word);
        let word = &self.text[start..self.at];
        let is = |keyword: &str| word.eq_ignore_ascii_case(keyword.as_bytes());
        if self.words == 0 {
            self.initials = [0; FIRST_WORDS];
        }
        if let Some(initial) = self.initials.get_mut(self.words) {
            if ["create", "function", "procedure", "or", "replace"].into_iter().any(is) {
                *initial = word[0].to_ascii_lowercase();
            }
        }
        self.words += 1;
        let defines = matches!(self.initials, [b'c', b'f' | b'p', ..] | [b'c', b'o', b'r', b'f' | b'p']);
        if defines && self.parentheses == 0 {
            if is("begin") || is("case") && self.blocks > 0 {
                self.blocks += 1;
            } else if is("end") {
                self.blocks = self.blocks.saturating_sub(1);
            }
        }
    }

    /// Returns the length of `:'name'`, `:"name"` or `:{?name}` at the current position; `None` if there is no such
    /// text. `opening` is the number of bytes before the name, and `closing` is the byte behind it.
    fn variable(&self, opening: usize, closing: u8) -> Option<usize> {
        let rest = &self.text[self.at + opening..];
        let name = rest.iter().take_while(|c| is_name(**c)).count();
        (name > 0 && rest.get(name) == Some(&closing)).then_some(opening + name + 1)
    }
}

/// True if a byte can belong to a word.
fn is_word(c: u8) -> bool {
    is_name(c) || c == b'$'
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the statements of a text. Backslash commands are skipped up to the ends of their lines.
    fn statements(text: &str) -> Vec<String> {
        let mut scanner = Scanner::new(text.as_bytes());
        let mut found = Vec::new();
        loop {
            let (sql, ending) = scanner.scan();
            if !sql.is_empty() {
                found.push(String::from_utf8(sql).unwrap());
            }
            match ending {
                Ending::End => return found,
                Ending::Backslash => scanner.skip_while(|c| c != b'\n'),
                Ending::Semicolon => {}
            }
        }
    }

    #[test]
    fn semicolons_end_statements_outside_of_quotes_comments_and_parentheses() {
        for whole in [
            "SELECT ';';",
            "SELECT 'it''s;';",
            "SELECT \"a;b\";",
            "SELECT $$;$$, $a$;$$;$b$;$a$;",
            "SELECT E'\\';', e'\\\\';",
            "SELECT /* ; /* ; */ ; */ 1;",
            "SELECT 1 -- ;\n;",
            "SELECT (1; 2);",
            "SELECT a$$, b;",
            "SELECT 1 +/* ; */ 2;",
            "SELECT E'a'\n'\\';';",
            "SELECT $1$$;$$;",
            "SELECT U&'\\';",
            "SELECT a::b$c$;",
            "SELECT 1.5e--';';",
            "SELECT 1e+5$$;$$ 1e5a$$;",
        ] {
            assert_eq!(statements(&format!("{whole} SELECT 2;")), [whole, "SELECT 2;"], "{whole}");
        }
    }

    #[test]
    fn leading_space_and_line_comments_are_left_out() {
        assert_eq!(statements(" -- a\r\n\t-- b\nSELECT 1;-- c\n"), ["SELECT 1;"]);
        assert_eq!(statements("/* a */ SELECT 1\n"), ["/* a */ SELECT 1\n"]);
        assert_eq!(statements("-- nothing"), Vec::<String>::new());
    }

    #[test]
    fn a_backslash_ends_a_statement_wherever_it_stands() {
        assert_eq!(statements("SELECT 1 \\gset a\nSELECT '\\n' \\x\n"), ["SELECT 1 ", "SELECT '\\n' "]);
    }

    #[test]
    fn escaped_semicolons_and_colons_stay_in_the_statement() {
        assert_eq!(statements("SELECT 1\\; SELECT 2\\:x;"), ["SELECT 1; SELECT 2:x;"]);
    }

    #[test]
    fn bodies_of_functions_are_whole() {
        let body =
            "CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END;";
        assert_eq!(statements(&format!("{body} BEGIN; END;")), [body, "BEGIN;", "END;"]);
        let procedure = "create procedure p() begin atomic select 1; end;";
        assert_eq!(statements(&format!("{procedure}select 1;")), [procedure, "select 1;"]);
        assert_eq!(statements("create table t (); begin;"), ["create table t ();", "begin;"]);
    }

    #[test]
    fn open_parentheses_stay_open_over_commands() {
        assert_eq!(statements("SELECT (1 \\x\n;) ; SELECT 2;"), ["SELECT (1 ", ";) ;", "SELECT 2;"]);
    }

    #[test]
    fn what_is_not_closed_goes_to_the_end() {
        for text in ["SELECT 'a;", "SELECT \"a;", "SELECT $x$;", "/* ;", "SELECT E'\\", "SELECT E'\\';", "(;"] {
            assert_eq!(statements(text), [text], "{text}");
        }
    }

    #[test]
    fn no_variable_is_set_yet() {
        assert_eq!(statements("SELECT :{?x}, :{?}, :'a;b', :'ab';"), ["SELECT FALSE, :{?}, :'a;b', :'ab';"]);
    }
}
