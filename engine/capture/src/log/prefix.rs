//! `log_line_prefix`: read as PostgreSQL reads it, and matched with lines.

use std::collections::HashSet;

use super::record::Record;
use super::words::{Part, has_part, take_part};
use crate::time::{Micros, Timestamp};

/// PostgreSQL's default, and what packages, providers and pgBadger's documentation set.
pub const COMMON: [&str; 14] = [
    "%m [%p] ",
    "%m [%p] %q%u@%d ",
    "%m [%p] %q%u@%d/%a ",
    "%t:%r:%u@%d:[%p]:",
    "%m:%r:%u@%d:[%p]:%l:%e:%s:%v:%x:%c:%q%a:",
    "%t [%p]: ",
    "%t [%p]: user=%u,db=%d,app=%a,client=%h ",
    "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
    "%t [%p]: db=%d,user=%u,app=%a,client=%h ",
    "%m [%p]: [%l-1] db=%d,user=%u ",
    "%m [%p] %q[user=%u,db=%d,app=%a] ",
    "%m [%p] [queryid=%Q] %q%u@%d ",
    "%t [%p-%l] %q%u@%d ",
    "%t-%c-",
];

/// Types of processes that have a space in their name (`GetBackendTypeDesc` of PostgreSQL 10 to 18).
const BACKEND_TYPES: [&str; 15] = [
    "client backend",
    "not initialized",
    "parallel worker",
    "background worker",
    "background writer",
    "autovacuum launcher",
    "autovacuum worker",
    "logical replication launcher",
    "logical replication apply worker",
    "logical replication tablesync worker",
    "logical replication parallel worker",
    "logical replication worker",
    "dead-end client backend",
    "slotsync worker",
    "standalone backend",
];

/// The longest text of a field such as the user's name, in bytes.
const LONGEST_FIELD: usize = 300;

/// A prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    text: String,
    items: Vec<Item>,
    /// Whether it follows from the lines alone. What does not fit is then a reason to ask for the server's.
    is_guessed: bool,
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
    /// Whether the application's name ends at a space, which may be one of a name or what separates it from a further field.
    is_application_last: bool,
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
        let prefix = Self { text: text.to_owned(), items, is_guessed: false };
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

    fn has_user(&self) -> bool {
        self.items.iter().any(|item| matches!(item, Item::Field { field: Field::User, .. }))
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
        // Most lines that do not match have no word of a part, and this is found by one look at them.
        if !has_part(line) {
            return None;
        }
        let (fields, part, text) = match_items(&self.items, line, 0, Fields::default(), &mut HashSet::new())?;
        let pid = fields.pid.or_else(|| pid_of(fields.session_id))?;
        let has_no_user = fields.user.is_empty() && self.has_user();
        Some((Matched { fields, pid, has_no_user }, part, text))
    }

    /// The text of a line that continues the one before: behind a tab, or behind what stands before all fields and a tab, as
    /// where a program such as docker compose puts a name before each line.
    pub fn continued<'a>(&self, line: &'a str) -> Option<&'a str> {
        line.strip_prefix('\t').or_else(|| match self.items.first() {
            Some(Item::Literal(literal)) => line.strip_prefix(literal.as_str())?.strip_prefix('\t'),
            _ => None,
        })
    }

    /// The prefix of [`COMMON`] that most of these lines have, with names that look like names; of several the one that finds
    /// most names in them.
    pub fn guess(head: &str) -> Option<Self> {
        let lines: Vec<&str> = head.lines().filter(|line| !line.starts_with('\t')).take(GUESSED_FROM).collect();
        // Of equal ones the last is taken, and the first is to be.
        let counted = COMMON.iter().rev().map(|text| {
            let prefix = Self { is_guessed: true, ..Self::parse(text).expect("common prefixes are prefixes") };
            let matched: Vec<_> = lines.iter().filter_map(|line| prefix.read(line)).collect();
            let likely = matched.iter().filter(|(matched, ..)| matched.unlikely_name().is_none()).count();
            let names: usize = matched.iter().map(|(matched, ..)| matched.fields.names()).sum();
            ((likely, matched.len(), names), prefix)
        });
        let (most, prefix) = counted.max_by_key(|(count, _)| *count)?;
        (most.1 > 0).then_some(prefix)
    }

    /// Why a guess is wrong, if a line shows it: a name that looks as if it had another field of the prefix in it, or a message
    /// behind another prefix. A prefix that the user gave is believed. The answer is a sentence without its end.
    pub fn refuted_by(&self, line: &str, matched: Option<&Matched<'_>>) -> Option<String> {
        if !self.is_guessed {
            return None;
        }
        match matched.map(Matched::unlikely_name) {
            Some(None) => None,
            Some(Some(name)) => Some(format!("has the name \"{name}\" in it if log_line_prefix is '{}'", self.text)),
            None => has_part(line).then(|| format!("does not begin with '{}', as lines before it do", self.text)),
        }
    }
}

