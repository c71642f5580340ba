//! Zipf's distribution by rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from
//! monotone discrete distributions", ACM TOMACS 6.3, 1996): any exponent from 0, no table, a constant time per draw.

use ground::random::Random;

/// An exponent with the constants that depend on it alone.
#[derive(Debug, Clone, Copy)]
pub struct Exponent {
    exponent: f64,
    /// The number 1 - exponent.
    q: f64,
    /// A candidate that is at most this far below a number is accepted without the exact test.
    shortcut: f64,
    /// The start of the first number's area.
    first: f64,
}

/// The numbers `0..count`, of which the first is the most frequent.
#[derive(Debug, Clone, Copy)]
pub struct Zipfian {
    exponent: Exponent,
    count: f64,
    /// The area of all numbers.
    end: f64,
}

impl Exponent {
    pub fn new(exponent: f64) -> Self {
        let mut new = Self { exponent, q: 1.0 - exponent, shortcut: 0.0, first: 0.0 };
        new.shortcut = 2.0 - new.inverse(new.area(2.5) - new.weight(2.0));
        new.first = new.area(1.5) - 1.0;
        new
    }

    pub fn over(self, count: u32) -> Zipfian {
        Zipfian { exponent: self, count: f64::from(count), end: self.area(f64::from(count) + 0.5) }
    }

    /// Returns the weight of `x`: `1 / x^exponent`.
    fn weight(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// Returns the integral of the weight from 1 to `x`.
    fn area(&self, x: f64) -> f64 {
        let log = x.ln();
        if self.q == 0.0 { log } else { (self.q * log).exp_m1() / self.q }
    }

    /// Returns the `x` up to which the integral is `area`.
    fn inverse(&self, area: f64) -> f64 {
        // Rounding can yield a number below -1, which has no logarithm.
        let log = if self.q == 0.0 { area } else { (self.q * area).max(-1.0).ln_1p() / self.q };
        log.exp()
    }
}

impl Zipfian {
    pub fn draw(&self, random: &mut Random) -> f64 {
        let exponent = &self.exponent;
        loop {
            let area = self.end + random.unit() * (exponent.first - self.end);
            let x = exponent.inverse(area);
            let number = (x + 0.5).floor().min(self.count).max(1.0);
            if number - x <= exponent.shortcut || area >= exponent.area(number + 0.5) - exponent.weight(number) {
                return number - 1.0;
            }
        }
    }
}
