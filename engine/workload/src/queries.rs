//! Counts statements by their outcome.

use serde::Serialize;
use wire::QueryKind;

/// The numbers of statements by outcome. Only statements whose rows are `Counted`, `Hashed` or `Handed` (see
/// [`wire::Rows`]) are included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Queries {
    pub reads: u64,
    pub writes: u64,
    pub others: u64,
    /// The number of statements that failed.
    pub errors: u64,
    /// The number of times that a client has connected again after its first connection.
    pub reconnects: u64,
}

impl Queries {
    /// Counts a statement that the server has executed by its kind: read, write or other. A text without a statement
    /// counts as an error, as in sysbench.
    #[inline]
    pub fn add(&mut self, kind: QueryKind) {
        match kind {
            QueryKind::Read => self.reads += 1,
            QueryKind::Write => self.writes += 1,
            QueryKind::Other => self.others += 1,
            QueryKind::Nothing => self.errors += 1,
        }
    }

    /// Returns the number of statements that the server has executed without an error.
    pub fn total(&self) -> u64 {
        self.reads + self.writes + self.others
    }

    /// Adds the counts in `other`.
    pub fn merge(&mut self, other: &Queries) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.others += other.others;
        self.errors += other.errors;
        self.reconnects += other.reconnects;
    }
}
