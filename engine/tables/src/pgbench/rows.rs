//! Generates the rows of pgbench_accounts in COPY's binary format, and finds the rows that belong to each partition.
//!
//! The rows of a hash partition are found with the same hash function by which PostgreSQL chooses the partition of a
//! row.

use std::ops::Range;

use super::options::ACCOUNTS_PER_BRANCH;
use crate::copy::encode_row;

/// The seed of PostgreSQL's hashes for partitioning (`HASH_PARTITION_SEED` in `partitioning/partbounds.h`).
const SEED: u64 = 0x7A5B_2236_7996_DCFD;

/// The constant that PostgreSQL's `hash_combine64` adds to the hash of a column.
const COMBINE: u64 = 0x49a0_f4dd_15e5_a8e3;

/// The rows that belong to one table. Row n, counted from 0, is account n + 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowSet {
    pub range: Range<u64>,
    /// The hash partition whose rows the set contains; `None` if the set contains all rows of the range.
    pub hash: Option<HashPartition>,
}

/// A hash partition: it has the rows whose hash of the account number has this remainder for this modulus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashPartition {
    pub modulus: u64,
    pub remainder: u64,
}

impl RowSet {
    /// Returns the rows of this set that lie in `range`, or `None` if there are none.
    pub fn within(&self, range: &Range<u64>) -> Option<RowSet> {
        let range = self.range.start.max(range.start)..self.range.end.min(range.end);
        (!range.is_empty()).then_some(RowSet { range, hash: self.hash })
    }
}

impl HashPartition {
    fn contains(self, row: u64) -> bool {
        remainder(row + 1, self.modulus) == self.remainder
    }
}

/// Returns the remainder, modulo `modulus`, of the hash that PostgreSQL computes for a partition key of the value
/// `key`. The column may be `int` or `bigint`, because `hashint4extended` and `hashint8extended` return the same for
/// values that both types hold.
fn remainder(key: u64, modulus: u64) -> u64 {
    let low = key as u32 ^ (key >> 32) as u32;
    hash_u32(low, SEED).wrapping_add(COMBINE) % modulus
}

/// Computes PostgreSQL's `hash_bytes_uint32_extended`, which is Bob Jenkins's lookup3 for one 32-bit word.
fn hash_u32(key: u32, seed: u64) -> u64 {
    let start = 0x9e37_79b9_u32.wrapping_add(4).wrapping_add(3_923_095);
    let (mut a, mut b, mut c) = (start.wrapping_add((seed >> 32) as u32), start.wrapping_add(seed as u32), start);
    for (rotation, position) in [4, 6, 8, 16, 19, 4].into_iter().zip([0, 1, 2].into_iter().cycle()) {
        let (x, y, z) = match position {
            0 => (&mut a, &mut c, &mut b),
            1 => (&mut b, &mut a, &mut c),
            _ => (&mut c, &mut b, &mut a),
        };
        *x = x.wrapping_sub(*y) ^ y.rotate_left(rotation);
        *y = y.wrapping_add(*z);
    }
    a = a.wrapping_add(key);
    for (rotation, position) in [14, 11, 25, 16, 4, 14, 24].into_iter().zip([2, 0, 1].into_iter().cycle()) {
        let (x, y) = match position {
            2 => (&mut c, b),
            0 => (&mut a, c),
            _ => (&mut b, a),
        };
        *x = (*x ^ y).wrapping_sub(y.rotate_left(rotation));
    }
    u64::from(b) << 32 | u64::from(c)
}

/// The columns of pgbench_accounts that COPY sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowColumns {
    /// The columns aid and bid. The columns abalance and filler get their values from temporary defaults of the table.
    AccountAndBranch,
    All,
}

impl RowColumns {
    /// Returns the list of columns for the COPY statement.
    pub fn names(self) -> &'static str {
        match self {
            RowColumns::AccountAndBranch => "aid, bid",
            RowColumns::All => "aid, bid, abalance, filler",
        }
    }
}

/// Generates the rows of one table in COPY's binary format.
pub struct AccountRows {
    left: RowSet,
    /// The size of an account number in bytes: 4 for the type `integer`, 8 for `bigint`.
    width: usize,
    /// The bytes of the row that was generated last. From row to row only the account and the branch change.
    row: Vec<u8>,
}

impl AccountRows {
    pub fn new(rows: RowSet, is_bigint: bool, columns: RowColumns) -> Self {
        let width = if is_bigint { 8 } else { 4 };
        let account = &[0; 8][..width];
        let row = match columns {
            RowColumns::AccountAndBranch => encode_row(&[account, &[0; 4]]),
            // The balance is 0, and the filler is empty.
            RowColumns::All => encode_row(&[account, &[0; 4], &[0; 4], &[]]),
        };
        Self { left: rows, width, row }
    }

