//! sysbench's random numbers and strings (`sb_rand.c`). They are computed with sysbench's formulas from this project's
//! generator, so the distributions equal sysbench's, but the single numbers do not.

mod distributions;
#[cfg(test)]
mod tests;
mod values;
mod zipfian;

pub use distributions::{Distribution, Distributions, RandType, generator};
pub use values::fill_groups;
pub(crate) use values::{string, varstring};
