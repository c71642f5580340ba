//! Finds logs that have the same records, from which statements would be captured twice: one log in two formats, a log
//! and its copy, or logs of two servers.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::log::Record;
use crate::time::{Micros, SECOND};

/// The time in microseconds by which a log may begin before the end of the previous log. The processes of a server do
/// not write their messages exactly in the order of time.
const TOLERANCE: Micros = 2_000_000;

/// The number of different records that are enough to recognize a repetition, even if other records are between them.
const ENOUGH: usize = 3;

/// The greatest number of records of earlier logs that stay in memory, which bounds the memory.
const MOST_KEPT: usize = 1 << 16;

/// A record as far as it is compared: its time, and a digest of its texts.
type Seen = (Micros, u64);

/// The last records of the logs that were read, with which the beginning of the next log is compared.
#[derive(Default)]
pub struct Overlap {
    /// The records whose time is within [`TOLERANCE`] microseconds before the latest record, at most [`MOST_KEPT`].
    last: VecDeque<Seen>,
    /// The name of the log with the latest record, and the time of that record.
    end: Option<(String, Micros)>,
    /// The comparison of the current log's first records with earlier logs. It is `None` once the current log is known
    /// to be a continuation.
    beginning: Option<Beginning>,
    /// True if another log will follow the current one. The last records of the current log are then needed for a
    /// comparison.
    is_followed: bool,
    /// The first record of each log. If such a record follows later ones in the same log, somebody has appended a log
    /// to its copy.
    firsts: HashSet<Seen>,
    /// The time of the record before the current one in the same log.
    before: Option<Micros>,
}

/// The comparison of a log's first records with the records of earlier logs.
struct Beginning {
    /// The last records of the earlier logs.
    known: Vec<Seen>,
    /// The name of the earlier log with the latest record.
    other: String,
    /// The time of that record. If the log has whole seconds, it is the end of that second.
    end: Micros,
    /// The records of the current log until now. None of them is later than `end`.
    found: Vec<Seen>,
}

impl Overlap {
    /// Begins the next log. `is_followed` is true if another log will follow it.
    pub fn next_log(&mut self, is_followed: bool) {
        (self.is_followed, self.before) = (is_followed, None);
        let known: Vec<Seen> = self.last.iter().copied().collect();
        let most_late = if is_coarse(&known) { SECOND - 1 } else { 0 };
        self.beginning =
            self.end.clone().map(|(other, end)| Beginning { known, other, end: end + most_late, found: Vec::new() });
    }

    /// Processes a record of the log `name`. Returns the name of an earlier log if the current log turns out to have
    /// the same records, or `name` if the log contains its own first records twice.
    pub fn take(&mut self, record: &Record, name: &str) -> Option<String> {
        let time = record.time.utc;
        let before = self.before.replace(time);
        let goes_back = before.is_some_and(|before| time < before);
        // Most captures are made from one log, for which hardly any digest is needed.
        if before.is_some() && !goes_back && self.beginning.is_none() && !self.is_followed {
            return None;
        }
        let seen = (time, digest_of(record));
        // The processes of a server may write their messages a little out of order, but with fractions of a second no
        // two messages are equal.
        let is_another = time.is_multiple_of(SECOND) && before.is_some_and(|before| time + TOLERANCE >= before);
        if goes_back && !is_another && self.firsts.contains(&seen) {
            return Some(name.to_owned());
        }
        if before.is_none() {
            self.firsts.insert(seen);
        }
        let decided = self.beginning.as_mut().and_then(|beginning| beginning.take(seen));
        if let Some(is_repeated) = decided {
            let other = self.beginning.take().map(|beginning| beginning.other);
            if is_repeated {
                return other;
            }
        }
        if self.end.as_ref().is_none_or(|(_, end)| time >= *end) {
            self.end = Some((name.to_owned(), time));
        }
        self.last.push_back(seen);
        let is_old = |(before, _): &Seen| before + TOLERANCE < time;
        while self.last.len() > MOST_KEPT || self.last.front().is_some_and(is_old) {
            self.last.pop_front();
        }
        None
    }

    /// Ends a log. If the log ended before it was known to be a continuation, and has the same records as an earlier
    /// log, returns the name of that log.
    pub fn end_log(&mut self) -> Option<String> {
        self.beginning.take().filter(Beginning::is_repeated).map(|beginning| beginning.other)
    }
}

impl Beginning {
    /// Processes a record of the current log. Returns whether the log repeats an earlier one, or `None` if that is not
    /// known yet.
    fn take(&mut self, seen: Seen) -> Option<bool> {
        if self.found.is_empty() && seen.0 + TOLERANCE < self.end {
            return Some(true);
        }
        if seen.0 > self.end || self.found.len() == MOST_KEPT {
            return Some(self.is_repeated());
        }
        self.found.push(seen);
        None
    }

    /// Returns true if the records of the current log are the last ones of the earlier logs, or if enough of them are
    /// among the earlier records.
    fn is_repeated(&self) -> bool {
        let Some((first, _)) = self.found.first().copied() else { return false };
        // A log with whole seconds may repeat one with fractions.
        let is_coarse = is_coarse(&self.known) || is_coarse(&self.found);
        let unit = if is_coarse { SECOND } else { 1 };
        let rounded = |(time, digest): &Seen| (time / unit, *digest);
        let mut left: HashMap<Seen, usize> = HashMap::new();
        for known in self.known.iter().map(rounded).filter(|(time, _)| *time >= first / unit) {
            *left.entry(known).or_default() += 1;
        }
        let known: usize = left.values().sum();
        let is_known = |seen: &Seen| {
            let count = left.get_mut(seen).filter(|count| **count > 0);
            count.map(|count| *count -= 1).is_some()
        };
        let repeated: Vec<Seen> = self.found.iter().map(rounded).filter(is_known).collect();
        let different = repeated.iter().collect::<HashSet<_>>().len();
        let is_tail = repeated.len() == self.found.len() && repeated.len() == known;
        // If times are whole seconds, a session may log the same message twice at one time, at the end of a log and at
        // the beginning of the next one.
        if is_coarse { is_tail && different > 1 } else { is_tail || different >= ENOUGH }
    }
}

/// Returns true if all times are whole seconds.
fn is_coarse(records: &[Seen]) -> bool {
    records.iter().all(|(time, _)| time.is_multiple_of(SECOND))
}

/// Returns a digest of the values of a record that logs of every format have.
fn digest_of(record: &Record) -> u64 {
    let mut hasher = DefaultHasher::new();
    (record.pid, &record.message, &record.detail, &record.statement).hash(&mut hasher);
    hasher.finish()
}
