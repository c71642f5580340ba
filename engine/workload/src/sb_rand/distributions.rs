//! The distributions of `--rand-type`. As in sysbench, the ends of a range are unsigned 32-bit numbers that wrap
//! around.

use std::time::{SystemTime, UNIX_EPOCH};

use super::values::Unique;
use super::zipfian::{Exponent, Zipfian};
use crate::program::Fatal;
use crate::settings::{OptionValue, Settings};
use ground::random::Random;
use ground::shard::Shard;

/// A value of `--rand-type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RandType {
    Uniform,
    /// Each draw is the mean of `--rand-spec-iter` uniform draws.
    Gaussian,
    /// Most draws are from a small part near the middle of the range; the others are Gaussian.
    Special,
    Pareto,
    Zipfian,
}

const RAND_TYPES: [(&str, RandType); 5] = [
    ("uniform", RandType::Uniform),
    ("gaussian", RandType::Gaussian),
    ("special", RandType::Special),
    ("pareto", RandType::Pareto),
    ("zipfian", RandType::Zipfian),
];

/// The distributions of a run, with the parameters that the options give.
#[derive(Debug)]
pub struct Distributions {
    rand_type: RandType,
    iterations: u32,
    /// The size of the special distribution's middle part, as a share of the whole range.
    special_size: f64,
    /// The share of the special distribution's draws that are Gaussian.
    gaussian_share: f64,
    pareto_power: f64,
    zipfian: Exponent,
    unique: Unique,
}

impl Distributions {
    /// Reads the options `rand_type`, `rand_spec_iter`, `rand_spec_pct`, `rand_spec_res`, `rand_pareto_h`,
    /// `rand_zipfian_exp` and `rand_seed`. An option that is not set has sysbench's default.
    pub fn new(settings: &Settings) -> Result<Self, Fatal> {
        let number = |name, default| settings.get(name).map_or(default, |_| settings.double(name));
        let name = settings.text("rand_type").unwrap_or("special");
        let Some((_, rand_type)) = RAND_TYPES.into_iter().find(|(known, _)| *known == name) else {
            return Err(Fatal::new(format_args!("Invalid random numbers distribution: {name}.")));
        };
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
            rand_type,
            iterations: iterations as u32,
            special_size,
            gaussian_share: 1.0 - special_share,
            pareto_power: h.ln() / (1.0 - h).ln(),
            zipfian: Exponent::new(exponent),
            unique: Unique::new(&mut generator(settings)),
        })
    }

    /// Returns the same distributions for one engine of several that share a run. Each engine draws other unique
    /// numbers.
    pub fn of_shard(self, shard: Shard) -> Self {
        Self { unique: self.unique.of_shard(shard), ..self }
    }

    /// Returns the distribution of `--rand-type` over the range `a..=b`.
    pub fn over(&self, a: i64, b: i64) -> Distribution {
        self.over_type(self.rand_type, a, b)
    }

    /// Returns the distribution of the given type over the range `a..=b`.
    pub fn over_type(&self, rand_type: RandType, a: i64, b: i64) -> Distribution {
        let (min, width) = (a as u32, (b as u32).wrapping_sub(a as u32));
        let count = width.wrapping_add(1);
        let (size, iterations) = (f64::from(count), self.iterations);
        let shape = match rand_type {
            RandType::Uniform => Shape::Uniform { size },
            RandType::Gaussian => Shape::Gaussian { iterations, step: size / f64::from(iterations) },
            RandType::Special => {
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
            RandType::Pareto => Shape::Pareto { size, power: self.pareto_power },
            RandType::Zipfian => Shape::Zipfian(self.zipfian.over(count)),
        };
        Distribution { min, shape }
    }

    /// Draws a 32-bit number that no thread and no engine of this run has drawn before.
    pub fn unique(&self) -> u32 {
        self.unique.draw()
    }
}

fn check(is_valid: bool, message: &str) -> Result<(), Fatal> {
    if is_valid { Ok(()) } else { Err(Fatal::new(message)) }
}

/// Makes a random generator with the seed of `--rand-seed`. If the seed is 0, it is derived from the system time.
pub fn generator(settings: &Settings) -> Random {
    let seed = match settings.get("rand_seed") {
        Some(OptionValue::Int(seed)) if *seed != 0 => *seed as u64,
        _ => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64),
    };
    Random::seeded(seed)
}

/// A distribution over a range, with precomputed constants.
#[derive(Debug, Clone, Copy)]
pub struct Distribution {
    min: u32,
    shape: Shape,
}

/// The type of a distribution with its constants. Lengths are numbers of values, not shares of the range.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Uniform {
        size: f64,
    },
    /// Each draw is the sum of `iterations` uniform draws from `0..step`.
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

impl Distribution {
    /// Draws a number of the range.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> i64 {
        let place = match &self.shape {
            Shape::Uniform { size } => random.unit() * size,
            Shape::Gaussian { iterations, step } => sum(random, *iterations) * step,
            Shape::Special { iterations, gaussian_share, step, size, start } => {
                // As in sysbench, the draw that decides between both parts also chooses the value. So the special part
                // is not exactly in the middle.
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