/// Characters that a guess does not take for a part of a name.
const UNLIKELY: [char; 14] = [' ', '[', ']', '(', ')', '{', '}', '<', '>', '|', '=', ',', ';', ':'];

/// Those of them that a guess does not take for a part of an application's name, which may have spaces.
const BRACKETS: [char; 9] = ['[', ']', '{', '}', '<', '>', '|', '=', ';'];

/// Whether a word looks like an address, a number or a session's identifier.
fn is_other_field(word: &str) -> bool {
    let has_only = |more: &str| word.chars().all(|c| c.is_ascii_hexdigit() || more.contains(c));
    let is_address = has_only(".:()") && word.matches(['.', ':']).count() >= 2;
    let is_number = !word.is_empty() && word.bytes().all(|c| c.is_ascii_digit());
    let is_session = has_only(".") && word.matches('.').count() == 1 && word.len() > 9;
    is_address || is_number || is_session
}

/// How many lines decide which prefix a log has.
const GUESSED_FROM: usize = 200;

/// What the prefix of a line says.
#[derive(Debug)]
pub struct Matched<'a> {
    fields: Fields<'a>,
    pub pid: u32,
    has_no_user: bool,
}

impl Matched<'_> {
    /// A name that few databases, roles and programs have, and many prefixes that are read by another one.
    fn unlikely_name(&self) -> Option<&str> {
        let Fields { user, database, application, is_application_last, .. } = self.fields;
        let is_known = |name: &&str| *name != "[unknown]";
        let name = [user, database].into_iter().filter(is_known).find(|name| name.contains(UNLIKELY));
        name.or_else(|| {
            Some(application).filter(is_known).filter(|name| {
                is_application_last && (name.contains(BRACKETS) || name.split(' ').skip(1).any(is_other_field))
            })
        })
    }

    /// Begins a record with it.
    pub fn fill(&self, record: &mut Record) {
        let fields = &self.fields;
        record.clear();
        record.time = fields.time;
        record.pid = self.pid;
        record.session_start = fields.session_start;
        record.sqlstate = fields.sqlstate.filter(|state| state != b"00000");
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
/// possible; where the rest does not match then, a longer one is tried. `failed` holds how many items did not match where:
/// each is tried once at each place.
fn match_items<'a>(
    items: &[Item],
    line: &'a str,
    at: usize,
    fields: Fields<'a>,
    failed: &mut HashSet<(usize, usize)>,
) -> Option<(Fields<'a>, Part, &'a str)> {
    let Some((item, rest)) = items.split_first() else {
        return take_part(&line[at..]).map(|(part, text)| (fields, part, text));
    };
    if failed.contains(&(items.len(), at)) {
        return None;
    }
    let found = match item {
        Item::Literal(literal) => line[at..]
            .starts_with(literal.as_str())
            .then(|| match_items(rest, line, at + literal.len(), fields, failed))
            .flatten(),
        Item::SessionsOnly => match_items(rest, line, at, fields, failed)
            .or_else(|| take_part(&line[at..]).map(|(part, text)| (fields, part, text))),
        Item::Field { field, is_padded } => {
            let padding = if *is_padded { line[at..].len() - line[at..].trim_start_matches(' ').len() } else { 0 };
            let from = at + padding;
            let mut ends = ends_of(*field, &line[from..], *is_padded, rest.first());
            ends.find_map(|end| {
                let mut fields = fields.with(*field, line[from..from + end].trim_end_matches(' '))?;
                if *field == Field::Application {
                    fields.is_application_last = matches!(rest.first(), Some(Item::Literal(next)) if next == " ");
                }
                match_items(rest, line, from + end, fields, failed)
            })
        }
    };
    if found.is_none() {
        failed.insert((items.len(), at));
    }
    found
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
            let known = BACKEND_TYPES.iter().find(|kind| field == Field::BackendType && text.starts_with(*kind));
            let known = known.into_iter().flat_map(move |kind| with_spaces(kind.len()));
            let window = &text[..floor_boundary(text, LONGEST_FIELD)];
            match next {
                Some(Item::Literal(literal)) if field == Field::User && literal == "@" => {
                    Box::new(ends_at_last(window))
                }
                Some(Item::Literal(literal)) => {
                    Box::new(known.chain(window.match_indices(literal.as_str()).map(|(end, _)| end)))
                }
                _ => Box::new(known.chain(window.char_indices().map(|(end, _)| end))),
            }
        }
    }
}

/// Where a user's name ends before an at sign: names of people have one more often than those of databases. So the last one of
/// a text without spaces comes first, then the others from the front.
fn ends_at_last(window: &str) -> impl Iterator<Item = usize> + '_ {
    let word = window.find(' ').unwrap_or(window.len());
    let last = window[..word].rfind('@');
    last.into_iter().chain(window.match_indices('@').map(|(end, _)| end).filter(move |end| Some(*end) != last))
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
