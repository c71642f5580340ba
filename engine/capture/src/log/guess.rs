//! Guesses the `log_line_prefix` of a log if the user does not give it.

use super::fields::{Fields, is_other_field};
use super::prefix::{Matched, Prefix};
use super::words::has_part;

/// The prefixes that are tried: PostgreSQL's default, and prefixes that packages, hosting providers or pgBadger's
/// documentation recommend.
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

/// Characters that hardly occur in the names of users and databases. A guess that finds one of them in a name is likely
/// wrong.
const UNLIKELY: [char; 14] = [' ', '[', ']', '(', ')', '{', '}', '<', '>', '|', '=', ',', ';', ':'];

/// Characters that hardly occur in the names of applications. The characters that only [`UNLIKELY`] contains do occur
/// in such names, for example spaces.
const BRACKETS: [char; 9] = ['[', ']', '{', '}', '<', '>', '|', '=', ';'];

/// The number of lines from which the prefix is guessed.
const GUESSED_FROM: usize = 200;

impl Prefix {
    /// Returns the prefix of [`COMMON`] that fits the most lines. A line counts only if the names that the prefix finds
    /// in it are plausible. Among equally good prefixes, returns the one that finds most names. Returns `None` if no
    /// prefix fits any line.
    pub fn guess(head: &str) -> Option<Self> {
        let lines: Vec<&str> = head.lines().filter(|line| !line.starts_with('\t')).take(GUESSED_FROM).collect();
        // `max_by_key` returns the last of equal elements, but the first of [`COMMON`] is wanted. Hence the reversed
        // order.
        let counted = COMMON.iter().rev().map(|text| {
            let mut prefix = Self::parse(text).expect("common prefixes are prefixes");
            prefix.is_guessed = true;
            let matched: Vec<_> = lines.iter().filter_map(|line| prefix.read(line)).collect();
            let likely = matched.iter().filter(|(matched, ..)| matched.unlikely_name().is_none()).count();
            let names: usize = matched.iter().map(|(matched, ..)| matched.fields.names()).sum();
            ((likely, matched.len(), names), prefix)
        });
        let (most, prefix) = counted.max_by_key(|(count, _)| *count)?;
        (most.1 > 0).then_some(prefix)
    }

    /// Returns why the guessed prefix is wrong, if `line` shows it: a name that looks as if it contained another field,
    /// or a message behind another prefix. A prefix that the user gave is never refuted. The answer is the rest of a
    /// sentence that begins with "line N of the log".
    pub fn refuted_by(&self, line: &str, matched: Option<&Matched<'_>>) -> Option<String> {
        if !self.is_guessed {
            return None;
        }
        match matched.map(Matched::unlikely_name) {
            Some(None) => None,
            Some(Some(name)) => Some(format!("has the name \"{name}\" in it if log_line_prefix is '{}'", self.text())),
            None => has_part(line).then(|| format!("does not begin with '{}', as lines before it do", self.text())),
        }
    }
}

impl Matched<'_> {
    /// Returns the user, database or application name of the line if it contains a character or a word that such names
    /// hardly ever contain. This shows a wrong guess, which often reads another part of the prefix as a part of a name.
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
}
