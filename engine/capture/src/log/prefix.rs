//! Parses a `log_line_prefix` as PostgreSQL does, and matches it with the lines of a log.

use std::collections::HashSet;

use super::fields::{Behind, Field, Fields, ends_of, field_of, pid_of};
use super::record::Record;
use super::words::{Part, has_part, take_part, take_unknown_part};
use crate::error::PrefixError;

/// A parsed `log_line_prefix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    text: String,
    items: Vec<Item>,
    /// True if the prefix was guessed from the lines; false if the user gave it. If a line does not fit a guess,
    /// reading fails with a message that asks for the server's `log_line_prefix`.
    pub(super) is_guessed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Literal(String),
    /// An escape such as `%p`, and whether its value is padded to a width.
    Field {
        field: Field,
        is_padded: bool,
    },
    /// The escape `%q`. In lines of processes that are not sessions, the prefix ends here.
    SessionsOnly,
}

/// The length of the colon and the two spaces behind a keyword such as `LOG`.
const PART_END: usize = 3;

impl Prefix {
    /// Parses a prefix as it is set in the server's configuration. It must have escapes for the process or session and
    /// for the time.
    pub fn parse(text: &str) -> Result<Self, PrefixError> {
        let mut items = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('%') {
            push_literal(&mut items, &rest[..at]);
            let escape = &rest[at + 1..];
            let width = escape.bytes().take_while(|c| c.is_ascii_digit() || *c == b'-').count();
            let Some(letter) = escape[width..].chars().next() else {
                return Err(PrefixError::OpenEscape(text.to_owned()));
            };
            rest = &escape[width + letter.len_utf8()..];
            match (letter, field_of(letter)) {
                ('%', _) => push_literal(&mut items, "%"),
                ('q', _) => items.push(Item::SessionsOnly),
                (_, Some(field)) => items.push(Item::Field { field, is_padded: width > 0 }),
                (_, None) => {
                    return Err(PrefixError::UnknownEscape { prefix: text.to_owned(), letter });
                }
            }
        }
        push_literal(&mut items, rest);
        let prefix = Self { text: text.to_owned(), items, is_guessed: false };
        let has = |fields: &[Field]| {
            prefix.items.iter().any(|item| matches!(item, Item::Field { field, .. } if fields.contains(field)))
        };
        if !has(&[Field::Pid, Field::SessionId]) || !has(&[Field::Time, Field::Epoch]) {
            return Err(PrefixError::NoSession(text.to_owned()));
        }
        Ok(prefix)
    }

    /// True if the prefix ends with a field, so that nothing separates that field from the keyword of a message, such
    /// as `LOG:`.
    pub fn ends_in_field(&self) -> bool {
        matches!(self.items.last(), Some(Item::Field { .. }))
    }

    fn has_user(&self) -> bool {
        self.items.iter().any(|item| matches!(item, Item::Field { field: Field::User, .. }))
    }

    /// Returns the prefix as it is set in the server's configuration.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Parses the prefix and the keyword of a line. Returns the prefix's values, the kind of message part that the line
    /// begins, and the text behind the keyword. Returns `None` if the line does not begin a message part.
    pub fn read<'a>(&self, line: &'a str) -> Option<(Matched<'a>, Part, &'a str)> {
        // Most lines that do not match are continued lines, so they are excluded first.
        if line.starts_with('\t') {
            return None;
        }
        // Most other lines that do not match have no keyword. One scan of the line finds this out.
        let take = if self.ends_in_field() || has_part(line) { take_part } else { take_unknown_part };
        if !line.contains(":  ") {
            return None;
        }
        let (fields, part, text) = match_items(&self.items, line, 0, Fields::default(), take, &mut HashSet::new())?;
        let pid = fields.pid.or_else(|| pid_of(fields.session_id))?;
        if fields.has_field_in_name {
            return None;
        }
        let has_no_user = fields.user.is_empty() && self.has_user();
        Some((Matched { fields, pid, has_no_user }, part, text))
    }

    /// True if a line that cannot be parsed may be the beginning of a message, as far as its first characters show.
    pub fn may_begin(&self, line: &str) -> bool {
        let has_first = |is_its: fn(&char) -> bool| line.chars().next().is_some_and(|first| is_its(&first));
        match self.items.first() {
            Some(Item::Literal(literal)) => line.starts_with(literal.as_str()) || literal.starts_with(line),
            Some(Item::Field { field: Field::SessionId, is_padded: false }) => has_first(char::is_ascii_hexdigit),
            Some(Item::Field { field: Field::Time | Field::Epoch | Field::Pid, is_padded: false }) => {
                has_first(char::is_ascii_digit)
            }
            _ => true,
        }
    }

    /// True if a text begins with the prefix and the keyword of a message, such as `LOG`, and this keyword ends at byte
    /// `word_end`.
    pub fn begins(&self, text: &str, word_end: usize) -> bool {
        let mut failed = HashSet::new();
        match_items(&self.items, text, 0, Fields::default(), take_part, &mut failed).is_some_and(
            |(fields, part, said)| {
                let is_message = matches!(part, Part::Message(_) | Part::Foreign(_));
                is_message && !fields.has_field_in_name && text.len() - said.len() == word_end + PART_END
            },
        )
    }

    /// Returns the text of a line that continues the line before it. Such a line begins with a tab. The tab may follow
    /// the literal text at the beginning of the prefix, for example the service name that docker compose puts before
    /// each line.
    pub fn continued<'a>(&self, line: &'a str) -> Option<&'a str> {
        line.strip_prefix('\t').or_else(|| match self.items.first() {
            Some(Item::Literal(literal)) => line.strip_prefix(literal.as_str())?.strip_prefix('\t'),
            _ => None,
        })
    }
}

