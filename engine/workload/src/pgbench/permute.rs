//! A pseudo-random permutation of a range, the same one for the same seed: pgbench's `permute`.

use ground::random::Random;

/// How often the two halves are stirred; pgbench's number.
const ROUNDS: usize = 6;

/// Where `value` (taken modulo `size`) comes to stand among `0..size`; 0 if there are fewer than two places.
pub fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let mut random = Random::seeded(seed as u64);
    let size = size as u64;
    let half = Half::of(size);
    let mut place = value as u64 % size;
    for _ in 0..ROUNDS {
        // The lower half as it is, the upper one counted from its end; together they cover every place.
        place = half.stir(place, &mut random);
        place = size - 1 - half.stir(size - 1 - place, &mut random);
        let offset = random.range(0, size as i64 - 1) as u64;
        place = (place + offset) % size;
    }
    place as i64
}

/// The places below the greatest power of two that is not above the size.
struct Half {
    bits: u32,
    mask: u64,
}

impl Half {
    fn of(size: u64) -> Self {
        let bits = size.ilog2();
        Self { bits, mask: (1 << bits) - 1 }
    }

    /// A bijection of the half: multiplied by a random odd number, flipped, rotated by one bit. Other places stay, at
    /// the cost of the same draws.
    fn stir(&self, place: u64, random: &mut Random) -> u64 {
        let factor = random.next_u64() & self.mask | 1;
        let flips = random.next_u64() & self.mask;
        if place > self.mask {
            return place;
        }
        let mixed = (place.wrapping_mul(factor) ^ flips) & self.mask;
        (mixed << 1) & self.mask | mixed >> (self.bits - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_taken_once() {
        for (size, seed) in [(2, 0), (3, 7), (17, -1), (1000, 42), (1024, 5)] {
            let mut taken: Vec<i64> = (0..size).map(|value| permute(value, size, seed)).collect();
            taken.sort_unstable();
            assert!(taken.into_iter().eq(0..size), "{size}");
        }
    }

    /// The values are pgbench 18's.
    #[test]
    fn places_are_those_of_pgbench() {
        assert_eq!(permute(5, 1000, 42), 387);
        assert_eq!(permute(-5, 1_000_000_007, -7), 168_612_974);
    }

    #[test]
    fn one_place_is_the_first() {
        assert_eq!(permute(5, 1, 3), 0);
    }
}
