//! Finds messages that are in another log format than the log that contains them.

use super::row::{begins_row, rows_within};
use super::words::part_ends;

/// Returns the number of messages in `line` that seem to be in another log format than the format of the log.
pub fn messages_of_another_form(line: &str) -> u64 {
    let objects = objects(line).count();
    let rows = rows_within(line.as_bytes()).count() + usize::from(begins_row(line.as_bytes()));
    let is_one = part_ends(line, true).next().is_some() || line.contains("\"error_severity\"");
    objects.max(rows).max(usize::from(is_one)) as u64
}

/// The first characters of a line in the formats of `jsonlog`, CloudNativePG and Docker.
const BEGINS: [&str; 3] = ["{\"timestamp\":\"", "{\"level\":\"", "{\"log\":\""];

/// Returns the offsets at which JSON objects of a log begin within a line that may have been cut off, in ascending
/// order.
pub fn objects(line: &str) -> impl Iterator<Item = usize> + '_ {
    let begins = |at: &usize| BEGINS.iter().any(|begin| line.as_bytes()[*at..].starts_with(begin.as_bytes()));
    memchr::memchr_iter(b'{', line.as_bytes()).filter(begins)
}
