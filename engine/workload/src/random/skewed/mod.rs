//! sysbench's distributions: drawn by its formulas from our generator, so that the shapes are the same and the numbers
//! are not.
//!
//! As there, the ends of a range are 32 bits wide and without a sign: what is beyond wraps.

mod strings;
mod unique;
mod zipfian;

pub use strings::{fill_groups, string, varstring};

use std::time::{SystemTime, UNIX_EPOCH};

use crate::Fatal;
use crate::settings::{OptionValue, Settings};
use ground::random::Random;
use ground::shard::Shard;
use unique::Unique;
use zipfian::{Exponent, Zipfian};

/// What `--rand-type` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Uniform,
    /// The mean of so many uniform draws as `--rand-spec-iter` says.
    Gaussian,
    /// Most draws in a small part around the middle, the others gaussian.
    Special,
    Pareto,
    Zipfian,
}

impl Kind {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "uniform" => Self::Uniform,
            "gaussian" => Self::Gaussian,
            "special" => Self::Special,
            "pareto" => Self::Pareto,
            "zipfian" => Self::Zipfian,
            _ => return None,
        })
    }
}

/// The distributions of a run, with the parameters that its options give them.
#[derive(Debug)]
pub struct Distributions {
    default: Kind,
    iterations: u32,
    /// Size of the special part as a share of the whole range.
    special_size: f64,
    /// How many draws of the special distribution are gaussian.
    gaussian_share: f64,
    pareto_power: f64,
    zipfian: Exponent,
    unique: Unique,
}

impl Distributions {
    /// From `rand_type`, `rand_spec_iter`, `rand_spec_pct`, `rand_spec_res`, `rand_pareto_h`, `rand_zipfian_exp` and
    /// `rand_seed`; what is not there has sysbench's default.
    pub fn new(settings: &Settings) -> Result<Self, Fatal> {
        let number = |name, default| settings.get(name).map_or(default, |_| settings.double(name));
        let name = settings.text("rand_type").unwrap_or("special");
        let default = Kind::named(name)
            .ok_or_else(|| Fatal::new(format_args!("Invalid random numbers distribution: {name}.")))?;
        let iterations = number("rand_spec_iter", 12.0);
        check(iterations >= 1.0 && iterations <= f64::from(u32::MAX), "--rand-spec-iter must be >= 1")?;
        let special_size = number("rand_spec_pct", 1.0) / 100.0;
        check((0.0..=1.0).contains(&special_size), "--rand-spec-pct must be between 0 and 100")?;
        let special_share = number("rand_spec_res", 75.0) / 100.0;
        check((0.0..=1.0).contains(&special_share), "--rand-spec-res must be between 0 and 100")?;
        let h = number("rand_pareto_h", 0.2);
        check(h > 0.0 && h < 1.0, "--rand-pareto-h must be > 0 and < 1")?;
        let exponent = number("rand_zipfian_exp", 0.8);
        check(exponent >= 0.0 && exponent.is_finite(), "--rand-zipfian-exp must be >= 0")?;
        Ok(Self {
            default,
            iterations: iterations as u32,
            special_size,
            gaussian_share: 1.0 - special_share,
            pareto_power: h.ln() / (1.0 - h).ln(),
            zipfian: Exponent::new(exponent),
            unique: Unique::new(&mut generator(settings)),
        })
    }

    /// The same for one of several engines, none of which draws a unique number that another one does.
    pub fn of_shard(self, shard: Shard) -> Self {
        Self { unique: self.unique.of_shard(shard), ..self }
    }

    /// The distribution that `--rand-type` names, over `a..=b`.
    pub fn over(&self, a: i64, b: i64) -> Skewed {
        self.shaped(self.default, a, b)
    }

