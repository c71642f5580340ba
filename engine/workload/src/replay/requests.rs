//! Decides how the statements of each template (a statement's text without its values) are sent. This is done once,
//! when the capture is opened.

use std::borrow::Cow;

use capture::format::{Protocol, Template};
use capture::sql::commands::{BlockStep, block_step, discards};
use capture::sql::settings::SettingChange;
use wire::statement::{QueryMode, Statement};

/// The way in which the statements of a template (a statement's text without its values) are sent.
pub struct TemplateRequest {
    pub kind: SendKind,
    /// The number of parameters of each statement.
    pub parameters: usize,
    /// True if the statements end a transaction block, such as COMMIT.
    pub ends_block: bool,
    /// True if the statements drop the prepared statements of their session, such as DISCARD ALL.
    pub discards: bool,
    /// True if the statements call `set_config`. A literal may then be the name of the setting `client_encoding`.
    sets_config: bool,
}

impl TemplateRequest {
    /// Appends the text of a statement with the given literals. If the statement would set the encoding with
    /// `set_config`, appends a statement that sets it to UTF-8 instead.
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

/// The statement that is sent instead of one that sets the encoding with `set_config`.
const CONFIG_OF_ENCODING: &[u8] = b"SELECT set_config('client_encoding', 'UTF8', false)";

/// The statement that is sent instead of one that sets another encoding. The texts of a capture are in UTF-8, whatever
/// encoding the application used.
const ENCODING: &str = "SET client_encoding TO 'UTF8'";

/// The protocol messages with which the statements of a template are sent.
pub enum SendKind {
    /// A simple query (Query). Its text is the template's text with the literals of the statement.
    Query(Template),
    /// An unnamed statement (Parse, Bind, Execute). Its text is the template's text with the literals of the statement.
    Unnamed(Template),
    /// A statement whose parameters are bound. It is sent in the given query mode (extended or prepared).
    Values(Statement, QueryMode),
}

/// Returns for each template the way in which its statements are sent, in the order of the templates.
pub fn of(templates: &[Template]) -> Vec<TemplateRequest> {
    // By these numbers, a session remembers which statements the server has already parsed for it.
    let mut prepared = 0..;
    templates
        .iter()
        .map(|template| {
            let (parameters, has_literals) = (template.parameters as usize, template.has_literals());
            let template = in_utf8(template);
            let text = template.text.as_bytes();
            let statement = |id: usize| Statement::with_parameters(id, text, parameters);
            let kind = match template.protocol {
                Protocol::Simple => SendKind::Query(template.as_ref().clone()),
                Protocol::Extended | Protocol::Prepared if has_literals => SendKind::Unnamed(template.as_ref().clone()),
                Protocol::Extended => SendKind::Values(statement(0), QueryMode::Extended),
                Protocol::Prepared => {
                    SendKind::Values(statement(prepared.next().unwrap_or_default()), QueryMode::Prepared)
                }
            };
            let sets_config = has_word(text, b"set_config");
            let ends_block = block_step(&template.text) == BlockStep::End;
            let discards = discards(&template.text);
            TemplateRequest { kind, parameters, ends_block, discards, sets_config }
        })
        .collect()
}

/// Returns the template. If its statements set the encoding of the session, returns it with a text that sets the
/// encoding to UTF-8.
fn in_utf8(template: &Template) -> Cow<'_, Template> {
    // If parameters are bound, another text would not have them, so the text is kept.
    let is_bound = template.parameters > 0 && !template.has_literals();
    match !is_bound && chooses_encoding(&template.text) {
        true => Cow::Owned(template.of_other_text(ENCODING)),
        false => Cow::Borrowed(template),
    }
}

/// True if a statement sets the encoding of its session.
fn chooses_encoding(text: &str) -> bool {
    matches!(SettingChange::of(text), Some(SettingChange::Set { name, .. }) if name == "client_encoding")
}

/// True if a text contains a word in upper or lower case. `word` is given in lower case.
fn has_word(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_chooses_an_encoding_is_recognized() {
        for text in ["SET client_encoding TO $1", "set names 'latin1'", "set local names $1"] {
            assert!(chooses_encoding(text), "{text}");
        }
        for text in ["set work_mem = $1", "select client_encoding", "reset client_encoding"] {
            assert!(!chooses_encoding(text), "{text}");
        }
    }
}
