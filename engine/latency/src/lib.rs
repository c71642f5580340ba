//! Latencies: histograms, moments, percentiles, and the encoded form of a histogram.

mod histogram;
mod moments;

pub use histogram::{Decoder, Latencies, MOST, Percentiles};
pub use moments::Moments;
