//! Finds logs that have the same records, from which statements would be captured twice: one log in two formats, a log
//! and its copy, or logs of two servers.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::log::Record;
use crate::time::Micros;

/// The time in microseconds by which a log may begin before the end of the previous log. The processes of a server do
/// not write their messages exactly in the order of time.
const TOLERANCE: Micros = 2_000_000;

/// The number of records at the beginning of a log that are looked up among the last records of earlier logs.
const COMPARED: usize = 3;

/// The greatest number of records of earlier logs that stay in memory, which bounds the memory.
const MOST_KEPT: usize = 1 << 16;

const SECOND: Micros = 1_000_000;

/// The last records of the logs that were read, with which the beginning of the next log is compared.
#[derive(Default)]
pub struct Overlap {
    /// The records whose time is within [`TOLERANCE`] microseconds before the latest record, at most [`MOST_KEPT`]. Of
    /// each record only its time and a digest of its texts are kept.
    last: VecDeque<(Micros, u64)>,
    /// The name of the log with the latest record, and the time of that record.
    end: Option<(String, Micros)>,
    /// The comparison of the current log's first records with earlier logs. It is `None` once a record is not in an
    /// earlier log, because the current log is then a continuation.
    beginning: Option<Beginning>,
    /// True if another log will follow the current one. The last records of the current log are then needed for a
    /// comparison.
    is_followed: bool,
}

/// The comparison of a log's first records with the records of earlier logs.
struct Beginning {
    /// The last records of the earlier logs, each as its time and a digest of its texts.
    known: HashSet<(Micros, u64)>,
    compared: usize,
}

impl Overlap {
    /// Begins the next log. `is_followed` is true if another log will follow it.
    pub fn next_log(&mut self, is_followed: bool) {
        self.is_followed = is_followed;
        let known = self.last.iter().copied().collect();
        self.beginning = self.end.is_some().then_some(Beginning { known, compared: 0 });
    }

    /// Processes a record of the log `name`. Returns the name of an earlier log if the current log turns out to have
    /// the same records.
    pub fn take(&mut self, record: &Record, name: &str) -> Option<String> {
        // Most captures are made from one log, for which no digests are needed.
        if self.beginning.is_none() && !self.is_followed {
            return None;
        }
        let (time, digest) = (record.time.utc, digest_of(record));
        if let (Some(beginning), Some((other, end))) = (&mut self.beginning, &self.end) {
            let is_early = beginning.compared == 0 && time + TOLERANCE < *end;
            // If the times of a log are whole seconds, equal records may be different ones, so they prove nothing.
            let is_known = time % SECOND != 0 && beginning.known.contains(&(time, digest));
            beginning.compared += 1;
            if is_early || (is_known && beginning.compared == COMPARED) {
                return Some(other.clone());
            }
            if is_known {
                return None;
            }
            self.beginning = None;
        }
        if self.end.as_ref().is_none_or(|(_, end)| time >= *end) {
            self.end = Some((name.to_owned(), time));
        }
        self.last.push_back((time, digest));
        let is_old = |(before, _): &(Micros, u64)| before + TOLERANCE < time;
        while self.last.len() > MOST_KEPT || self.last.front().is_some_and(is_old) {
            self.last.pop_front();
        }
        None
    }

    /// Ends a log. If the log had too few records to be recognized as a repetition before its end, and all of them are
    /// in earlier logs, returns the name of an earlier log.
    pub fn end_log(&mut self) -> Option<String> {
        let is_repeated = self.beginning.take().is_some_and(|beginning| beginning.compared > 0);
        self.end.as_ref().filter(|_| is_repeated).map(|(other, _)| other.clone())
    }
}

/// Returns a digest of the values of a record that logs of every format have.
fn digest_of(record: &Record) -> u64 {
    let mut hasher = DefaultHasher::new();
    (record.pid, &record.message, &record.detail, &record.statement).hash(&mut hasher);
    hasher.finish()
}
