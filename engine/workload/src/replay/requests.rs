//! Decides how the statements of each template are sent, once when the capture is opened.

use std::borrow::Cow;

use capture::format::{Protocol, Template};
use capture::sql::commands::{BlockStep, block_step, discards};
use capture::sql::settings::SettingChange;
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
            let ends_block = block_step(&template.text) == BlockStep::End;
            let discards = discards(&template.text);
            TemplateRequest { kind, parameters, ends_block, discards, sets_config }
        })
        .collect()
}

/// Returns the template with a text that leaves the session in UTF-8, if its own chooses an encoding.
fn in_utf8(template: &Template) -> Cow<'_, Template> {
    // Another text would not have the parameters that are bound.
    let is_bound = template.parameters > 0 && !template.has_literals();
    match !is_bound && chooses_encoding(&template.text) {
        true => Cow::Owned(template.of_other_text(ENCODING)),
        false => Cow::Borrowed(template),
    }
}

/// Returns true if a statement chooses the encoding of its session.
fn chooses_encoding(text: &str) -> bool {
    matches!(SettingChange::of(text), Some(SettingChange::Set { name, .. }) if name == "client_encoding")
}

/// Returns true if a text has a word, in lower case, whatever the case of its letters there.
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
