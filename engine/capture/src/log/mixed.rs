//! Finds messages in another log format than that of the log around them.

use super::row::{begins_row, rows_within};
use super::words::part_ends;

/// Returns how many messages a line may hold that are in another log format than the one that the log is read as.
pub fn messages_of_another_form(line: &str) -> u64 {
    let objects = objects(line).count();
    let rows = rows_within(line.as_bytes()).count() + usize::from(begins_row(line.as_bytes()));
    let is_one = part_ends(line, true).next().is_some() || line.contains("\"error_severity\"");
    objects.max(rows).max(usize::from(is_one)) as u64
}

/// The beginnings of lines of `jsonlog`, of CloudNativePG and of Docker.
const BEGINS: [&str; 3] = ["{\"timestamp\":\"", "{\"level\":\"", "{\"log\":\""];

/// Returns the places where objects begin in a line that may have been torn off, in their order.
pub fn objects(line: &str) -> impl Iterator<Item = usize> + '_ {
    let begins = |at: &usize| BEGINS.iter().any(|begin| line.as_bytes()[*at..].starts_with(begin.as_bytes()));
    memchr::memchr_iter(b'{', line.as_bytes()).filter(begins)
}
