//! `log_line_prefix`: read as PostgreSQL reads it, and matched with lines.

use super::record::Record;
use super::words::{Part, take_part};
use crate::time::{Micros, Timestamp};

/// PostgreSQL's default, and what packages, providers and pgBadger's documentation set.
pub const COMMON: [&str; 11] = [
    "%m [%p] ",
    "%m [%p] %q%u@%d ",
    "%m [%p] %q%u@%d/%a ",
    "%t:%r:%u@%d:[%p]:",
    "%m:%r:%u@%d:[%p]:%l:%e:%s:%v:%x:%c:%q%a:",
    "%t [%p]: ",
    "%t [%p]: user=%u,db=%d,app=%a,client=%h ",
    "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
    "%m [%p]: [%l-1] db=%d,user=%u ",
    "%t [%p-%l] %q%u@%d ",
    "%t-%c-",
];

/// The longest text of a field such as the user's name, in bytes.
const LONGEST_FIELD: usize = 300;

/// A prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    text: String,
    items: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Literal(String),
    /// An escape, and whether it is padded to a width.
    Field {
        field: Field,
        is_padded: bool,
    },
    /// `%q`: processes that are not sessions end their prefix here.
    SessionsOnly,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Application,
    User,
    Database,
    BackendType,
    Pid,
    Time,
    Epoch,
    SqlState,
    SessionId,
    SessionStart,
    /// Digits or nothing.
    Counter,
    /// Digits with a sign or `/`, or nothing.
    Identifier,
    /// Any other text.
    Other,
}

/// Where the fields of a line are in it.
#[derive(Debug, Clone, Copy, Default)]
struct Fields<'a> {
    time: Timestamp,
    pid: Option<u32>,
    session_id: &'a str,
    session_start: Option<Timestamp>,
    user: &'a str,
    database: &'a str,
    application: &'a str,
    backend_type: &'a str,
    sqlstate: Option<[u8; 5]>,
}

impl Prefix {
    /// Reads a prefix as the server's configuration has it. An error is a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut items = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('%') {
            push_literal(&mut items, &rest[..at]);
            let escape = &rest[at + 1..];
            let width = escape.bytes().take_while(|c| c.is_ascii_digit() || *c == b'-').count();
            let Some(letter) = escape[width..].chars().next() else {
                return Err(format!("the prefix \"{text}\" ends within an escape. Give log_line_prefix as it is set"));
            };
            rest = &escape[width + letter.len_utf8()..];
            match (letter, field_of(letter)) {
                ('%', _) => push_literal(&mut items, "%"),
                ('q', _) => items.push(Item::SessionsOnly),
                (_, Some(field)) => items.push(Item::Field { field, is_padded: width > 0 }),
                (_, None) => {
                    return Err(format!(
                        "the prefix \"{text}\" has %{letter}, which PostgreSQL does not know. Give log_line_prefix as it is set"
                    ));
                }
            }
        }
        push_literal(&mut items, rest);
        let prefix = Self { text: text.to_owned(), items };
        let has = |fields: &[Field]| {
            prefix.items.iter().any(|item| matches!(item, Item::Field { field, .. } if fields.contains(field)))
        };
        if !has(&[Field::Pid, Field::SessionId]) || !has(&[Field::Time, Field::Epoch]) {
            return Err(format!(
                "the prefix \"{text}\" does not say which session a line is of, and when it was written. Log with %p or %c, \
                 and with %m, %n or %t"
            ));
        }
        Ok(prefix)
    }

    /// As the configuration has it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Reads the prefix and the word of a line. Returns the part that the line begins and its text.
    pub fn read<'a>(&self, line: &'a str) -> Option<(Matched<'a>, Part, &'a str)> {
        // Continued lines are the most common ones that do not match.
        if line.starts_with('\t') {
            return None;
        }
        let (fields, part, text) = match_items(&self.items, line, 0, Fields::default())?;
        let pid = fields.pid.or_else(|| pid_of(fields.session_id))?;
        Some((Matched { fields, pid }, part, text))
    }

    /// The prefix of [`COMMON`] that most of these lines have; of several the one that finds most names in them.
    pub fn guess(head: &str) -> Option<Self> {
        let lines: Vec<&str> = head.lines().filter(|line| !line.starts_with('\t')).take(GUESSED_FROM).collect();
        // Of equal ones the last is taken, and the first is to be.
        let counted = COMMON.iter().rev().map(|text| {
            let prefix = Self::parse(text).expect("common prefixes are prefixes");
            let matched: Vec<_> = lines.iter().filter_map(|line| prefix.read(line)).collect();
            let names: usize = matched.iter().map(|(matched, ..)| matched.fields.names()).sum();
            ((matched.len(), names), prefix)
        });
        let (most, prefix) = counted.max_by_key(|(count, _)| *count)?;
        (most.0 > 0).then_some(prefix)
    }
}

/// How many lines decide which prefix a log has.
const GUESSED_FROM: usize = 200;

/// What the prefix of a line says.
#[derive(Debug)]
pub struct Matched<'a> {
    fields: Fields<'a>,
    pub pid: u32,
}

