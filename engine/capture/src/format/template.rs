//! Templates: the text that statements share if they differ only in their values.

use serde::{Deserialize, Serialize};

/// The greatest number of parameters of a statement. The protocol's Bind message has two bytes for the number.
const MOST_PARAMETERS: u32 = u16::MAX as u32;

/// The protocol with which a client sent the statements of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// The client sends the statement as text, in the simple protocol (Query).
    Simple,
    /// The client sends an unnamed prepared statement, in the extended protocol (Parse, Bind, Execute).
    Extended,
    /// The client sends a named prepared statement, which the session parses once.
    Prepared,
}

/// The text that statements share if they differ only in their values.
///
/// The parameters of its statements are of one of two forms. Literals are written back into the text exactly as the
/// client wrote them, with their quotes ([`Template::write_text`]), so that types and plans do not change. Values are
/// bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template {
    /// The number of the template, counted from 0 in the order of the file `templates.jsonl`, by which statements refer
    /// to it.
    pub id: u32,
    pub protocol: Protocol,
    /// The number of parameters of each statement of the template.
    pub parameters: u32,
    /// The text of the statement with `$1`, `$2` and so on in place of its values.
    pub text: String,
    /// The byte offset of each literal's placeholder in the text. Empty if the parameters are bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) places: Vec<u32>,
    /// The number of the first placeholder that stands for a literal. Lower numbers are parameters of the client's own
    /// text.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(super) first: u32,
}

/// A template without its number, as a caller passes it to a writer, which finds or assigns the number.
#[derive(Debug, Clone, Copy)]
pub struct TemplateShape<'a> {
    pub protocol: Protocol,
    pub text: &'a str,
    pub parameters: Parameterization<'a>,
}

/// The form of a template's parameters: bound values or literals.
#[derive(Debug, Clone, Copy)]
pub enum Parameterization<'a> {
    /// Values that are bound. The field is their number.
    Bound(u32),
    /// Literals. Their placeholders begin at the byte offsets `places` and are numbered from `first` on.
    Literals { places: &'a [u32], first: u32 },
}

impl Template {
    /// True if the parameters are literals, which [`Self::write_text`] writes into the text. False if they have to be
    /// bound.
    pub fn has_literals(&self) -> bool {
        !self.places.is_empty()
    }

    /// Appends the text of a statement as the client sent it. If the template has literals, they replace their
    /// placeholders.
    pub fn write_text<'a>(&self, literals: impl IntoIterator<Item = Option<&'a [u8]>>, out: &mut Vec<u8>) {
        let literals = literals.into_iter().map(|literal| literal.unwrap_or(b"NULL"));
        fill_places(&self.text, &self.places, self.first, literals, out);
    }

    /// Returns the template without its number.
    pub fn shape(&self) -> TemplateShape<'_> {
        let parameters = match self.protocol {
            Protocol::Extended | Protocol::Prepared if self.places.is_empty() => {
                Parameterization::Bound(self.parameters)
            }
            _ => Parameterization::Literals { places: &self.places, first: self.first },
        };
        TemplateShape { protocol: self.protocol, text: &self.text, parameters }
    }

    pub(super) fn new(id: u32, shape: &TemplateShape<'_>) -> Self {
        let (parameters, places, first) = match shape.parameters {
            Parameterization::Bound(count) => (count, &[][..], 1),
            Parameterization::Literals { places, first } => (places.len() as u32, places, first),
        };
        let (protocol, text, places) = (shape.protocol, shape.text.to_owned(), places.to_vec());
        Self { id, protocol, parameters, text, places, first }
    }

    /// True if each of `places` lies within the text and the placeholder with the expected number stands there.
    /// [`Self::write_text`] relies on this.
    pub(super) fn is_sound(&self) -> bool {
        let mut done = 0;
        let found = self.first > 0
            && self.places.iter().zip(self.first..).all(|(place, number)| {
                let at = *place as usize;
                let rest = self.text.get(at..).filter(|_| at >= done);
                done = at + placeholder_length(number);
                rest.is_some_and(|rest| rest.starts_with(&format!("${number}")))
            });
        let is_possible = self.parameters <= MOST_PARAMETERS;
        let are_bound = self.places.is_empty() && self.protocol != Protocol::Simple && is_possible;
        found && (are_bound || self.places.len() == self.parameters as usize)
    }
}

/// Appends `text` with its placeholders replaced by `literals`. The placeholders begin at the byte offsets `places` and
/// are numbered from `first` on.
pub fn fill_places<'a>(
    text: &str,
    places: &[u32],
    first: u32,
    literals: impl IntoIterator<Item = &'a [u8]>,
    out: &mut Vec<u8>,
) {
    let text = text.as_bytes();
    let mut done = 0;
    for ((place, number), literal) in places.iter().zip(first..).zip(literals) {
        let place = *place as usize;
        out.extend_from_slice(&text[done..place]);
        out.extend_from_slice(literal);
        done = place + placeholder_length(number);
    }
    out.extend_from_slice(&text[done..]);
}

/// Returns the length of the placeholder `$number` in bytes.
fn placeholder_length(number: u32) -> usize {
    2 + number.ilog10() as usize
}

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str, places: &[u32], first: u32) -> Template {
        let parameters = Parameterization::Literals { places, first };
        Template::new(0, &TemplateShape { protocol: Protocol::Simple, text, parameters })
    }

    #[test]
    fn literals_return_to_their_places() {
        let values: Vec<String> = (1..=11).map(|value| format!("'{}'", value * 7)).collect();
        let (mut text, mut places) = ("select \"$1\", $1, ".to_owned(), Vec::new());
        for number in 2..=12 {
            places.push(text.len() as u32);
            text += &format!("${number}, ");
        }
        let template = template(&text, &places, 2);
        assert!(template.is_sound() && template.has_literals());
        let mut out = Vec::new();
        template.write_text(values.iter().map(|value| Some(value.as_bytes())), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), format!("select \"$1\", $1, {}, ", values.join(", ")));
    }

    #[test]
    fn a_line_of_the_file_gives_the_template_back() {
        for template in
            [template("select $1", &[7], 1), template("select $1, $2", &[11], 2), template("select", &[], 1)]
        {
            let line = serde_json::to_string(&template).unwrap();
            assert_eq!(serde_json::from_str::<Template>(&line).unwrap(), template);
        }
        let shape = TemplateShape { protocol: Protocol::Prepared, text: "a", parameters: Parameterization::Bound(3) };
        let line = serde_json::to_string(&Template::new(5, &shape)).unwrap();
        assert_eq!(line, r#"{"id":5,"protocol":"prepared","parameters":3,"text":"a"}"#);
    }

    #[test]
    fn a_place_without_its_number_is_unsound() {
        assert!(template("select $1", &[7], 1).is_sound());
        for (text, places, first) in [
            ("select $1", &[6][..], 1),
            ("select $1", &[70], 1),
            ("$1", &[0, 0], 1),
            ("é$1", &[1], 1),
            ("$1", &[0], 2),
            ("$0", &[0], 0),
        ] {
            assert!(!template(text, places, first).is_sound(), "{text}");
        }
        assert!(!Template { parameters: 2, ..template("select $1", &[7], 1) }.is_sound());
        assert!(!Template { parameters: 1, ..template("select 1", &[], 1) }.is_sound());
    }
}
