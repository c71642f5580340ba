//! The results of a statement: what the caller uses of them, and the values that are kept for the caller.

use crate::error::ConnectionError;
use crate::frame;
use crate::order::COLUMN_DETAILS;
use ground::random::splitmix64_at;

/// The use that a caller makes of the rows of a query.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    #[default]
    Skipped,
    /// The last row of each result is kept as a [`ResultSet`].
    Kept,
    /// The rows are counted. The number is in [`Answered`].
    Counted,
    /// The rows are counted and their contents are hashed. Both numbers are in [`Answered`].
    Hashed,
    /// All rows are kept. They are in [`Answered`].
    Handed,
}

/// The answer to a successful statement: its kind and, as far as the caller asked for them, its rows.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Answered {
    pub kind: QueryKind,
    /// True if the session is in a transaction after the statement.
    pub in_transaction: bool,
    /// The number of rows that the statement returned or, if it returned none, that it changed.
    pub rows: u64,
    /// The hash of the rows, which does not depend on their order; 0 unless the caller asked for it.
    pub hash: u64,
    /// The body of the RowDescription, with the names and types of the columns. `None` if the server sent none, or
    /// unless all rows were asked for ([`Rows::Handed`]).
    pub columns: Option<Vec<u8>>,
    /// The rows as the server sent them: DataRow messages, each with its type and length. Empty unless all rows were
    /// asked for ([`Rows::Handed`]).
    pub data: Vec<u8>,
}

/// The kind of a statement. As in sysbench, it is derived from the server's answer.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum QueryKind {
    /// The statement returned a result, with or without rows.
    Read,
    /// The statement changed at least one row.
    Write,
    #[default]
    Other,
    /// The text was empty, or had only blanks and comments. sysbench counts this as an error.
    Nothing,
}

/// Builds an [`Answered`] for [`Rows::Counted`], [`Rows::Hashed`] and [`Rows::Handed`]. It describes the last result of
/// a request.
#[derive(Default)]
pub struct Answering {
    /// The answer, once it is complete.
    pub answered: Answered,
    /// The number of rows of the current result so far. `None` before its RowDescription or its first row.
    rows: Option<u64>,
    /// True if the last result is complete, so that the next message begins another result.
    is_complete: bool,
    /// A buffer that the next RowDescription can reuse.
    spare: Vec<u8>,
    /// True if the server sends a RowDescription before rows, as in answer to a Query message.
    is_described: bool,
}

impl Answering {
    /// Begins the answer to another request. `is_described` is true if the server sends a RowDescription before rows.
    pub fn expect(&mut self, is_described: bool) {
        self.clear();
        self.is_described = is_described;
    }

    fn clear(&mut self) {
        self.answered.kind = QueryKind::Other;
        self.answered.rows = 0;
        self.answered.hash = 0;
        if let Some(columns) = self.answered.columns.take() {
            self.spare = columns;
        }
        self.answered.data.clear();
        self.rows = None;
        self.is_complete = false;
    }

    /// Processes a RowDescription. Its body is kept if `hands` is true.
    #[inline(always)]
    pub fn describe(&mut self, body: &[u8], hands: bool) {
        self.begin();
        self.rows = Some(0);
        if hands {
            let mut columns = std::mem::take(&mut self.spare);
            columns.clear();
            columns.extend_from_slice(body);
            self.answered.columns = Some(columns);
        }
    }

    /// Processes a DataRow. Its body is kept if `hands` is true.
    #[inline(always)]
    pub fn add_row(&mut self, body: &[u8], hands: bool) {
        self.begin();
        self.rows = Some(self.rows.unwrap_or(0) + 1);
        if hands {
            frame::write(&mut self.answered.data, b'D', |out| out.extend_from_slice(body));
        }
    }

    /// Processes a DataRow and adds its contents to the hash.
    pub fn add_hashed_row(&mut self, body: &[u8]) {
        self.add_row(body, false);
        self.answered.hash = self.answered.hash.wrapping_add(hash_of_row(body));
    }

    /// Processes a CommandComplete. Its tag is the name of the command, often followed by a number of rows.
    #[inline(always)]
    pub fn complete(&mut self, tag: &[u8]) {
        self.begin();
        (self.answered.kind, self.answered.rows) = match self.rows {
            Some(rows) => (QueryKind::Read, rows),
            None => self.kind_by_tag(tag),
        };
        self.rows = None;
        self.is_complete = true;
    }

    /// Processes an EmptyQueryResponse, which ends a statement without text.
    pub fn complete_empty(&mut self) {
        self.begin();
        self.answered.kind = QueryKind::Nothing;
        self.is_complete = true;
    }

    #[inline(always)]
    fn begin(&mut self) {
        if self.is_complete {
            self.clear();
        }
    }