    /// One of the distributions over `a..=b`.
    pub fn shaped(&self, kind: Kind, a: i64, b: i64) -> Skewed {
        let (min, width) = (a as u32, (b as u32).wrapping_sub(a as u32));
        let count = width.wrapping_add(1);
        let size = f64::from(count);
        let iterations = self.iterations;
        let shape = match kind {
            Kind::Uniform => Shape::Uniform { size },
            Kind::Gaussian => Shape::Gaussian { iterations, step: size / f64::from(iterations) },
            Kind::Special => {
                let width = f64::from(width);
                let size = width * self.special_size;
                Shape::Special {
                    iterations,
                    gaussian_share: self.gaussian_share,
                    step: width / f64::from(iterations),
                    size: size + 1.0,
                    start: (width - size) / 2.0,
                }
            }
            Kind::Pareto => Shape::Pareto { size, power: self.pareto_power },
            Kind::Zipfian => Shape::Zipfian(self.zipfian.over(count)),
        };
        Skewed { min, shape }
    }

    /// A number of `a..=b` in the distribution that `--rand-type` names.
    pub fn default(&self, random: &mut Random, a: i64, b: i64) -> i64 {
        self.over(a, b).draw(random)
    }

    pub fn uniform(&self, random: &mut Random, a: i64, b: i64) -> i64 {
        self.shaped(Kind::Uniform, a, b).draw(random)
    }

    pub fn gaussian(&self, random: &mut Random, a: i64, b: i64) -> i64 {
        self.shaped(Kind::Gaussian, a, b).draw(random)
    }

    pub fn special(&self, random: &mut Random, a: i64, b: i64) -> i64 {
        self.shaped(Kind::Special, a, b).draw(random)
    }

    pub fn pareto(&self, random: &mut Random, a: i64, b: i64) -> i64 {
        self.shaped(Kind::Pareto, a, b).draw(random)
    }

    pub fn zipfian(&self, random: &mut Random, a: i64, b: i64) -> i64 {
        self.shaped(Kind::Zipfian, a, b).draw(random)
    }

    /// A number of 32 bits that has not been drawn before in this run, by whichever thread and engine.
    pub fn unique(&self) -> u32 {
        self.unique.draw()
    }
}

fn check(is_good: bool, otherwise: &str) -> Result<(), Fatal> {
    if is_good { Ok(()) } else { Err(Fatal::new(otherwise)) }
}

/// The generator that `--rand-seed` determines; with 0 the time does.
pub fn generator(settings: &Settings) -> Random {
    let seed = match settings.get("rand_seed") {
        Some(OptionValue::Int(seed)) if *seed != 0 => *seed as u64,
        _ => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64),
    };
    Random::seeded(seed)
}

/// A distribution over a range that is drawn from often: what a draw needs is worked out once.
#[derive(Debug, Clone, Copy)]
pub struct Skewed {
    min: u32,
    shape: Shape,
}

/// Doubles are counted in numbers of the range.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Uniform {
        size: f64,
    },
    /// The sum of so many uniform draws from `0..step`.
    Gaussian {
        iterations: u32,
        step: f64,
    },
    Special {
        iterations: u32,
        gaussian_share: f64,
        step: f64,
        size: f64,
        start: f64,
    },
    Pareto {
        size: f64,
        power: f64,
    },
    Zipfian(Zipfian),
}

impl Skewed {
    /// A number of the range.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> i64 {
        let place = match &self.shape {
            Shape::Uniform { size } => random.unit() * size,
            Shape::Gaussian { iterations, step } => sum(random, *iterations) * step,
            Shape::Special { iterations, gaussian_share, step, size, start } => {
                // The draw that decides is used again, as in sysbench: the special part is not quite in the middle.
                let uniform = random.unit();
                if uniform < *gaussian_share { sum(random, *iterations) * step } else { uniform * size + start }
            }
            Shape::Pareto { size, power } => random.unit().powf(*power) * size,
            Shape::Zipfian(zipfian) => zipfian.draw(random),
        };
        i64::from(self.min.wrapping_add(place as u64 as u32))
    }
}

fn sum(random: &mut Random, count: u32) -> f64 {
    (0..count).map(|_| random.unit()).sum()
}

#[cfg(test)]
mod tests;
