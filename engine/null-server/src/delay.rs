//! The delay of each statement: a probability distribution, which is written as a word and numbers.

use ground::clock::Nanos;
use ground::random::Random;
use thiserror::Error;

/// The longest delay, in nanoseconds. Longer draws are cut to it.
const MAX_DELAY: f64 = 3600e9;

/// The 0.99 quantile of the standard normal distribution.
const NORMAL_P99: f64 = 2.326_347_874_040_841;

/// A probability distribution of delays, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub enum Delay {
    Fixed(Nanos),
    /// The delay is uniformly distributed between these two values, both included.
    Uniform(Nanos, Nanos),
    /// The delay is exponentially distributed with this mean, in nanoseconds.
    Exponential(f64),
    /// The delay is lognormally distributed. The fields are the median in nanoseconds and the standard deviation of the
    /// logarithm.
    Lognormal {
        median: f64,
        sigma: f64,
    },
    /// The delay is drawn from one of several distributions. The number before each distribution is the cumulative
    /// probability up to and including it. The last number is 1.
    Mix(Vec<(f64, Delay)>),
}

/// The error in the text of a delay. Each message continues a sentence that begins with the option and its value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DelayError {
    #[error("\"{0}\" is not a distribution: use fixed, uniform, exponential, lognormal or mix")]
    UnknownDistribution(String),
    #[error("the median of a lognormal distribution has to be above 0")]
    MedianZero,
    #[error("a mix cannot be part of a mix")]
    MixInMix,
    #[error("\"{0}\" is not a part of a mix: write WEIGHT*DELAY, such as 0.9*100us")]
    NotAPart(String),
    #[error("\"{0}\" is not a weight: give a number, such as 0.9")]
    NotAWeight(String),
    #[error("the weights of a mix have to be above 0")]
    WeightNotAboveZero,
    #[error("the sum of the mix's weights is too large")]
    WeightsTooLarge,
    #[error("\"{0}\" is not a range: write two times, such as 1ms..2ms")]
    NotARange(String),
    #[error("the first time of the range \"{0}\" is longer than the second one")]
    Backwards(String),
    #[error("\"{0}\" is not a time such as 0, 500us or 1.5ms")]
    NotATime(String),
    #[error("the time {0} is not between 0 and one hour")]
    TooLong(String),
}

impl Delay {
    /// Reads a distribution: `0`, `500us`, `fixed:500us`, `uniform:1ms..2ms`, `exponential:1ms` (its mean),
    /// `lognormal:1ms..10ms` (its median and its 99th percentile) or `mix:0.9*100us,0.1*uniform:5ms..10ms`.
    pub fn parse(text: &str) -> Result<Self, DelayError> {
        match text.strip_prefix("mix:") {
            Some(parts) => mix(parts),
            None => single(text),
        }
    }

    /// Returns true if every statement is answered at once.
    pub fn is_zero(&self) -> bool {
        *self == Delay::Fixed(0)
    }

    /// Draws the delay of the next statement.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> Nanos {
        match self {
            Delay::Fixed(time) => *time,
            Delay::Uniform(low, high) => random.range(*low as i64, *high as i64) as Nanos,
            Delay::Exponential(mean) => capped(-mean * (1.0 - random.unit()).ln()),
            Delay::Lognormal { median, sigma } => capped(median * (sigma * random.normal()).exp()),
            Delay::Mix(parts) => {
                let chosen = random.unit();
                parts.iter().find(|(upto, _)| chosen < *upto).map_or(0, |(_, part)| part.draw(random))
            }
        }
    }
}

fn single(text: &str) -> Result<Delay, DelayError> {
    let (word, values) = text.split_once(':').unwrap_or(("fixed", text));
    match word {
        "fixed" => Ok(Delay::Fixed(duration(values)?)),
        "uniform" => {
            let (low, high) = range(values)?;
            Ok(Delay::Uniform(low, high))
        }
        "exponential" => Ok(Delay::Exponential(duration(values)? as f64)),
        "lognormal" => {
            let (median, p99) = range(values)?;
            if median == 0 {
                return Err(DelayError::MedianZero);
            }
            let sigma = (p99 as f64 / median as f64).ln() / NORMAL_P99;
            Ok(Delay::Lognormal { median: median as f64, sigma })
        }
        "mix" => Err(DelayError::MixInMix),
        _ => Err(DelayError::UnknownDistribution(word.to_owned())),
    }
}

