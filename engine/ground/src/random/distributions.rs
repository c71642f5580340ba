//! The distributions of pgbench's random functions, drawn exactly as pgbench draws them.

use super::Random;

/// The smallest parameter of a gaussian draw; a smaller one would reject too many draws.
pub const MIN_GAUSSIAN_PARAMETER: f64 = 2.0;

/// The range of a zipfian draw's parameter.
pub const MIN_ZIPFIAN_PARAMETER: f64 = 1.001;
pub const MAX_ZIPFIAN_PARAMETER: f64 = 1000.0;

impl Random {
    /// Draws a double, uniform in [0, 1), with 52 bits (`pg_prng_double`).
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

    /// Draws from the exponential distribution in `min..=max`: the density falls by the factor `exp(-parameter)` from `min`
    /// to `max`.
    pub fn exponential(&mut self, min: i64, max: i64, parameter: f64) -> i64 {
        let cut = (-parameter).exp();
        let uniform = 1.0 - self.double();
        scale(min, max, -(cut + (1.0 - cut) * uniform).ln() / parameter)
    }

    /// Draws from the normal distribution in `min..=max`, cut off at `parameter` standard deviations from the middle.
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

/// Returns the integer at `fraction` (`0..1`) of the range.
fn scale(min: i64, max: i64, fraction: f64) -> i64 {
    min.wrapping_add(((max - min + 1) as f64 * fraction) as i64)
}
