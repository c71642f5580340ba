//! Makes the template and the parameters of a statement in a log.

use crate::format::{Error, Parameterization, Protocol, TemplateShape, Writer};
use crate::parameters::{self, Values};
use crate::sql::literals::{Split, highest_parameter, without_comments};
use crate::sql::reading::backslashes_of;
use crate::sql::tokens::Backslashes;

/// The text of a statement, and how the client sent it.
#[derive(Debug, Clone, Copy)]
pub struct SentText<'a> {
    pub protocol: Protocol,
    pub text: &'a str,
    /// The list of bound parameters in the form in which the server has logged it; `None` if the log has no list.
    pub parameters: Option<&'a str>,
    /// The meaning of backslashes that the session has set, if it has set one.
    pub backslashes: Option<Backslashes>,
}

/// A statement in the form in which a capture stores it.
pub struct Templated {
    /// The number of the template.
    pub template: u32,
    pub parameters: Values,
    /// True if the whole text became one literal, because it is not certain which parts of it are values.
    pub is_whole: bool,
}

/// Makes templates of statements. It reuses its memory from statement to statement.
pub struct TemplateMaker {
    split: Split,
    /// True if the capture will be anonymized. A statement whose values cannot be recognized with certainty is then
    /// replaced by a token as a whole.
    conceals: bool,
}

impl TemplateMaker {
    pub fn new(conceals: bool) -> Self {
        Self { split: Split::default(), conceals }
    }

    /// Returns the template of a statement and its parameters; `None` if the log lacks the values of its parameters.
    pub fn make(&mut self, sent: &SentText<'_>, writer: &mut Writer) -> Result<Option<Templated>, Error> {
        let bound = match sent.parameters.map(parameters::parse) {
            None => None,
            Some(None) => return Ok(None),
            Some(bound) => bound,
        };
        let needed = if sent.protocol == Protocol::Simple { 0 } else { highest_parameter(sent.text) as usize };
        if bound.as_ref().map_or(0, Vec::len) < needed {
            return Ok(None);
        }
        let must_be_certain = self.conceals || sent.text.contains('\\');
        let backslashes =
            if must_be_certain { backslashes_of(sent.text, sent.backslashes) } else { Some(Backslashes::Plain) };
        if self.conceals && backslashes.is_none() {
            return self.whole(sent.text, writer).map(Some);
        }
        let named = match bound {
            None if sent.protocol != Protocol::Prepared => {
                self.with_literals(sent, backslashes.unwrap_or_default(), writer)
            }
            bound => with_bound(sent, bound.unwrap_or_default(), writer),
        };
        named.map(Some)
    }

    /// Makes a template whose whole text is one literal. This is for statements of which it is not certain which parts
    /// are values.
    pub fn whole(&mut self, text: &str, writer: &mut Writer) -> Result<Templated, Error> {
        self.split.fill_whole(text);
        let templated = self.templated(Protocol::Simple, text, writer)?;
        Ok(Templated { is_whole: true, ..templated })
    }

    fn with_literals(
        &mut self,
        sent: &SentText<'_>,
        backslashes: Backslashes,
        writer: &mut Writer,
    ) -> Result<Templated, Error> {
        self.split.fill(sent.text, backslashes);
        self.templated(sent.protocol, sent.text, writer)
    }

    fn templated(&self, protocol: Protocol, text: &str, writer: &mut Writer) -> Result<Templated, Error> {
        let parameters = Parameterization::Literals { places: &self.split.places, first: self.split.first };
        let template = writer.template(&TemplateShape { protocol, text: &self.split.template, parameters })?;
        let literals = self.split.literals.iter().map(|literal| Some(text[literal.clone()].to_owned()));
        Ok(Templated { template, parameters: literals.collect(), is_whole: false })
    }
}

fn with_bound(sent: &SentText<'_>, values: Values, writer: &mut Writer) -> Result<Templated, Error> {
    let text = without_comments(sent.text);
    let parameters = Parameterization::Bound(values.len() as u32);
    let template = writer.template(&TemplateShape { protocol: sent.protocol, text: &text, parameters })?;
    Ok(Templated { template, parameters: values, is_whole: false })
}
