//! Random values for the columns of generated tables. The value of a column in a row depends only on the seed, the
//! table, the row and the column. It depends neither on the connection that makes the row nor on values that were drawn
//! before. All arithmetic is on whole numbers, so that every machine generates the same values.
//!
//! `output(seed, n)` is output number n, counted from 0, of the generator splitmix64. The random bits of a column are
//! `output(output(output(seed, table), row), column)`.

use ground::random::splitmix64_at;

/// The random values from which the columns of a table are made.
#[derive(Debug, Clone, Copy)]
pub struct TableDraws(u64);

/// The random values from which the columns of one row are made.
#[derive(Debug, Clone, Copy)]
pub struct RowDraws(u64);

impl TableDraws {
    /// Returns the random values of the table with number `table`.
    pub fn new(seed: u64, table: u64) -> Self {
        Self(splitmix64_at(seed, table))
    }

    /// Returns the random values of the row with number `number`.
    pub fn row(self, number: i64) -> RowDraws {
        RowDraws(splitmix64_at(self.0, number as u64))
    }
}

impl RowDraws {
    /// Returns the 64 random bits of a column.
    pub fn bits(self, column: u64) -> u64 {
        splitmix64_at(self.0, column)
    }

    /// Returns a random number that is at least 0 and below `count`: the upper 32 bits times `count`, divided by 2^32.
    pub fn below(self, column: u64, count: i64) -> i64 {
        (((self.bits(column) >> 32) * count as u64) >> 32) as i64
    }

    /// Returns a random number from `min` to `max`, both included.
    pub fn between(self, column: u64, min: i64, max: i64) -> i64 {
        min + self.below(column, max - min + 1)
    }

    /// Returns true with a probability of `percent` per cent.
    pub fn is_one_of(self, column: u64, percent: i64) -> bool {
        self.below(column, 100) < percent
    }

    /// Returns a random element of `of`.
    pub fn one<'a, T: ?Sized>(self, column: u64, of: &[&'a T]) -> &'a T {
        of[self.below(column, of.len() as i64) as usize]
    }

    /// Returns a random rank from 1 to `count` that follows roughly Zipf's law: each octave of ranks (1, 2 to 3, 4 to
    /// 7, ...) has the same probability, and within an octave all ranks have the same probability. Draw number `column`
    /// chooses the octave, and draw number `column + 1` the rank.
    pub fn zipf(self, column: u64, count: i64) -> i64 {
        let octave = self.below(column, 64 - i64::from(count.leading_zeros()));
        self.in_octave(column + 1, octave, count)
    }

    /// Returns a random rank of an octave (octave n begins with rank 2^n), but none above `count`.
    pub fn in_octave(self, column: u64, octave: i64, count: i64) -> i64 {
        let first = 1 << octave;
        first + self.below(column, first.min(count - first + 1))
    }
}

/// Maps a rank from 1 to `count` to the number of a row from 1 to `count`, so that the most frequently drawn rows are
/// spread over the whole table.
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