    /// Returns the kind and the number of rows of a result of which only the command tag was received. If the client
    /// has not asked for RowDescriptions, a result with columns but without rows is recognized by the name of the
    /// command.
    fn kind_by_tag(&self, tag: &[u8]) -> (QueryKind, u64) {
        let tag = tag.strip_suffix(&[0]).unwrap_or(tag);
        let digits = tag.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let count = tag[tag.len() - digits..]
            .iter()
            .fold(0u64, |sum, digit| sum.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')));
        let names_rows =
            tag.starts_with(b"SELECT ") || tag.starts_with(b"FETCH ") || tag == b"SHOW" || tag == b"EXPLAIN";
        match (names_rows && !self.is_described, count) {
            (true, _) => (QueryKind::Read, count),
            (false, 0) => (QueryKind::Other, 0),
            (false, _) => (QueryKind::Write, count),
        }
    }
}

/// Returns the FNV-1a hash of a DataRow's body. Its bits are mixed further, so that the sum of the hashes differs
/// between different sets of rows.
fn hash_of_row(body: &[u8]) -> u64 {
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let hash = body.iter().fold(START, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    splitmix64_at(hash, 0)
}

/// The result of a statement: the names of its columns, the number of its rows, and its last row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResultSet {
    /// The names of the columns. Empty for a statement that returns no rows at all.
    pub columns: Vec<Vec<u8>>,
    pub rows: u64,
    /// The values of the last row in text format. NULL is `None`.
    pub last: Vec<Option<Vec<u8>>>,
}

impl ResultSet {
    /// Reads the names of the columns from the body of a RowDescription.
    pub fn set_columns(&mut self, body: &[u8]) -> Result<(), ConnectionError> {
        self.columns = column_names(body).ok_or_else(short)?;
        Ok(())
    }

    /// Counts a row, and reads its values from the body of a DataRow.
    pub fn add_row(&mut self, body: &[u8]) -> Result<(), ConnectionError> {
        self.rows += 1;
        self.last = values(body, <[u8]>::to_vec).ok_or_else(short)?;
        Ok(())
    }
}

fn short() -> ConnectionError {
    ConnectionError::Protocol("a message from the server is shorter than the lengths in it say".to_owned())
}

/// Returns the names of the columns in the body of a RowDescription. Returns `None` if the body is too short for them.
fn column_names(body: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut names = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let end = rest.iter().position(|byte| *byte == 0)?;
        names.push(rest[..end].to_vec());
        rest = rest.get(end + 1 + COLUMN_DETAILS..)?;
    }
    Some(names)
}

/// Returns the values in the body of a DataRow, each converted by `convert`, with NULL as `None`. Returns `None` if the
/// body is too short for its values.
pub fn values<T>(body: &[u8], convert: impl Fn(&[u8]) -> T) -> Option<Vec<Option<T>>> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut row = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk::<4>()?;
        // A negative length means NULL.
        let length = usize::try_from(i32::from_be_bytes(*length)).ok();
        let (value, after) = after.split_at_checked(length.unwrap_or(0))?;
        row.push(length.map(|_| convert(value)));
        rest = after;
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_with_nulls() {
        let body = [&[0, 2][..], &[0, 0, 0, 1], b"7", &(-1i32).to_be_bytes()].concat();
        assert_eq!(values(&body, <[u8]>::to_vec), Some(vec![Some(b"7".to_vec()), None]));
    }

    #[test]
    fn short_rows_are_refused() {
        assert_eq!(values(&[0], <[u8]>::to_vec), None);
        assert_eq!(values(&[0, 1, 0, 0, 0, 9, 1], <[u8]>::to_vec), None);
    }

    #[test]
    fn results_are_judged_by_their_rows_or_their_tag() {
        use QueryKind::{Other, Read, Write};
        for (is_described, rows, tag, kind, count) in [
            (false, 2, "SELECT 2\0", Read, 2),
            (false, 0, "SELECT 0\0", Read, 0),
            (false, 0, "SHOW\0", Read, 0),
            (false, 0, "UPDATE 12\0", Write, 12),
            (false, 0, "UPDATE 0\0", Other, 0),
            (false, 0, "INSERT 0 1\0", Write, 1),
            (false, 1, "INSERT 0 1\0", Read, 1),
            (false, 0, "BEGIN\0", Other, 0),
            (true, 0, "SELECT 3\0", Write, 3),
            (true, 0, "", Other, 0),
        ] {
            let mut answering = Answering::default();
            answering.expect(is_described);
            (0..rows).for_each(|_| answering.add_row(b"", false));
            answering.complete(tag.as_bytes());
            let answered = answering.answered;
            assert_eq!((answered.kind, answered.rows), (kind, count), "{tag}");
        }
    }

    #[test]
    fn a_hash_is_that_of_the_rows_in_any_order() {
        let hash = |rows: &[&[u8]]| {
            let mut answering = Answering::default();
            answering.expect(false);
            rows.iter().for_each(|row| answering.add_hashed_row(row));
            answering.complete(b"SELECT 3\0");
            assert_eq!(answering.answered.rows, rows.len() as u64);
            answering.answered.hash
        };
        let rows: [&[u8]; 3] = [b"one", b"two", b"two"];
        assert_eq!(hash(&rows), hash(&[rows[1], rows[0], rows[2]]));
        let others: [&[&[u8]]; 4] =
            [&rows[..2], &[b"one", b"one", b"two"], &[b"one", b"two", b"twp"], &[b"onet", b"wo", b"two"]];
        assert!(others.iter().all(|other| hash(other) != hash(&rows)));
    }

    #[test]
    fn the_last_of_several_results_is_the_answer() {
        let mut answering = Answering::default();
        answering.expect(true);
        answering.describe(b"columns", true);
        answering.add_row(b"one", true);
        assert_eq!(answering.answered.data, b"D\0\0\0\x07one");
        answering.complete(b"SELECT 1\0");
        assert_eq!(answering.answered.columns.as_deref(), Some(&b"columns"[..]));
        answering.complete(b"UPDATE 3\0");
        let expected = Answered { kind: QueryKind::Write, rows: 3, ..Answered::default() };
        assert_eq!(answering.answered, expected);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_row_or_not(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = values(&bytes, <[u8]>::to_vec);
            let _ = column_names(&bytes);
        }
    }
}
