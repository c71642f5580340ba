//! Draws from Zipf's distribution by rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate
//! variates from monotone discrete distributions", ACM TOMACS 6.3, 1996). It works for any exponent from 0, needs no
//! table, and takes constant time for a draw.

use ground::random::Random;

/// An exponent, with the constants that depend only on it.
#[derive(Debug, Clone, Copy)]
pub struct Exponent {
    exponent: f64,
    /// The value 1 - exponent.
    q: f64,
    /// The greatest distance between a drawn position and the whole number above it at which that number is accepted
    /// without the exact test.
    shortcut: f64,
    /// The area (integral of the weight, see [`Self::area`]) at which the range of the first and most frequent number
    /// begins. A draw chooses a random area and takes the number to whose range the area belongs.
    first: f64,
}

/// The distribution over the numbers `0..count`, in which 0 is the most frequent.
#[derive(Debug, Clone, Copy)]
pub struct Zipfian {
    exponent: Exponent,
    count: f64,
    /// The area (integral of the weight, see [`Exponent::area`]) at which the range of the last number ends.
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
        // Because of rounding the number can be below -1, for which there is no logarithm.
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
