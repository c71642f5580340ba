//! Decides how the statements of each template (a statement's text without its values) are sent. This is done once,
//! when the capture is opened.

use capture::format::{Protocol, Template};
use capture::sql::commands::{BlockStep, block_step, discards};
use capture::sql::encoding::{
    EncodingParameter, encoding_parameters, in_utf8, is_encoding_setting, may_choose_encoding,
};
use wire::statement::{QueryMode, Statement};
use wire::value::Value;

/// The way in which the statements of a template (a statement's text without its values) are sent.
pub struct TemplateRequest {
    pub kind: SendKind,
    /// The number of parameters of each statement.
    pub parameters: usize,
    /// True if the statements end a transaction block, such as COMMIT.
    pub ends_block: bool,
    /// True if the statements drop the prepared statements of their session, such as DISCARD ALL.
    pub discards: bool,
    /// True if the statements may choose the encoding of their session.
    may_choose_encoding: bool,
    /// The bound parameters that choose the encoding of the session.
    encodings: Vec<EncodingParameter>,
}

impl TemplateRequest {
    /// Appends the text of a statement with the given literals. If the statement chooses an encoding, the text has UTF8
    /// in its place, since the texts of a capture are in UTF-8.
    pub fn write_text<'a>(
        &self,
        template: &Template,
        literals: impl Iterator<Item = Option<&'a [u8]>>,
        text: &mut Vec<u8>,
    ) {
        template.write_text(literals, text);
        if self.may_choose_encoding {
            let changed = std::str::from_utf8(text).map(|text| in_utf8(text).into_owned());
            *text = changed.map_or_else(|_| std::mem::take(text), String::into_bytes);
        }
    }

    /// Replaces the values of bound parameters that choose an encoding by UTF8.
    pub fn keep_utf8(&self, values: &mut [Value]) {
        for EncodingParameter { name, value } in &self.encodings {
            let of = |number: u32| (number as usize).wrapping_sub(1);
            let is_encoding = name.is_none_or(
                |name| matches!(values.get(of(name)), Some(Value::Text(name)) if is_encoding_setting(name)),
            );
            if let Some(value) = values.get_mut(of(*value)).filter(|_| is_encoding) {
                *value = Value::Text((*b"UTF8").into());
            }
        }
    }
}

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
            let text = in_utf8(&template.text);
            let statement = |id: usize| Statement::with_parameters(id, text.as_bytes(), parameters);
            let kind = match template.protocol {
                Protocol::Simple => SendKind::Query(template.clone()),
                Protocol::Extended | Protocol::Prepared if has_literals => SendKind::Unnamed(template.clone()),
                Protocol::Extended => SendKind::Values(statement(0), QueryMode::Extended),
                Protocol::Prepared => {
                    SendKind::Values(statement(prepared.next().unwrap_or_default()), QueryMode::Prepared)
                }
            };
            let may_choose_encoding = may_choose_encoding(&template.text);
            let encodings = if has_literals { Vec::new() } else { encoding_parameters(&template.text) };
            let ends_block = block_step(&template.text) == BlockStep::End;
            let discards = discards(&template.text);
            TemplateRequest { kind, parameters, ends_block, discards, may_choose_encoding, encodings }
        })
        .collect()
}
