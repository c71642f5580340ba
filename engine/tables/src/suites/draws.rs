//! Random values of columns. The value that a column of a row gets depends on the seed, the table, the row and the
//! column alone, and not on which connection makes the row or which values were drawn before. All arithmetic is on
//! whole numbers, so that it is the same on every machine.
//!
//! `output(seed, n)` is output number n, from 0, of splitmix64. The bits of a column are
//! `output(output(output(seed, table), row), column)`.

use ground::random::splitmix64_at;

/// The draws of a table.
#[derive(Debug, Clone, Copy)]
pub struct TableDraws(u64);

/// The draws of a row.
#[derive(Debug, Clone, Copy)]
pub struct RowDraws(u64);

impl TableDraws {
    /// Returns the draws of the table of this number.
    pub fn new(seed: u64, table: u64) -> Self {
        Self(splitmix64_at(seed, table))
    }

    /// Returns the draws of the row of this number.
    pub fn row(self, number: i64) -> RowDraws {
        RowDraws(splitmix64_at(self.0, number as u64))
    }
}

impl RowDraws {
    /// Returns the 64 random bits of a column.
    pub fn bits(self, column: u64) -> u64 {
        splitmix64_at(self.0, column)
    }

    /// Returns a number from 0 to below `count`: the upper 32 bits times `count`, divided by 2^32.
    pub fn below(self, column: u64, count: i64) -> i64 {
        (((self.bits(column) >> 32) * count as u64) >> 32) as i64
    }

    /// Returns a number from `min` to `max`.
    pub fn between(self, column: u64, min: i64, max: i64) -> i64 {
        min + self.below(column, max - min + 1)
    }

    /// Returns true if a draw of 100 is below `percent`.
    pub fn is_one_of(self, column: u64, percent: i64) -> bool {
        self.below(column, 100) < percent
    }

    /// Returns one of several values.
    pub fn one<'a, T: ?Sized>(self, column: u64, of: &[&'a T]) -> &'a T {
        of[self.below(column, of.len() as i64) as usize]
    }

    /// Returns a rank from 1 to `count` by Zipf's law in octaves: each octave (1, 2 to 3, 4 to 7, ...) is drawn equally
    /// often, and each rank in it. Two columns are drawn: the octave from this one, the rank from the next.
    pub fn zipf(self, column: u64, count: i64) -> i64 {
        let octave = self.below(column, 64 - i64::from(count.leading_zeros()));
        self.in_octave(column + 1, octave, count)
    }

    /// Returns a rank of an octave, at most `count`.
    pub fn in_octave(self, column: u64, octave: i64, count: i64) -> i64 {
        let first = 1 << octave;
        first + self.below(column, first.min(count - first + 1))
    }
}

/// Returns the number from 1 to `count` that has a rank from 1 to `count`: frequent ones are spread over the table.
pub fn spread(rank: i64, count: i64) -> i64 {
    const PRIME: i64 = 20_261_803;
    rank * PRIME % count + 1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_place_has_its_draw() {
        let row = TableDraws::new(1, 2).row(3);
        assert_eq!(row.bits(4), TableDraws::new(1, 2).row(3).bits(4));
        let others = [TableDraws::new(2, 2).row(3), TableDraws::new(1, 3).row(3), TableDraws::new(1, 2).row(4)];
        assert!(others.iter().all(|other| other.bits(4) != row.bits(4)) && row.bits(5) != row.bits(4));
    }

    #[test]
    fn octaves_are_equally_frequent_and_ranks_have_a_number_each() {
        let draws = TableDraws::new(1, 1);
        let ranks: Vec<_> = (0..14_000).map(|row| draws.row(row).zipf(0, 100)).collect();
        assert!(ranks.iter().all(|rank| (1..=100).contains(rank)));
        for octave in 0..7 {
            let count = ranks.iter().filter(|rank| rank.ilog2() == octave).count() as f64;
            assert!((count - 2000.0).abs() < 5.0 * (2000.0f64 * 6.0 / 7.0).sqrt(), "{octave} {count}");
        }
        let numbers: BTreeSet<_> = (1..=100).map(|rank| spread(rank, 100)).collect();
        assert_eq!(numbers, (1..=100).collect());
    }
}