fn mix(text: &str) -> Result<Delay, DelayError> {
    let mut parts = Vec::new();
    let mut sum = 0.0;
    for part in text.split(',') {
        let (weight, delay) = part.split_once('*').ok_or_else(|| DelayError::NotAPart(part.to_owned()))?;
        let weight: f64 = weight.trim().parse().map_err(|_| DelayError::NotAWeight(weight.to_owned()))?;
        if !(weight > 0.0 && weight.is_finite()) {
            return Err(DelayError::WeightNotAboveZero);
        }
        sum += weight;
        parts.push((sum, single(delay.trim())?));
    }
    if !f64::is_finite(sum) {
        return Err(DelayError::WeightsTooLarge);
    }
    for (upto, _) in &mut parts {
        *upto /= sum;
    }
    Ok(Delay::Mix(parts))
}

fn range(text: &str) -> Result<(Nanos, Nanos), DelayError> {
    let (low, high) = text.split_once("..").ok_or_else(|| DelayError::NotARange(text.to_owned()))?;
    let (low, high) = (duration(low)?, duration(high)?);
    if low > high {
        return Err(DelayError::Backwards(text.to_owned()));
    }
    Ok((low, high))
}

/// Reads a time with its unit, of at most an hour. `0` needs no unit.
fn duration(text: &str) -> Result<Nanos, DelayError> {
    let text = text.trim();
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let wrong = || DelayError::NotATime(text.to_owned());
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    let scale = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "" if number == 0.0 => 1.0,
        _ => return Err(wrong()),
    };
    let time = number * scale;
    if (0.0..=MAX_DELAY).contains(&time) {
        Ok(time.round() as Nanos)
    } else {
        Err(DelayError::TooLong(text.to_owned()))
    }
}

fn capped(time: f64) -> Nanos {
    time.min(MAX_DELAY) as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns many drawn delays in ascending order, in microseconds.
    fn drawn(text: &str) -> Vec<f64> {
        let delay = Delay::parse(text).unwrap();
        let mut random = Random::seeded(1);
        let mut drawn: Vec<f64> = (0..100_000).map(|_| delay.draw(&mut random) as f64 / 1000.0).collect();
        drawn.sort_by(f64::total_cmp);
        drawn
    }

    fn assert_quantiles(text: &str, expected: &[(f64, f64)]) {
        let drawn = drawn(text);
        for (quantile, value) in expected {
            let found = drawn[(quantile * drawn.len() as f64) as usize];
            assert!((found / value - 1.0).abs() < 0.03, "{text}: {found} us at {quantile}, not {value}");
        }
    }

    #[test]
    fn one_time_is_always_the_same() {
        for (text, nanos) in [("0", 0), ("500us", 500_000), ("fixed:1.5ms", 1_500_000), ("10s", 10_000_000_000)] {
            assert_eq!(Delay::parse(text), Ok(Delay::Fixed(nanos)));
        }
        assert!(Delay::parse("0us").unwrap().is_zero());
    }

    #[test]
    fn quantiles_are_those_of_the_distribution() {
        assert_quantiles("uniform:1ms..2ms", &[(0.0, 1000.0), (0.5, 1500.0), (0.99999, 2000.0)]);
        assert_quantiles("exponential:1ms", &[(0.5, 693.1), (0.9, 2302.6), (0.99, 4605.2)]);
        assert_quantiles("lognormal:1ms..10ms", &[(0.5, 1000.0), (0.99, 10_000.0)]);
        assert_quantiles("mix:90*100us,10*10ms", &[(0.0, 100.0), (0.89, 100.0), (0.91, 10_000.0)]);
        assert_quantiles("mix:1*0.1ms,1*uniform:1ms..3ms", &[(0.49, 100.0), (0.75, 2000.0)]);
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        for text in [
            "",
            "5",
            "-1ms",
            "1h",
            "2ms..1ms",
            "uniform:2ms..1ms",
            "uniform:1ms",
            "normal:1ms",
            "lognormal:0..1ms",
            "mix:",
            "mix:1ms",
            "mix:0*1ms",
            "mix:-1*1ms",
            "mix:nan*1ms",
            "mix:1*mix:1*1ms",
            "nanms",
            "infs",
        ] {
            assert!(Delay::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_distribution_or_refused(text in "((mix|uniform|lognormal|exponential):)?[0-9.*,usm]{0,12}") {
            if let Ok(delay) = Delay::parse(&text) {
                prop_assert!(delay.draw(&mut Random::seeded(1)) <= MAX_DELAY as Nanos);
            }
        }
    }
}
