//! Decides how the statements of each template are sent, once when the capture is opened.

use std::borrow::Cow;

use capture::format::{Protocol, Template};
use ground::sql;
use wire::statement::{QueryMode, Statement};

/// The way in which the statements of a template are sent.
pub struct TemplateRequest {
    pub kind: SendKind,
    /// The number of parameters that each of the statements has.
    pub parameters: usize,
    /// True if the statements end a transaction block.
    pub ends_block: bool,
    /// True if the statements drop the prepared statements of the session.
    pub discards: bool,
    /// True if the statements call `set_config`, which may choose an encoding.
    sets_config: bool,
}

impl TemplateRequest {
    /// Appends the text of a statement with these literals; one that would choose another encoding chooses UTF-8.
    pub fn write_text<'a>(
        &self,
        template: &Template,
        literals: impl Iterator<Item = Option<&'a [u8]>>,
        text: &mut Vec<u8>,
    ) {
        template.write_text(literals, text);
        if self.sets_config && has_word(text, b"client_encoding") {
            text.clear();
            text.extend_from_slice(CONFIG_OF_ENCODING);
        }
    }
}

/// The statement that is sent in place of one that calls `set_config` to choose another encoding.
const CONFIG_OF_ENCODING: &[u8] = b"SELECT set_config('client_encoding', 'UTF8', false)";

/// The statement that is sent in place of one that chooses another encoding: the texts of a capture are UTF-8,
/// whichever encoding the application had them in.
const ENCODING: &str = "SET client_encoding TO 'UTF8'";

/// The form in which the statements are sent.
pub enum SendKind {
    /// The statement is sent as a simple query: the template's text with the literals of the statement in it.
    Query(Template),
    /// The template's text with the literals in it is parsed and executed as the unnamed statement.
    Unnamed(Template),
    /// The statement is sent with parameters, in this mode.
    Values(Statement, QueryMode),
}

/// Returns the requests of all templates, in their order.
pub fn of(templates: &[Template]) -> Vec<TemplateRequest> {
    // A session remembers by these numbers what the server has parsed for it.
    let mut prepared = 0..;
    templates
        .iter()
        .map(|template| {
            let (parameters, has_literals) = (template.parameters as usize, template.has_literals());
            let template = in_utf8(template);
            let text = template.text.as_bytes();
            let statement = |id: usize| Statement::with_parameters(id, &format!("P{id}"), text, parameters);
            let kind = match template.protocol {
                Protocol::Simple => SendKind::Query(template.as_ref().clone()),
                Protocol::Extended | Protocol::Prepared if has_literals => SendKind::Unnamed(template.as_ref().clone()),
                Protocol::Extended => SendKind::Values(statement(0), QueryMode::Extended),
                Protocol::Prepared => {
                    SendKind::Values(statement(prepared.next().unwrap_or_default()), QueryMode::Prepared)
                }
            };
            let sets_config = has_word(text, b"set_config");
            TemplateRequest { kind, parameters, ends_block: ends_block(text), discards: discards(text), sets_config }
        })
        .collect()
}

/// Returns the template with a text that leaves the session in UTF-8, if its own chooses an encoding.
fn in_utf8(template: &Template) -> Cow<'_, Template> {
    match chooses_encoding(template.text.as_bytes()) {
        true => Cow::Owned(template.of_other_text(ENCODING)),
        false => Cow::Borrowed(template),
    }
}

/// Returns true if a statement is `SET client_encoding` or `SET NAMES`.
fn chooses_encoding(text: &[u8]) -> bool {
    let [first, second, third] = first_words(text);
    let name = if matches!(&*second, b"session" | b"local") { third } else { second };
    &*first == b"set" && matches!(&*name, b"client_encoding" | b"names")
}

/// Returns true if a text has a word, in lower case, whatever the case of its letters there.
fn has_word(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}

/// Returns true if a statement ends a transaction block. PREPARE TRANSACTION ends one too and is too rare to matter
/// here.
fn ends_block(text: &[u8]) -> bool {
    let [first, second, third] = first_words(text);
    match (&*first, &*second, &*third) {
        (b"commit" | b"rollback", b"prepared", _) => false,
        // ROLLBACK [WORK | TRANSACTION] TO SAVEPOINT
        (b"rollback" | b"abort", second, third) => second != b"to" && third != b"to",
        (b"commit" | b"end", ..) => true,
        _ => false,
    }
}

/// Returns true if a statement drops all prepared statements.
fn discards(text: &[u8]) -> bool {
    let [first, second, third] = first_words(text);
    match (&*first, &*second) {
        (b"discard" | b"deallocate", b"all") => true,
        (b"deallocate", b"prepare") => third == b"all",
        _ => false,
    }
}

/// Returns the first words of a statement in lower case, empty where there are none.
fn first_words(text: &[u8]) -> [Vec<u8>; 3] {
    let mut words = Words(text);
    [(); 3].map(|()| words.next().unwrap_or_default().to_ascii_lowercase())
}

/// An iterator over the words that a statement begins with, without comments, up to the first byte that is neither.
struct Words<'a>(&'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.0 = self.0.trim_ascii_start();
        while let Some(end) = sql::comment_end(self.0, 0) {
            self.0 = self.0[end..].trim_ascii_start();
        }
        let length = self.0.iter().take_while(|byte| sql::is_name(**byte)).count();
        let (word, rest) = self.0.split_at(length);
        self.0 = rest;
        (length > 0).then_some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_blocks_are_recognized_by_their_words() {
        for text in ["COMMIT", " end;", "-- now\nRollback", "/* a */ abort work", "commit and chain", "ROLLBACK;"] {
            assert!(ends_block(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "select 1",
            "begin",
            "rollback to a",
            "ROLLBACK TRANSACTION TO SAVEPOINT a",
            "commit prepared 'x'",
            "rollback prepared 'x'",
            "update end set a = 1",
            "commits",
            "'end'",
        ] {
            assert!(!ends_block(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_drops_all_prepared_statements_is_recognized() {
        let found =
            ["DISCARD ALL", "deallocate all;", "DEALLOCATE PREPARE ALL", "discard plans", "deallocate a", "all"]
                .map(|text| discards(text.as_bytes()));
        assert_eq!(found, [true, true, true, false, false, false]);
    }

    #[test]
    fn what_chooses_an_encoding_is_recognized() {
        for text in [
            "SET client_encoding TO $1",
            "set names 'latin1'",
            "SET SESSION client_encoding = 'SJIS'",
            "set local names $1",
        ] {
            assert!(chooses_encoding(text.as_bytes()), "{text}");
        }
        for text in ["set work_mem = $1", "select client_encoding", "update names set a = 1", "reset client_encoding"] {
            assert!(!chooses_encoding(text.as_bytes()), "{text}");
        }
    }
}