impl Matched<'_> {
    /// Begins a record with it.
    pub fn fill(&self, record: &mut Record) {
        let fields = &self.fields;
        record.clear();
        record.time = fields.time;
        record.pid = self.pid;
        record.session_start = fields.session_start;
        record.sqlstate = fields.sqlstate.filter(|state| state != b"00000");
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

/// The escapes of PostgreSQL 9.6 to 18 but `%q` and `%%`.
fn field_of(letter: char) -> Option<Field> {
    Some(match letter {
        'a' => Field::Application,
        'u' => Field::User,
        'd' => Field::Database,
        'b' => Field::BackendType,
        'p' => Field::Pid,
        't' | 'm' => Field::Time,
        'n' => Field::Epoch,
        'e' => Field::SqlState,
        'c' => Field::SessionId,
        's' => Field::SessionStart,
        'l' | 'x' | 'P' => Field::Counter,
        'v' | 'Q' => Field::Identifier,
        'r' | 'h' | 'i' | 'L' => Field::Other,
        _ => return None,
    })
}

/// Matches the rest of a prefix with the rest of a line, behind which a part begins. Texts of fields are as short as
/// possible; where the rest does not match then, a longer one is tried.
fn match_items<'a>(
    items: &[Item],
    line: &'a str,
    at: usize,
    fields: Fields<'a>,
) -> Option<(Fields<'a>, Part, &'a str)> {
    let Some((item, items)) = items.split_first() else {
        return take_part(&line[at..]).map(|(part, text)| (fields, part, text));
    };
    match item {
        Item::Literal(literal) => {
            line[at..].starts_with(literal.as_str()).then(|| match_items(items, line, at + literal.len(), fields))?
        }
        Item::SessionsOnly => match_items(items, line, at, fields)
            .or_else(|| take_part(&line[at..]).map(|(part, text)| (fields, part, text))),
        Item::Field { field, is_padded } => {
            let padding = if *is_padded { line[at..].len() - line[at..].trim_start_matches(' ').len() } else { 0 };
            let from = at + padding;
            let mut ends = ends_of(*field, &line[from..], *is_padded, items.first());
            ends.find_map(|end| {
                let fields = fields.with(*field, line[from..from + end].trim_end_matches(' '))?;
                match_items(items, line, from + end, fields)
            })
        }
    }
}

/// Where a field at the front of a text may end.
fn ends_of<'a>(
    field: Field,
    text: &'a str,
    is_padded: bool,
    next: Option<&'a Item>,
) -> Box<dyn Iterator<Item = usize> + 'a> {
    let with_spaces = move |end: usize| {
        let spaces = text[end..].bytes().take_while(|c| *c == b' ').count();
        (end..=end + if is_padded { spaces } else { 0 }).rev()
    };
    let count = |is_its: fn(&u8) -> bool| text.bytes().take_while(is_its).count();
    match field {
        Field::Time | Field::SessionStart => {
            let end = Timestamp::take(text).map(|(_, rest, _)| text.len() - rest.len());
            Box::new(end.into_iter().flat_map(with_spaces))
        }
        Field::Pid | Field::Counter => Box::new(with_spaces(count(u8::is_ascii_digit))),
        Field::Epoch => Box::new(with_spaces(count(|c| c.is_ascii_digit() || *c == b'.'))),
        Field::SqlState => Box::new(text.is_char_boundary(5).then_some(5).into_iter().flat_map(with_spaces)),
        Field::SessionId => Box::new(with_spaces(count(|c| c.is_ascii_hexdigit() || *c == b'.'))),
        Field::Identifier => Box::new(with_spaces(count(|c| c.is_ascii_digit() || matches!(c, b'-' | b'/')))),
        Field::Application | Field::User | Field::Database | Field::BackendType | Field::Other => {
            let window = &text[..floor_boundary(text, LONGEST_FIELD)];
            match next {
                Some(Item::Literal(literal)) => Box::new(window.match_indices(literal.as_str()).map(|(end, _)| end)),
                _ => Box::new(window.char_indices().map(|(end, _)| end)),
            }
        }
    }
}

/// The last boundary of characters that is not behind `most`.
fn floor_boundary(text: &str, most: usize) -> usize {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}

impl<'a> Fields<'a> {
    /// With the value of one more field; `None` if it cannot have that.
    fn with(mut self, field: Field, value: &'a str) -> Option<Self> {
        match field {
            Field::Application => self.application = value,
            Field::User => self.user = value,
            Field::Database => self.database = value,
            Field::BackendType => self.backend_type = value,
            Field::Pid => self.pid = Some(value.parse().ok()?),
            Field::Time => self.time = Timestamp::take(value)?.0,
            Field::Epoch => self.time = Timestamp::at_utc(epoch(value)?),
            Field::SqlState => self.sqlstate = Some(sqlstate(value)?),
            Field::SessionId => self.session_id = value,
            Field::SessionStart => self.session_start = Some(Timestamp::take(value)?.0),
            Field::Counter | Field::Identifier | Field::Other => {}
        }
        Some(self)
    }

    /// How many names of the session the line has.
    fn names(&self) -> usize {
        [self.user, self.database, self.application].iter().filter(|name| !name.is_empty()).count()
    }
}

/// `1795420800.123`, in seconds since 1970.
fn epoch(text: &str) -> Option<Micros> {
    let seconds: f64 = text.parse().ok()?;
    Some((seconds * 1000.0).round() as Micros * 1000)
}

/// Five digits and capital letters.
pub fn sqlstate(text: &str) -> Option<[u8; 5]> {
    let code: [u8; 5] = text.as_bytes().try_into().ok()?;
    code.iter().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase()).then_some(code)
}

/// The process in a session's identifier: `6560a1b2.1f3c`.
pub fn pid_of(session_id: &str) -> Option<u32> {
    u32::from_str_radix(session_id.split_once('.')?.1, 16).ok()
}

#[cfg(test)]
mod tests;
