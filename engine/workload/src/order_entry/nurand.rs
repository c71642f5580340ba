//! The non-uniform random numbers of TPC-C's clause 2.1.6 (NURand) and their constants C. One set of constants is used
//! for filling the tables, and another set for each run.

use super::names::LAST_NAMES;
use super::sizes::{CUSTOMERS, ITEMS};
use ground::random::Random;

/// The numbers A of NURand, one for each use: they bound the number that is combined with the uniform one.
const LAST_NAME_MASK: i64 = 255;
const CUSTOMER_MASK: i64 = 1023;
const ITEM_MASK: i64 = 8191;

/// The allowed differences between the constant for last names with which the tables were filled and the constant of a
/// run: from 65 to 119, except 96 and 112 (clause 2.1.6.1).
const APART: std::ops::RangeInclusive<i64> = 65..=119;
const NOT_APART: [i64; 2] = [96, 112];

/// The constants C of NURand for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constants {
    last_name: i64,
    customer: i64,
    item: i64,
}

/// Returns the constant for last names with which tables are filled if their seed is `seed_of_load`.
pub fn last_name_constant(seed_of_load: u64) -> i64 {
    Random::seeded(seed_of_load).range(0, LAST_NAME_MASK)
}

/// Draws the number of a customer's last name while the tables are filled. `constant` is the result of
/// [`last_name_constant`].
pub fn loaded_last_name(random: &mut Random, constant: i64) -> i64 {
    nurand(random, LAST_NAME_MASK, constant, 0, LAST_NAMES - 1)
}

impl Constants {
    /// Draws the constants of a run on tables that were filled with the seed `seed_of_load`.
    pub fn of_run(seed: u64, seed_of_load: u64) -> Self {
        let loaded = last_name_constant(seed_of_load);
        let is_allowed = |constant: &i64| {
            let apart = (constant - loaded).abs();
            APART.contains(&apart) && !NOT_APART.contains(&apart)
        };
        let allowed: Vec<_> = (0..=LAST_NAME_MASK).filter(is_allowed).collect();
        let mut random = Random::seeded(seed);
        Self {
            last_name: allowed[random.range(0, allowed.len() as i64 - 1) as usize],
            customer: random.range(0, CUSTOMER_MASK),
            item: random.range(0, ITEM_MASK),
        }
    }

    /// Draws the number of a last name, from 0 to 999.
    pub fn last_name(&self, random: &mut Random) -> i64 {
        nurand(random, LAST_NAME_MASK, self.last_name, 0, LAST_NAMES - 1)
    }

    /// Draws the number of a customer within a district.
    pub fn customer(&self, random: &mut Random) -> i64 {
        nurand(random, CUSTOMER_MASK, self.customer, 1, CUSTOMERS)
    }

    /// Draws the number of an item.
    pub fn item(&self, random: &mut Random) -> i64 {
        nurand(random, ITEM_MASK, self.item, 1, ITEMS)
    }
}

/// Draws NURand(A, x, y) of the specification, where A is `mask`, x is `min` and y is `max`.
fn nurand(random: &mut Random, mask: i64, constant: i64, min: i64, max: i64) -> i64 {
    let mixed = random.range(0, mask) | random.range(min, max);
    (mixed + constant) % (max - min + 1) + min
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 400_000;

    #[test]
    fn constants_of_run_and_load_are_as_far_apart_as_the_specification_says() {
        for seed in 0..300 {
            let apart = (Constants::of_run(seed, seed / 3).last_name - last_name_constant(seed / 3)).abs();
            assert!((65..=119).contains(&apart) && apart != 96 && apart != 112, "{seed}: {apart}");
        }
    }

    /// Returns how often each value is expected, given that all pairs of the two uniform numbers in NURand's definition
    /// are equally likely.
    fn expected(mask: i64, constant: i64, min: i64, max: i64) -> Vec<f64> {
        let size = max - min + 1;
        let mut counts = vec![0.0; size as usize];
        let share = DRAWS as f64 / ((mask + 1) * size) as f64;
        for mixed in (0..=mask).flat_map(|a| (min..=max).map(move |b| a | b)) {
            counts[((mixed + constant) % size) as usize] += share;
        }
        counts
    }

    /// Checks Pearson's chi-squared statistic. Its mean is the number of possible values minus one, and its variance is
    /// twice its mean.
    fn check(expected: &[f64], drawn: impl Iterator<Item = i64>) {
        let mut counts = vec![0.0; expected.len()];
        drawn.for_each(|value| counts[value as usize] += 1.0);
        assert!(expected.iter().zip(&counts).all(|(expected, count)| *expected > 0.0 || *count == 0.0));
        let possible: Vec<_> = expected.iter().zip(&counts).filter(|(expected, _)| **expected > 0.0).collect();
        let statistic: f64 = possible.iter().map(|(expected, count)| (*count - *expected).powi(2) / *expected).sum();
        let freedom = possible.len() as f64 - 1.0;
        let bound = 5.0 * (2.0 * freedom).sqrt();
        assert!((statistic - freedom).abs() < bound, "{statistic} with {freedom} degrees of freedom");
    }

    #[test]
    fn last_names_and_customers_are_as_frequent_as_the_definition_says() {
        let (constants, mut random) = (Constants::of_run(1, 2), Random::seeded(11));
        let last_names = (0..DRAWS).map(|_| constants.last_name(&mut random));
        check(&expected(LAST_NAME_MASK, constants.last_name, 0, LAST_NAMES - 1), last_names);
        let customers = (0..DRAWS).map(|_| constants.customer(&mut random) - 1);
        check(&expected(CUSTOMER_MASK, constants.customer, 1, CUSTOMERS), customers);
        let loaded = (0..DRAWS).map(|_| loaded_last_name(&mut random, 200));
        check(&expected(LAST_NAME_MASK, 200, 0, LAST_NAMES - 1), loaded);
    }

    #[test]
    fn items_are_within_their_range_and_a_few_are_frequent() {
        let (constants, mut random) = (Constants::of_run(1, 2), Random::seeded(11));
        let mut counts = vec![0; ITEMS as usize + 1];
        (0..DRAWS).for_each(|_| counts[constants.item(&mut random) as usize] += 1);
        assert_eq!(counts[0], 0);
        counts.sort_unstable_by(|one, other| other.cmp(one));
        // The most frequent tenth of the items is drawn more than four times as often as with a uniform distribution.
        let top: usize = counts[..ITEMS as usize / 10].iter().sum();
        assert!(top * 10 > 4 * DRAWS, "{top}");
    }
}
