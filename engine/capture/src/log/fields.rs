//! The escapes of `log_line_prefix`: where the text of an escape may end in a line, and which value it stands for.

use crate::time::{Micros, Timestamp};

/// The process types whose names contain a space (`GetBackendTypeDesc` of PostgreSQL 10 to 18).
const BACKEND_TYPES: [&str; 15] = [
    CLIENT,
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

/// The greatest length in bytes of a field such as the user's name.
const LONGEST_FIELD: usize = 300;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
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
    /// The field has digits, or is empty.
    Counter,
    /// The field has a text such as `3/17`, or is empty.
    VirtualTransaction,
    /// The field has digits, which a sign may precede, or is empty.
    QueryId,
    /// The field has a text that captures do not need.
    Other,
}

/// The values of the fields in a line's prefix. Fields that the prefix does not have are empty.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fields<'a> {
    pub time: Timestamp,
    pub pid: Option<u32>,
    pub session_id: &'a str,
    pub session_start: Option<Timestamp>,
    pub user: &'a str,
    pub database: &'a str,
    pub application: &'a str,
    /// True if a space follows the application's name in the prefix. This space cannot be told from a space within the
    /// name, so the text of another field may have been read as a part of the name.
    pub is_application_last: bool,
    pub backend_type: &'a str,
    pub sqlstate: Option<[u8; 5]>,
    pub transaction: Option<u32>,
    /// True if another field, such as a time, was read as part of a name. The line was then cut off within its prefix,
    /// and the other field belongs to the next message.
    pub has_field_in_name: bool,
}

/// Returns the field of an escape such as `%m` in PostgreSQL 9.6 to 18; `None` for `%q`, `%%` and unknown letters.
pub fn field_of(letter: char) -> Option<Field> {
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
        'v' => Field::VirtualTransaction,
        'Q' => Field::QueryId,
        'r' | 'h' | 'i' | 'L' => Field::Other,
        _ => return None,
    })
}

/// The kind of text that follows a field in the prefix.
#[derive(Debug, Clone, Copy)]
pub enum Behind<'a> {
    Literal(&'a str),
    Other,
    /// The prefix ends with the field, so that the keyword of the message, such as `LOG:`, follows directly.
    Nothing,
}

/// Returns the offsets at which a field that begins at the start of `text` may end, the most probable first.
pub fn ends_of<'a>(
    field: Field,
    text: &'a str,
    is_padded: bool,
    behind: Behind<'a>,
) -> Box<dyn Iterator<Item = usize> + 'a> {
    let with_spaces = move |end: usize| {
        let spaces = text[end..].bytes().take_while(|c| *c == b' ').count();
        (end..=end + if is_padded { spaces } else { 0 }).rev()
    };
    let count = |is_its: fn(&u8) -> bool| text.bytes().take_while(is_its).count();
    match field {
        Field::Time | Field::SessionStart => {
            let end = Timestamp::take(text).map(|(_, rest, _)| text.len() - rest.len());
            // If nothing separates the time from the keyword, the letters of the keyword look like a part of the zone's
            // name.
            let letters = end.map_or(0, |end| text[..end].bytes().rev().take_while(u8::is_ascii_alphabetic).count());
            let shorter = end.into_iter().flat_map(move |end| (end - letters..end).rev());
            Box::new(
                end.into_iter().flat_map(with_spaces).chain(shorter.filter(move |_| matches!(behind, Behind::Nothing))),
            )
        }
        Field::Pid | Field::Counter => Box::new(with_spaces(count(u8::is_ascii_digit))),
        Field::Epoch => Box::new(with_spaces(count(|c| c.is_ascii_digit() || *c == b'.'))),
        Field::SqlState => Box::new(text.is_char_boundary(5).then_some(5).into_iter().flat_map(with_spaces)),
        Field::SessionId => Box::new(with_spaces(count(|c| c.is_ascii_hexdigit() || *c == b'.'))),
        Field::VirtualTransaction => {
            let process = count(u8::is_ascii_digit);
            let transaction =
                text[process..].strip_prefix('/').map(|rest| 1 + rest.bytes().take_while(u8::is_ascii_digit).count());
            Box::new(with_spaces(transaction.map_or(0, |length| process + length)))
        }
        Field::QueryId => {
            let sign = usize::from(text.starts_with('-'));
            Box::new(with_spaces(sign + text[sign..].bytes().take_while(u8::is_ascii_digit).count()))
        }
        Field::Application | Field::User | Field::Database | Field::BackendType | Field::Other => {
            let known = BACKEND_TYPES.iter().find(|kind| field == Field::BackendType && text.starts_with(*kind));
            let known = known.into_iter().flat_map(move |kind| with_spaces(kind.len()));
            let window = &text[..floor_boundary(text, LONGEST_FIELD)];
            match behind {
                Behind::Literal("@") if field == Field::User => Box::new(ends_at_last(window)),
                Behind::Literal(literal) => Box::new(known.chain(window.match_indices(literal).map(|(end, _)| end))),
                _ => Box::new(known.chain(window.char_indices().map(|(end, _)| end))),
            }
        }
    }
}

