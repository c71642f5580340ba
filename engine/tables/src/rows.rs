//! The rows of pgbench_accounts in COPY's binary format: account and branch; balance and filler are the same in every
//! row and can be left to the table's defaults.

use std::ops::Range;

use super::hash_partition;
use super::tables::ACCOUNTS;

/// Size of one message's rows, bytes: large enough for the cost of a message not to matter, small enough for a
/// processor's cache.
const MESSAGE: usize = 64 * 1024;

/// Balance 0 and an empty filler, each after its length.
const REST: [u8; 12] = [0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0];

/// COPY's signature, no flags, no extension.
pub const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The field count that ends the rows.
pub const TRAILER: [u8; 2] = (-1i16).to_be_bytes();

/// The messages of one table's rows: the first begins with the header, the last ends with the trailer.
#[derive(Default)]
pub struct Messages {
    begun: bool,
}

impl Messages {
    /// Appends one message; the number of its rows, and whether there are more messages to come. `put` appends the next
    /// row, or tells that there is none.
    pub fn fill(&mut self, out: &mut Vec<u8>, mut put: impl FnMut(&mut Vec<u8>) -> bool) -> (u64, bool) {
        if !self.begun {
            out.extend_from_slice(HEADER);
            self.begun = true;
        }
        let (end, mut rows) = (out.len() + MESSAGE, 0);
        while out.len() < end {
            if !put(out) {
                out.extend_from_slice(&TRAILER);
                return (rows, false);
            }
            rows += 1;
        }
        (rows, true)
    }
}

/// Which rows a table holds; the row numbered n from 0 is account n + 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Share {
    Range(Range<u64>),
    /// Those of a range whose account hashes to `remainder`.
    Hash {
        rows: Range<u64>,
        modulus: u64,
        remainder: u64,
    },
}

impl Share {
    /// What of it lies in a range; `None` if that is nothing.
    pub fn within(&self, range: &Range<u64>) -> Option<Share> {
        let cut = |own: &Range<u64>| own.start.max(range.start)..own.end.min(range.end);
        let (rows, share) = match self {
            Share::Range(own) => (cut(own), Share::Range(cut(own))),
            Share::Hash { rows, modulus, remainder } => {
                (cut(rows), Share::Hash { rows: cut(rows), modulus: *modulus, remainder: *remainder })
            }
        };
        (!rows.is_empty()).then_some(share)
    }
}

/// Which columns the rows have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// Account and branch.
    Two,
    /// Balance and filler as well.
    All,
}

impl Columns {
    /// As COPY names them.
    pub fn names(self) -> &'static str {
        match self {
            Columns::Two => "aid, bid",
            Columns::All => "aid, bid, abalance, filler",
        }
    }
}

/// The rows of one table, a message at a time.
pub struct BinaryRows {
    left: Range<u64>,
    hash: Option<(u64, u64)>,
    /// Account numbers are of 64 bits.
    wide: bool,
    columns: Columns,
    messages: Messages,
}

impl BinaryRows {
    pub fn new(share: &Share, wide: bool, columns: Columns) -> Self {
        let (left, hash) = match share {
            Share::Range(range) => (range.clone(), None),
            Share::Hash { rows, modulus, remainder } => (rows.clone(), Some((*modulus, *remainder))),
        };
        Self { left, hash, wide, columns, messages: Messages::default() }
    }

    /// Appends one message's rows; the number of rows, and whether there are more messages to come.
    pub fn fill(&mut self, out: &mut Vec<u8>) -> (u64, bool) {
        let Self { left, hash, wide, columns, messages } = self;
        let is_ours =
            |row: &u64| hash.is_none_or(|(modulus, mine)| hash_partition::remainder(row + 1, modulus) == mine);
        messages.fill(out, |out| {
            let Some(row) = left.find(is_ours) else { return false };
            let (account, branch) = (row + 1, (row / ACCOUNTS + 1) as u32);
            if *wide {
                put(out, account.to_be_bytes(), branch, *columns);
            } else {
                put(out, (account as u32).to_be_bytes(), branch, *columns);
            }
            true
        })
    }
}

