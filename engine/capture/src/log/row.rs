//! Rows of `csvlog`: splits them into columns, and finds where a row begins.

use super::fields::sqlstate;
use super::words::{Part, part};
use crate::time::Timestamp;

/// The numbers of columns that a row can have: up to PostgreSQL 12, in version 13, and since version 14.
pub const COLUMNS: [usize; 3] = [23, 24, 26];

/// The indexes of the columns that captures need, counted from 0.
pub mod column {
    pub const TIME: usize = 0;
    pub const USER: usize = 1;
    pub const DATABASE: usize = 2;
    pub const PID: usize = 3;
    pub const SESSION_ID: usize = 5;
    pub const SESSION_START: usize = 8;
    pub const TRANSACTION: usize = 9;
    pub const SEVERITY: usize = 11;
    pub const SQLSTATE: usize = 12;
    pub const MESSAGE: usize = 13;
    pub const DETAIL: usize = 14;
    pub const CONTEXT: usize = 18;
    pub const STATEMENT: usize = 19;
    /// The position of the error in the text of the statement.
    pub const POSITION: usize = 20;
    pub const APPLICATION: usize = 22;
    /// The type of the process. Rows have this column since PostgreSQL 13.
    pub const BACKEND_TYPE: usize = 23;
}

/// The number of bytes at the beginning of a row that are examined to recognize it. They must contain the columns up to
/// the SQLSTATE.
const LONGEST_HEAD: usize = 2048;

/// The greatest length of a timestamp, in bytes.
const LONGEST_TIME: usize = 48;

/// True if a row begins at the start of `line`: the columns up to the SQLSTATE have the form that the server gives
/// them. CSV doubles the quotes within a quoted text, so a row that a statement quotes is not taken for a row of the
/// log.
pub fn begins_row(line: &[u8]) -> bool {
    // The first column is checked first, because most lines that do not begin a row have no timestamp there.
    let is_time = |head: &[u8]| time(&String::from_utf8_lossy(head)).is_some();
    if !memchr::memchr(b',', &line[..line.len().min(LONGEST_TIME)]).is_some_and(|end| is_time(&line[..end])) {
        return false;
    }
    let head = String::from_utf8_lossy(&line[..line.len().min(LONGEST_HEAD)]);
    let mut columns = [""; column::SQLSTATE + 1];
    let mut rest: &str = &head;
    for column in &mut columns {
        let Some((text, next)) = head_column(rest) else { return false };
        (*column, rest) = (text, next);
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let is_session = |text: &str| {
        text.split_once('.').is_some_and(|(start, pid)| {
            !start.is_empty() && !pid.is_empty() && (start.bytes().chain(pid.bytes())).all(|c| c.is_ascii_hexdigit())
        })
    };
    is_number(columns[column::PID])
        && is_session(columns[column::SESSION_ID])
        && time(columns[column::SESSION_START]).is_some()
        && matches!(part(columns[column::SEVERITY]), Some(Part::Message(_) | Part::Foreign(_)))
        && sqlstate(columns[column::SQLSTATE]).is_some()
}

/// Parses a column that contains only a timestamp.
pub fn time(text: &str) -> Option<Timestamp> {
    Timestamp::take(text).filter(|(_, rest, _)| rest.is_empty()).map(|(time, ..)| time)
}

/// Splits the first column and the comma behind it off a row. Returns the column and the rest of the row.
fn head_column(row: &str) -> Option<(&str, &str)> {
    let Some(quoted) = row.strip_prefix('"') else {
        // A row that is quoted in JSON has backslashes before its quotes.
        return row.split_once(',').filter(|(text, _)| !text.contains('"'));
    };
    let mut end = 0;
    loop {
        end += quoted[end..].find('"')?;
        match quoted.as_bytes().get(end + 1)? {
            b'"' => end += 2,
            b',' => return Some((&quoted[..end], &quoted[end + 2..])),
            _ => return None,
        }
    }
}

/// Returns the offsets at which rows begin within a text. If an earlier row was cut off, the next row begins in the
/// middle of a line.
pub fn rows_within(text: &[u8]) -> impl Iterator<Item = usize> + '_ {
    memchr::memchr_iter(b'-', text).filter_map(|dash| dash.checked_sub(4)).filter(|at| {
        let rest = &text[*at..];
        let is_date = rest.len() > 10 && rest[7] == b'-' && rest[..4].iter().all(u8::is_ascii_digit);
        *at > 0 && is_date && begins_row(rest)
    })
}

/// Splits a row at its commas into `fields`, whose memory is used again for the next row. Returns the number of fields;
/// 0 if there is a quote where CSV does not allow one.
pub fn split(row: &[u8], fields: &mut Vec<Vec<u8>>) -> usize {
    let (mut count, mut rest) = (0, row);
    loop {
        if fields.len() == count {
            fields.push(Vec::new());
        }
        let field = &mut fields[count];
        field.clear();
        count += 1;
        if let Some(quoted) = rest.strip_prefix(b"\"") {
            rest = quoted;
            loop {
                let Some(at) = memchr::memchr(b'"', rest) else { return 0 };
                field.extend_from_slice(&rest[..at]);
                rest = &rest[at + 1..];
                if rest.first() != Some(&b'"') {
                    break;
                }
                field.push(b'"');
                rest = &rest[1..];
            }
        } else {
            let end = memchr::memchr(b',', rest).unwrap_or(rest.len());
            field.extend_from_slice(&rest[..end]);
            rest = &rest[end..];
        }
        match rest.split_first() {
            None => return count,
            Some((b',', next)) => rest = next,
            Some(_) => return 0,
        }
    }
}