/// The values of the fields in a line's prefix.
#[derive(Debug)]
pub struct Matched<'a> {
    pub(super) fields: Fields<'a>,
    pub pid: u32,
    has_no_user: bool,
}

impl Matched<'_> {
    /// Empties a record and fills it with the values of the prefix.
    pub fn fill(&self, record: &mut Record) {
        let fields = &self.fields;
        record.clear();
        record.time = fields.time;
        record.pid = self.pid;
        record.session_start = fields.session_start;
        record.sqlstate = fields.sqlstate.filter(|state| state != b"00000");
        record.transaction = fields.transaction;
        record.has_no_user = self.has_no_user;
        for (text, value) in [
            (&mut record.session_id, fields.session_id),
            (&mut record.user, fields.user),
            (&mut record.database, fields.database),
            (&mut record.application, fields.application),
            (&mut record.backend_type, fields.backend_type),
        ] {
            Record::set(text, if value == "[unknown]" { "" } else { value });
        }
    }
}

fn push_literal(items: &mut Vec<Item>, text: &str) {
    match items.last_mut() {
        _ if text.is_empty() => {}
        Some(Item::Literal(before)) => before.push_str(text),
        _ => items.push(Item::Literal(text.to_owned())),
    }
}

/// Matches the remaining `items` of a prefix with the rest of a line from byte `at`, up to the keyword of the message.
/// Each field takes the shortest possible text first; if the items behind it do not match, a longer text is tried.
/// `failed` has the combinations of remaining items and offsets that did not match, so that none is tried twice.
fn match_items<'a>(
    items: &[Item],
    line: &'a str,
    at: usize,
    fields: Fields<'a>,
    take: fn(&'a str) -> Option<(Part, &'a str)>,
    failed: &mut HashSet<(usize, usize)>,
) -> Option<(Fields<'a>, Part, &'a str)> {
    let Some((item, rest)) = items.split_first() else {
        return take(&line[at..]).map(|(part, text)| (fields, part, text));
    };
    if failed.contains(&(items.len(), at)) {
        return None;
    }
    let found = match item {
        Item::Literal(literal) => line[at..]
            .starts_with(literal.as_str())
            .then(|| match_items(rest, line, at + literal.len(), fields, take, failed))
            .flatten(),
        Item::SessionsOnly => match_items(rest, line, at, fields, take, failed)
            .or_else(|| take(&line[at..]).map(|(part, text)| (fields, part, text))),
        Item::Field { field, is_padded } => {
            let padding = if *is_padded { line[at..].len() - line[at..].trim_start_matches(' ').len() } else { 0 };
            // The padding may turn out to be a part of the literal behind the field. So matching is tried behind the
            // padding first, and then before it.
            let mut begins = [at + padding, at].into_iter().take(if padding > 0 { 2 } else { 1 });
            begins.find_map(|from| {
                let behind = match rest.first() {
                    Some(Item::Literal(literal)) => Behind::Literal(literal),
                    Some(_) => Behind::Other,
                    None => Behind::Nothing,
                };
                let mut ends = ends_of(*field, &line[from..], *is_padded, behind);
                ends.find_map(|end| {
                    let mut fields = fields.with(*field, line[from..from + end].trim_end_matches(' '))?;
                    if *field == Field::Application {
                        fields.is_application_last = matches!(behind, Behind::Literal(" "));
                    }
                    match_items(rest, line, from + end, fields, take, failed)
                })
            })
        }
    };
    if found.is_none() {
        failed.insert((items.len(), at));
    }
    found
}

#[cfg(test)]
mod tests;
