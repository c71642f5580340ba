//! Finds logs that have the same records: one log in two formats, a log and its copy, or logs of two servers.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::log::Record;
use crate::time::Micros;

/// The time by which a log may begin before the end of the log that it goes on from, in microseconds: processes of a
/// server do not write in the order of their times.
const TOLERANCE: Micros = 2_000_000;

/// The number of records at the beginning of a log that are looked for in the logs before it.
const COMPARED: usize = 3;

/// The greatest number of records that are kept, which bounds the memory.
const MOST_KEPT: usize = 1 << 16;

const SECOND: Micros = 1_000_000;

/// The end of the logs that were read, to which the beginning of the next one is compared.
#[derive(Default)]
pub struct Overlap {
    /// The records of the last [`TOLERANCE`], at most [`MOST_KEPT`], each as its time and a digest of its texts.
    last: VecDeque<(Micros, u64)>,
    /// The name of the log that has the latest record, and the time of that record.
    end: Option<(String, Micros)>,
    /// The beginning of the log that is read now; `None` if it is known to go on from the others.
    beginning: Option<Beginning>,
    /// True if another log follows the one that is read now, so that its end has to be known.
    is_followed: bool,
}

/// The first records of a log, by which pgtrial finds out whether an earlier log has the same records.
struct Beginning {
    /// The last records of the logs before.
    known: HashSet<(Micros, u64)>,
    compared: usize,
}

impl Overlap {
    /// Begins the next log. `is_followed` is true if it is not the last one.
    pub fn next_log(&mut self, is_followed: bool) {
        self.is_followed = is_followed;
        let known = self.last.iter().copied().collect();
        self.beginning = self.end.is_some().then_some(Beginning { known, compared: 0 });
    }

    /// Takes a record of the log `name`. Returns the name of an earlier log that has the same records.
    pub fn take(&mut self, record: &Record, name: &str) -> Option<String> {
        // Most captures are of one log, whose records need no digests.
        if self.beginning.is_none() && !self.is_followed {
            return None;
        }
        let (time, digest) = (record.time.utc, digest_of(record));
        if let (Some(beginning), Some((other, end))) = (&mut self.beginning, &self.end) {
            let is_early = beginning.compared == 0 && time + TOLERANCE < *end;
            // Records whose times are whole seconds may be equal by chance.
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

    /// Ends a log. Returns the name of an earlier log that has all of its records, if it has few.
    pub fn end_log(&mut self) -> Option<String> {
        let is_repeated = self.beginning.take().is_some_and(|beginning| beginning.compared > 0);
        self.end.as_ref().filter(|_| is_repeated).map(|(other, _)| other.clone())
    }
}

/// Returns a digest of the parts of a record that all formats have.
fn digest_of(record: &Record) -> u64 {
    let mut hasher = DefaultHasher::new();
    (record.pid, &record.message, &record.detail, &record.statement).hash(&mut hasher);
    hasher.finish()
}
