//! pgbench's pseudo-random functions of integers: hash functions, and `permute`.

use ground::random::Random;

/// Returns the FNV-1a hash of the eight bytes of `value`, the lowest byte first (source:
/// <http://www.isthe.com/chongo/tech/comp/fnv/>).
pub fn fnv1a(value: i64, seed: i64) -> i64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let bytes = value.to_le_bytes();
    bytes.iter().fold(OFFSET_BASIS ^ seed as u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME)) as i64
}

/// Returns the 64-bit MurmurHash2 of the eight bytes of `value` (source: Austin Appleby,
/// <https://github.com/aappleby/smhasher>).
pub fn murmur2(value: i64, seed: i64) -> i64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    const LENGTH: u64 = 8;
    const ROTATION: u32 = 47;
    let shaken = |value: u64| value ^ value >> ROTATION;
    let key = shaken((value as u64).wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    let hash = seed as u64 ^ LENGTH.wrapping_mul(MULTIPLIER) ^ key;
    shaken(shaken(hash.wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER)) as i64
}

/// The number of rounds of [`permute`], as in pgbench. Each round permutes the lower and then the upper half of the
/// numbers.
const ROUNDS: usize = 6;

/// Returns the number to which a pseudo-random permutation of `0..size` maps `value` (taken modulo `size`). Returns 0
/// if `size` is below 2.
pub fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let mut random = Random::seeded(seed as u64);
    let size = size as u64;
    let half = Half::of(size);
    let mut place = value as u64 % size;
    for _ in 0..ROUNDS {
        // The first call permutes the lower half, and the second one the upper half, whose numbers are counted from the
        // end. Both together cover all numbers.
        place = half.stir(place, &mut random);
        place = size - 1 - half.stir(size - 1 - place, &mut random);
        let offset = random.range(0, size as i64 - 1) as u64;
        place = (place + offset) % size;
    }
    place as i64
}

/// The lower half of the numbers that are permuted: those below the greatest power of two that is not above their
/// count.
struct Half {
    bits: u32,
    mask: u64,
}

impl Half {
    fn of(size: u64) -> Self {
        let bits = size.ilog2();
        Self { bits, mask: (1 << bits) - 1 }
    }

    /// Permutes the numbers of this half: `place` is multiplied by a random odd number, XORed with random bits, and
    /// rotated by one bit. A `place` that is not in this half is returned unchanged, but as many random numbers are
    /// drawn.
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

    /// Checks hashes against the hashes that pgbench 18 computes.
    #[test]
    fn hashes_are_those_of_pgbench() {
        assert_eq!(fnv1a(10, 5432), -7793829335365542153);
        assert_eq!(murmur2(10, 5432), -5817877081768721676);
        assert_eq!(murmur2(-1, 0), 4219408603045787357);
    }

    #[test]
    fn every_place_is_taken_once() {
        for (size, seed) in [(2, 0), (3, 7), (17, -1), (1000, 42), (1024, 5)] {
            let mut taken: Vec<i64> = (0..size).map(|value| permute(value, size, seed)).collect();
            taken.sort_unstable();
            assert!(taken.into_iter().eq(0..size), "{size}");
        }
    }

    /// Checks results of `permute` against the results of pgbench 18.
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