    /// Appends the next row. Returns false if all rows were generated.
    pub fn write_next(&mut self, out: &mut Vec<u8>) -> bool {
        let RowSet { range, hash } = &mut self.left;
        let Some(row) = range.find(|row| hash.is_none_or(|partition| partition.contains(*row))) else { return false };
        let (account, branch) = ((row + 1).to_be_bytes(), ((row / ACCOUNTS_PER_BRANCH + 1) as u32).to_be_bytes());
        // A row begins with the number of fields in two bytes. Each field begins with its length in four bytes.
        let (account_at, branch_at) = (6, 10 + self.width);
        self.row[account_at..account_at + self.width].copy_from_slice(&account[8 - self.width..]);
        self.row[branch_at..branch_at + 4].copy_from_slice(&branch);
        out.extend_from_slice(&self.row);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::read_back;
    use crate::pgbench::generate::write_account;

    fn integer(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// Generates the rows in binary format, decodes them, and returns them as COPY's text with their number.
    fn as_text(rows: &RowSet, is_bigint: bool, columns: RowColumns) -> (Vec<u8>, u64) {
        let mut source = AccountRows::new(rows.clone(), is_bigint, columns);
        let (sent, rows) = read_back(|out| source.write_next(out));
        let mut text = Vec::new();
        for fields in rows {
            let [account, branch, rest @ ..] = &fields[..] else { panic!("{fields:?}") };
            match columns {
                RowColumns::AccountAndBranch => assert!(rest.is_empty()),
                RowColumns::All => assert_eq!(rest, [vec![0; 4], vec![]]),
            }
            assert_eq!((account.len(), branch.len()), (if is_bigint { 8 } else { 4 }, 4));
            text.extend_from_slice(format!("{}\t{}\t0\t\n", integer(account), integer(branch)).as_bytes());
        }
        (text, sent)
    }

    fn range(range: Range<u64>) -> RowSet {
        RowSet { range, hash: None }
    }

    fn reference(rows: impl Iterator<Item = u64>) -> Vec<u8> {
        let mut text = Vec::new();
        rows.for_each(|row| write_account(row, &mut text));
        text
    }

    #[test]
    fn binary_rows_say_the_same_as_the_text() {
        const TWO: RowColumns = RowColumns::AccountAndBranch;
        for rows in [0..0, 0..1, 99_990..200_010, 2_147_483_640..2_147_483_646] {
            for (is_bigint, columns) in [(false, TWO), (true, TWO), (false, RowColumns::All), (true, RowColumns::All)] {
                let (text, sent) = as_text(&range(rows.clone()), is_bigint, columns);
                assert_eq!(sent, rows.end - rows.start);
                assert_eq!(text, reference(rows.clone()), "{rows:?} {is_bigint} {columns:?}");
            }
        }
        let beyond = 4_294_967_290..4_294_967_300;
        assert_eq!(as_text(&range(beyond.clone()), true, TWO).0, reference(beyond));
    }

    #[test]
    fn a_row_set_is_cut_to_a_range() {
        let rows = range(10..20);
        assert_eq!(rows.within(&(0..15)), Some(range(10..15)));
        assert_eq!([rows.within(&(0..10)), rows.within(&(20..30)), rows.within(&(12..12))], [None, None, None]);
    }

    #[test]
    fn the_rows_of_hash_partitions_are_all_rows_once() {
        let mut accounts = Vec::new();
        for remainder in 0..3 {
            let whole = RowSet { range: 0..20_000, hash: Some(HashPartition { modulus: 3, remainder }) };
            let mut found = 0;
            for rows in [0..7_777, 7_777..30_000].iter().filter_map(|range| whole.within(range)) {
                let (text, sent) = as_text(&rows, false, RowColumns::AccountAndBranch);
                let text = String::from_utf8(text).unwrap();
                assert_eq!(text.lines().count() as u64, sent);
                found += sent;
                accounts.extend(text.lines().map(|line| line.split('\t').next().unwrap().parse::<u64>().unwrap()));
            }
            assert!((6000..7300).contains(&found), "{found}");
        }
        accounts.sort_unstable();
        assert_eq!(accounts, (1..=20_000).collect::<Vec<_>>());
    }

    /// Checks the engine's hashes against the results of `select hashint8extended(key, 8816678312871386365)` in
    /// PostgreSQL 18.
    #[test]
    fn hashes_are_the_servers() {
        let known: [(u64, i64); 6] = [
            (0, -4403592609991167795),
            (1, 5968994663651403477),
            (2, -6784076462669891433),
            (100_000, -4261177139570981594),
            (2_147_483_647, -6050265599104649060),
            (5_000_000_000, -2799505259769899283),
        ];
        for (key, hash) in known {
            let expected = (hash as u64).wrapping_add(COMBINE) % 1_000_003;
            assert_eq!(remainder(key, 1_000_003), expected, "{key}");
        }
    }
}
