//! Distributions of random numbers: pgbench's and sysbench's.

pub mod permute;
pub mod skewed;
