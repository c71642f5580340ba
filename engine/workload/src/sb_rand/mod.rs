//! sysbench's random numbers and strings (`sb_rand.c`), drawn by its formulas from our generator: the distributions are
//! sysbench's, the numbers are not.

mod distributions;
#[cfg(test)]
mod tests;
mod values;
mod zipfian;

pub use distributions::{Distribution, Distributions, RandType, generator};
pub use values::fill_groups;
pub(crate) use values::{string, varstring};
