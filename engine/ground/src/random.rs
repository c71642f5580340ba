//! The pseudo-random number generator of PostgreSQL and pgbench (`common/pg_prng.c`): xoroshiro128** seeded by
//! splitmix64. The same seed draws the same values as in pgbench. Source: Blackman and Vigna, <https://prng.di.unimi.it/>.

pub mod distributions;

/// The state of a generator: sixteen bytes, never all zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    s0: u64,
    s1: u64,
}

impl Random {
    /// Creates a generator whose stream is determined by `seed`.
    pub fn seeded(seed: u64) -> Self {
        let mut state = seed;
        let (s0, s1) = (splitmix64(&mut state), splitmix64(&mut state));
        if s0 == 0 && s1 == 0 {
            // The generator cannot leave the state 0; PostgreSQL replaces it by these constants.
            return Self { s0: 0x5851_F42D_4C95_7F2D, s1: 0x1405_7B7E_F767_814F };
        }
        Self { s0, s1 }
    }

    /// Draws 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s0 = self.s0;
        let sx = self.s1 ^ s0;
        let value = s0.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.s0 = s0.rotate_left(24) ^ sx ^ (sx << 16);
        self.s1 = sx.rotate_left(37);
        value
    }

    /// Draws a double, uniform in [0, 1), with 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Creates a generator seeded from this one, as pgbench does for its threads and clients.
    pub fn derive(&mut self) -> Self {
        Self::seeded(self.next_u64())
    }

    /// Draws an integer, uniform in `min..=max`, by rejection below the next power of two. Returns `min` if the range is
    /// empty.
    #[inline]
    pub fn range(&mut self, min: i64, max: i64) -> i64 {
        if min >= max {
            return min;
        }
        Span::new(min, max).draw(self)
    }
}

/// A range of integers, prepared for many draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    min: u64,
    size: u64,
    shift: u32,
}

impl Span {
    /// Prepares the range `min..=max`; `max` must be greater than `min`.
    pub fn new(min: i64, max: i64) -> Self {
        let size = (max as u64).wrapping_sub(min as u64);
        Self { min: min as u64, size, shift: size.leading_zeros() & 63 }
    }

    /// Draws an integer, uniform in the range.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> i64 {
        loop {
            let value = random.next_u64() >> self.shift;
            if value <= self.size {
                return self.min.wrapping_add(value) as i64;
            }
        }
    }
}

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut value = *state;
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_stream() {
        let (mut a, mut b) = (Random::seeded(42), Random::seeded(42));
        assert!((0..1000).all(|_| a.next_u64() == b.next_u64()));
    }

    #[test]
    fn range_stays_inside_and_reaches_both_ends() {
        let mut random = Random::seeded(7);
        let drawn: Vec<i64> = (0..2000).map(|_| random.range(-3, 4)).collect();
        assert!(drawn.iter().all(|v| (-3..=4).contains(v)));
        assert!(drawn.contains(&-3) && drawn.contains(&4));
    }

    #[test]
    fn range_of_everything_and_of_one() {
        let mut random = Random::seeded(7);
        assert_eq!(random.range(5, 5), 5);
        let drawn: Vec<i64> = (0..64).map(|_| random.range(i64::MIN, i64::MAX)).collect();
        assert!(drawn.iter().any(|v| *v < 0) && drawn.iter().any(|v| *v > 0));
    }
}
