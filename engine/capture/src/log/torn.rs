//! Finds messages that begin within a line. A crash of the server or of its disk has then cut off the message before
//! them.

use super::prefix::Prefix;
use super::record::Record;
use super::words::{has_part, is_message, part_ends};
use crate::message;
use crate::parameters;
use crate::sql::tokens::{SqlToken, TokenKind, Tokens};

/// The greatest number of bytes between the beginning of a message and its keyword.
const LONGEST_PREFIX: usize = 600;

/// The greatest number of keywords that are examined in a text. A text with more keywords has lost so much data that an
/// exact count is not worth the time.
const MOST_WORDS: usize = 64;

/// Returns the number of server messages that begin within a line because data were lost there.
pub fn messages_within(prefix: &Prefix, line: &str) -> u64 {
    count(prefix, line, |_| false)
}

/// True if a message may begin within a hole of zero bytes, with which a file system has filled lost data: the keyword
/// of a message follows the hole, and the keyword of another message part stands before it.
pub fn begins_in_hole(prefix: &Prefix, line: &str) -> bool {
    let Some((hole, _)) = line.char_indices().rfind(|(_, c)| *c == '\0') else { return false };
    let first = part_ends(&line[hole..], prefix.ends_in_field()).next();
    has_part(&line[..hole]) && first.is_some_and(|end| is_message(&line[hole..hole + end]))
}

/// Returns the number of messages that begin within the texts of a record, or within its `further` message parts,
/// because data were lost there. Text that a statement or a parameter quotes is not counted.
pub fn messages_within_texts(prefix: &Prefix, record: &Record, further: &str) -> u64 {
    let Record { message, detail, context, statement, .. } = record;
    let is_list = |list: Option<&str>| list.is_some_and(|list| parameters::parse(list).is_some());
    let of_detail = if is_list(message::detail_parameters(detail)) { "" } else { detail };
    let of_context = if is_list(message::context_parameters(context)) { "" } else { context };
    [message, of_detail, of_context, statement, further]
        .into_iter()
        .map(|text| messages_within_text(prefix, text))
        .sum()
}

/// Returns the number of server messages that begin within an SQL text because data were lost there. A message that the
/// SQL itself quotes is not counted.
///
/// A quoted message stands within a literal that has an end, so the text from the message on has one quote too many. If
/// data were lost within a literal, either the literal has no end, or the quotes of the message behind it are balanced.
pub fn messages_within_text(prefix: &Prefix, text: &str) -> u64 {
    if part_ends(text, prefix.ends_in_field()).next().is_none() {
        return 0;
    }
    let longer = closed(text);
    let is_literal = |token: &SqlToken<'_>| matches!(token.kind, TokenKind::Text | TokenKind::QuotedName);
    let ended = Tokens::of(&longer).filter(|token| token.end() <= text.len() && is_literal(token));
    let literals: Vec<_> = ended.map(|token| token.at..token.end()).collect();
    count(prefix, text, |at| {
        let is_in_literal = literals.iter().any(|literal| literal.contains(&at));
        is_in_literal && !is_closed(&text[at..])
    })
}

/// Returns a text with a semicolon appended. If a literal or a comment of the text does not end, the semicolon becomes
/// a part of it.
fn closed(text: &str) -> String {
    format!("{text}\n;")
}

/// True if every literal and comment of a text ends within the text.
fn is_closed(text: &str) -> bool {
    Tokens::of(&closed(text)).last().is_some_and(|token| token.is_symbol(";"))
}

fn count(prefix: &Prefix, text: &str, is_quoted: impl Fn(usize) -> bool) -> u64 {
    let ends = part_ends(text, prefix.ends_in_field()).take(MOST_WORDS).filter(|end| !is_quoted(*end));
    ends.filter(|end| begins_before(prefix, text, *end)).count() as u64
}

/// True if a message begins in `text` and its keyword ends at byte `end`, so that both its prefix and its keyword are
/// complete.
fn begins_before(prefix: &Prefix, text: &str, end: usize) -> bool {
    let line = text[..end].rfind('\n').map_or(0, |at| at + 1);
    let from = line.max(end.saturating_sub(LONGEST_PREFIX));
    let begins = |at: &usize| text.is_char_boundary(*at) && prefix.may_begin(&text[*at..]);
    (from..end).filter(begins).any(|at| prefix.begins(&text[at..], end - at))
}
