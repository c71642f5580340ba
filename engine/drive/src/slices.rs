//! Slices of time: several engines take turns, so that only one of them makes load at any time. For each round of
//! slices a new order of the engines is drawn. The order depends only on the options and the number of the round, so
//! that engines agree on it without communicating. Times count from the start of the load.

use std::time::Duration;

use ground::clock::Nanos;
use ground::random::splitmix64_at;

/// The shortest allowed slice. In shorter slices, waking up and overrunning transactions would take most of the time.
pub const SHORTEST: Duration = Duration::from_millis(10);

/// The slices of time in which this engine makes load, while other engines wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slices {
    pub length: Nanos,
    /// The number of this engine among the engines that take turns, counted from 0.
    pub index: usize,
    /// The number of engines that take turns.
    pub of: usize,
    /// The seed from which the order of the engines in each round is drawn. It must be the same for all engines.
    pub seed: u64,
}

/// The slice of time that this engine has in one round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slice {
    pub round: u64,
    pub begins: Nanos,
    pub ends: Nanos,
}

impl Slices {
    /// Returns the length of a round, in which each engine has one slice.
    pub fn round(&self) -> Nanos {
        self.length.saturating_mul(self.of as Nanos)
    }

    /// Returns this engine's slice in a round. In each round the engines run in the order of their keys. The key of
    /// engine `i` is the output number `round * of + i` of the generator splitmix64, where all numbers count from 0. No
    /// two keys are equal.
    pub fn slice(&self, round: u64) -> Slice {
        let key =
            |index: usize| splitmix64_at(self.seed, round.wrapping_mul(self.of as u64).wrapping_add(index as u64));
        let own = key(self.index);
        let place = (0..self.of).filter(|index| key(*index) < own).count() as Nanos;
        let begins = round.saturating_mul(self.round()).saturating_add(place * self.length);
        Slice { round, begins, ends: begins.saturating_add(self.length) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn participants(length: Nanos, of: usize, seed: u64) -> Vec<Slices> {
        (0..of).map(|index| Slices { length, index, of, seed }).collect()
    }

    #[test]
    fn the_order_is_the_documented_one() {
        // The first outputs of splitmix64 with seed 0: e220a8397b1dcdaf, 6e789e6aa1b965f4; 06c45d188009454f, f88bb8a8724c81ec.
        let begins = |round| participants(10, 2, 0).iter().map(|one| one.slice(round).begins).collect::<Vec<_>>();
        assert_eq!([begins(0), begins(1)], [[10, 0], [20, 30]]);
    }

    #[test]
    fn each_participant_is_first_in_about_half_of_the_rounds() {
        let first =
            (0..10_000).filter(|round| participants(10, 2, 42)[0].slice(*round).begins.is_multiple_of(20)).count();
        assert!((4_850..=5_150).contains(&first), "{first}");
    }

    proptest! {
        #[test]
        fn each_instant_belongs_to_one_participant_and_each_has_one_slice_a_round(
            length in 1u64..1_000_000_000,
            of in 1usize..9,
            seed: u64,
            round in 0u64..1_000_000,
        ) {
            let mut slices: Vec<_> = participants(length, of, seed).iter().map(|one| one.slice(round)).collect();
            slices.sort_by_key(|slice| slice.begins);
            let begin = round * length * of as u64;
            for (place, slice) in slices.iter().enumerate() {
                let begins = begin + place as u64 * length;
                prop_assert_eq!(*slice, Slice { round, begins, ends: begins + length });
            }
        }
    }
}
