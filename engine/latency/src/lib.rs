//! Latencies: histograms, their encoded form, percentiles, and moments such as mean and standard deviation. The crate
//! does not know whose latencies it counts.

mod encoded;
mod latencies;
mod moments;

pub use encoded::{Decoder, MOST};
pub use latencies::{Latencies, Packed, Percentiles};
pub use moments::Moments;