/// The number of fields, and each after its length.
#[inline]
fn put<const BYTES: usize>(out: &mut Vec<u8>, account: [u8; BYTES], branch: u32, columns: Columns) {
    let mut row = [0; 22];
    row[1] = if columns == Columns::All { 4 } else { 2 };
    row[5] = BYTES as u8;
    row[6..6 + BYTES].copy_from_slice(&account);
    row[6 + BYTES + 3] = 4;
    row[6 + BYTES + 4..6 + BYTES + 8].copy_from_slice(&branch.to_be_bytes());
    out.extend_from_slice(&row[..BYTES + 14]);
    if columns == Columns::All {
        out.extend_from_slice(&REST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::account_text;

    fn integer(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// The rows as COPY's text, read back as the server reads the binary format.
    fn as_text(mut bytes: &[u8]) -> Vec<u8> {
        let mut take = |count: usize| {
            let (taken, rest) = bytes.split_at(count);
            bytes = rest;
            taken
        };
        assert_eq!(take(11), b"PGCOPY\n\xff\r\n\0");
        assert_eq!(take(8), [0; 8]);
        let mut text = Vec::new();
        loop {
            let is_complete = match take(2) {
                [0, 2] => false,
                [0, 4] => true,
                [0xff, 0xff] => break,
                other => panic!("{other:?} fields"),
            };
            let fields = [0; 2].map(|_: u8| {
                let length = integer(take(4)) as usize;
                integer(take(length))
            });
            if is_complete {
                assert_eq!((take(4), take(4), take(4)), (&[0, 0, 0, 4][..], &[0; 4][..], &[0; 4][..]));
            }
            text.extend_from_slice(format!("{}\t{}\t0\t\n", fields[0], fields[1]).as_bytes());
        }
        assert!(bytes.is_empty());
        text
    }

    fn all(share: &Share, wide: bool, columns: Columns) -> (Vec<u8>, u64) {
        let (mut source, mut out, mut rows) = (BinaryRows::new(share, wide, columns), Vec::new(), 0);
        loop {
            let (more_rows, more) = source.fill(&mut out);
            rows += more_rows;
            if !more {
                return (out, rows);
            }
        }
    }

    fn reference(rows: impl Iterator<Item = u64>) -> Vec<u8> {
        let mut text = Vec::new();
        rows.for_each(|row| account_text(row, &mut text));
        text
    }

    #[test]
    fn binary_rows_say_the_same_as_the_text() {
        for range in [0..0, 0..1, 99_990..200_010, 2_147_483_640..2_147_483_646] {
            for (wide, columns) in
                [(false, Columns::Two), (true, Columns::Two), (false, Columns::All), (true, Columns::All)]
            {
                let (bytes, rows) = all(&Share::Range(range.clone()), wide, columns);
                assert_eq!(rows, range.end - range.start);
                assert_eq!(as_text(&bytes), reference(range.clone()), "{range:?} {wide} {columns:?}");
            }
        }
        let beyond = 4_294_967_290..4_294_967_300;
        assert_eq!(as_text(&all(&Share::Range(beyond.clone()), true, Columns::Two).0), reference(beyond));
    }

    #[test]
    fn a_share_is_cut_to_a_range() {
        let share = Share::Range(10..20);
        assert_eq!(share.within(&(0..15)), Some(Share::Range(10..15)));
        assert_eq!([share.within(&(0..10)), share.within(&(20..30)), share.within(&(12..12))], [None, None, None]);
    }

    #[test]
    fn the_shares_of_hash_partitions_are_all_rows_once() {
        let mut accounts = Vec::new();
        for part in 0..3 {
            let whole = Share::Hash { rows: 0..20_000, modulus: 3, remainder: part };
            let mut found = 0;
            for share in [0..7_777, 7_777..30_000].iter().filter_map(|range| whole.within(range)) {
                let (bytes, rows) = all(&share, false, Columns::Two);
                let text = String::from_utf8(as_text(&bytes)).unwrap();
                assert_eq!(text.lines().count() as u64, rows);
                found += rows;
                accounts.extend(text.lines().map(|line| line.split('\t').next().unwrap().parse::<u64>().unwrap()));
            }
            assert!((6000..7300).contains(&found), "{found}");
        }
        accounts.sort_unstable();
        assert_eq!(accounts, (1..=20_000).collect::<Vec<_>>());
    }
}