/// Returns the offsets at which a user's name may end before an at sign, the most probable first. User names contain an
/// at sign more often than database names, so the last at sign before a space is the most probable. The others follow
/// in their order.
fn ends_at_last(window: &str) -> impl Iterator<Item = usize> + '_ {
    let word = window.find(' ').unwrap_or(window.len());
    let last = window[..word].rfind('@');
    last.into_iter().chain(window.match_indices('@').map(|(end, _)| end).filter(move |end| Some(*end) != last))
}

/// Returns the largest offset up to `most` at which a character begins or the text ends.
fn floor_boundary(text: &str, most: usize) -> usize {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}

impl<'a> Fields<'a> {
    /// Adds the value of a field. Returns `None` if the value is not valid for the field.
    pub fn with(mut self, field: Field, value: &'a str) -> Option<Self> {
        let is_name =
            matches!(field, Field::Application | Field::User | Field::Database | Field::BackendType | Field::Other);
        self.has_field_in_name |= is_name && has_time(value);
        self.has_field_in_name |= field == Field::BackendType && is_no_type(value);
        match field {
            Field::Application => self.application = value,
            Field::User => self.user = value,
            Field::Database => self.database = value,
            Field::BackendType => self.backend_type = value,
            Field::Pid => self.pid = Some(value.parse().ok()?),
            Field::Time => self.time = Timestamp::take(value)?.0,
            Field::Epoch => self.time = Timestamp::at_utc(epoch(value)?),
            Field::SqlState => self.sqlstate = Some(sqlstate(value)?),
            Field::SessionId => self.session_id = Some(value).filter(|id| is_session_id(id))?,
            Field::SessionStart => self.session_start = Some(Timestamp::take(value)?.0),
            Field::VirtualTransaction => self.transaction = transaction(value),
            Field::Counter | Field::QueryId | Field::Other => {}
        }
        Some(self)
    }

    /// Returns how many of the three names of a session (user, database, application) the line has.
    pub fn names(&self) -> usize {
        [self.user, self.database, self.application].iter().filter(|name| !name.is_empty()).count()
    }
}

/// Parses a time such as `1795420800.123`, in seconds since 1970.
fn epoch(text: &str) -> Option<Micros> {
    let (seconds, milliseconds) = text.split_once('.')?;
    let is_epoch = (1..=10).contains(&seconds.len()) && milliseconds.len() == 3;
    let number = |text: &str| text.parse::<Micros>().ok();
    is_epoch.then(|| Some((number(seconds)? * 1000 + number(milliseconds)?) * 1000))?
}

/// True if a text cannot be just the name of a process type, because it contains a date, a session's identifier or
/// another field. Names of process types may contain spaces, but nothing like these.
fn is_no_type(text: &str) -> bool {
    let is_hex = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_hexdigit);
    let ends_in_session = |word: &str| {
        word.rsplit_once('.').is_some_and(|(start, pid)| {
            is_hex(pid.as_bytes()) && start.as_bytes().last_chunk::<8>().is_some_and(|start| is_hex(start))
        })
    };
    let has_client = text != CLIENT && text.contains(CLIENT);
    let is_date =
        |word: &str| word.len() > 7 && word.bytes().all(|c| c.is_ascii_digit() || c == b'-') && word.contains('-');
    has_client || text.split(' ').any(|word| ends_in_session(word) || is_date(word) || is_other_field(word))
}

/// The type of the processes that serve clients.
const CLIENT: &str = "client backend";

/// True if a text contains a timestamp.
fn has_time(text: &str) -> bool {
    let dashes = memchr::memchr_iter(b'-', text.as_bytes());
    dashes.filter_map(|dash| text.get(dash.checked_sub(4)?..)).any(|rest| Timestamp::take(rest).is_some())
}

/// Parses a SQLSTATE, which consists of five digits and capital letters.
pub fn sqlstate(text: &str) -> Option<[u8; 5]> {
    let code: [u8; 5] = text.as_bytes().try_into().ok()?;
    code.iter().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase()).then_some(code)
}

/// Returns the number of the transaction from a virtual transaction identifier: 17 for `3/17`. It is 0 outside of
/// transactions.
pub fn transaction(text: &str) -> Option<u32> {
    text.split_once('/')?.1.parse().ok()
}

/// True if a text has the form of `%c`: the session's start in seconds since 1970 and the number of the process, both
/// hexadecimal. Until the year 2106 both have at most 32 bits.
fn is_session_id(text: &str) -> bool {
    let is_number = |text: &str| (1..=8).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_hexdigit());
    text.split_once('.').is_some_and(|(start, pid)| is_number(start) && is_number(pid))
}

/// Returns the process number from a session's identifier such as `6560a1b2.1f3c`.
pub fn pid_of(session_id: &str) -> Option<u32> {
    u32::from_str_radix(session_id.split_once('.')?.1, 16).ok()
}

/// True if a word looks like an address, a number or a session's identifier, and so is hardly a name.
pub fn is_other_field(word: &str) -> bool {
    let has_only = |more: &str| word.chars().all(|c| c.is_ascii_hexdigit() || more.contains(c));
    let is_address = has_only(".:()") && word.matches(['.', ':']).count() >= 2;
    let is_number = !word.is_empty() && word.bytes().all(|c| c.is_ascii_digit());
    let is_session = has_only(".") && word.matches('.').count() == 1 && word.len() > 9;
    is_address || is_number || is_session
}
