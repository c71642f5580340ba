//! The pseudo-random number generator of PostgreSQL and pgbench (`common/pg_prng.c`): xoroshiro128**, seeded by
//! splitmix64. The same seed gives the same values as in pgbench. Source: Blackman and Vigna,
//! <https://prng.di.unimi.it/>.

/// The smallest allowed parameter of a gaussian draw. A smaller parameter would reject too many draws.
pub const MIN_GAUSSIAN_PARAMETER: f64 = 2.0;

/// The smallest allowed parameter of a zipfian draw.
pub const MIN_ZIPFIAN_PARAMETER: f64 = 1.001;
/// The largest allowed parameter of a zipfian draw.
pub const MAX_ZIPFIAN_PARAMETER: f64 = 1000.0;

/// Draws 64 random bits from the operating system.
pub fn entropy() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).unwrap_or_else(|error| unreachable!("each system has a generator: {error}"));
    u64::from_ne_bytes(bytes)
}

/// The state of a generator: sixteen bytes that are never all zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    s0: u64,
    s1: u64,
}

impl Random {
    /// Makes a generator whose sequence of numbers is determined by `seed`.
    pub fn seeded(seed: u64) -> Self {
        let mut state = seed;
        let (s0, s1) = (splitmix64(&mut state), splitmix64(&mut state));
        if s0 == 0 && s1 == 0 {
            // A generator with the state 0 would stay at 0. PostgreSQL replaces this state by these constants, too.
            return Self { s0: 0x5851_F42D_4C95_7F2D, s1: 0x1405_7B7E_F767_814F };
        }
        Self { s0, s1 }
    }

    /// Draws 64 bits from the generator.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s0 = self.s0;
        let sx = self.s1 ^ s0;
        let value = s0.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.s0 = s0.rotate_left(24) ^ sx ^ (sx << 16);
        self.s1 = sx.rotate_left(37);
        value
    }

    /// Draws a double with 53 bits, uniformly distributed in [0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Makes another generator that is seeded by this one, as pgbench does for its threads and clients.
    pub fn derive(&mut self) -> Self {
        Self::seeded(self.next_u64())
    }

    /// Draws an integer, uniformly distributed in `min..=max`, by rejection below the next power of two. Returns `min`
    /// if the range is empty.
    #[inline]
    pub fn range(&mut self, min: i64, max: i64) -> i64 {
        if min >= max {
            return min;
        }
        Span::new(min, max).draw(self)
    }
}

/// The distributions of pgbench's random functions, drawn exactly as pgbench draws them.
impl Random {
    /// Draws a double with 52 bits, uniformly distributed in [0, 1) (`pg_prng_double`).
    #[inline]
    pub fn double(&mut self) -> f64 {
        const UNIT: f64 = 1.0 / (1u64 << 52) as f64;
        (self.next_u64() >> 12) as f64 * UNIT
    }

    /// Draws from the normal distribution with mean 0 and standard deviation 1, by the Box-Muller transform.
    pub fn normal(&mut self) -> f64 {
        let radius = 1.0 - self.double();
        let angle = 1.0 - self.double();
        (-2.0 * radius.ln()).sqrt() * (2.0 * std::f64::consts::PI * angle).sin()
    }

    /// Draws from the exponential distribution in `min..=max`. The density falls from `min` to `max` by the factor
    /// `exp(-parameter)`.
    pub fn exponential(&mut self, min: i64, max: i64, parameter: f64) -> i64 {
        let cut = (-parameter).exp();
        let uniform = 1.0 - self.double();
        scale(min, max, -(cut + (1.0 - cut) * uniform).ln() / parameter)
    }

    /// Draws from the normal distribution in `min..=max`. It is cut off at `parameter` standard deviations from the
    /// middle of the range.
    pub fn gaussian(&mut self, min: i64, max: i64, parameter: f64) -> i64 {
        loop {
            let normal = self.normal();
            if !(normal < -parameter || normal >= parameter) {
                return scale(min, max, (normal + parameter) / (parameter * 2.0));
            }
        }
    }

    /// Draws from the Zipfian distribution in `min..=max` with exponent `parameter`, by rejection. Source: Devroye,
    /// "Non-Uniform Random Variate Generation", 1986, pages 550-551.
    pub fn zipfian(&mut self, min: i64, max: i64, parameter: f64) -> i64 {
        let count = max - min + 1;
        if count <= 1 {
            return min;
        }
        let less_one = parameter - 1.0;
        let b = 2f64.powf(less_one);
        loop {
            let (u, v) = (self.double(), self.double());
            let x = u.powf(-1.0 / less_one).floor();
            let t = (1.0 + 1.0 / x).powf(less_one);
            if v * x * (t - 1.0) / (b - 1.0) <= t / b && x <= count as f64 {
                return min - 1 + x as i64;
            }
        }
    }
}

/// Returns the integer at the position `fraction` (from 0 to 1) of the range.
fn scale(min: i64, max: i64, fraction: f64) -> i64 {
    min.wrapping_add(((max - min + 1) as f64 * fraction) as i64)
}

/// A range of integers from which many numbers are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    min: u64,
    size: u64,
    shift: u32,
}

impl Span {
    /// Prepares the range `min..=max` for drawing. `max` must be greater than `min`.
    pub fn new(min: i64, max: i64) -> Self {
        let size = (max as u64).wrapping_sub(min as u64);
        Self { min: min as u64, size, shift: size.leading_zeros() & 63 }
    }

    /// Draws an integer, uniformly distributed in the range.
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

/// Returns output number `number` of the generator splitmix64 with this seed. The numbers count from 0.
pub fn splitmix64_at(seed: u64, number: u64) -> u64 {
    splitmix64(&mut seed.wrapping_add(number.wrapping_mul(GOLDEN_GAMMA)))
}

/// The number that splitmix64 adds to its state for each output.
const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(GOLDEN_GAMMA);
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
