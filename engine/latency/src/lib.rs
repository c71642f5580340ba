//! Latencies: histograms and their encoded form, percentiles, moments. Nothing here knows whose latencies they are.

mod encoded;
mod latencies;
mod moments;

pub use encoded::{Decoder, MOST};
pub use latencies::{Latencies, Packed, Percentiles};
pub use moments::Moments;
