//! Histograms in HdrHistogram's V2 format, deflated, in base64: readable by its libraries in any language. They are added
//! up as they are read, without a histogram of each: those of a large fleet are many.

use base64_simd::{AsOut, STANDARD};
use libdeflater::{CompressionLvl, Compressor, Decompressor};

use super::{BUCKETS, DIGITS, LONGEST_US, Latencies};
use crate::histogram::counts;
use crate::histogram::counts::CUT_OFF;

/// The first four bytes of HdrHistogram's V2 format, deflated and as it is inside.
const DEFLATED: u32 = 0x1c84_9314;
const PLAIN: u32 = 0x1c84_9313;

/// Bytes before the deflated part, and before the counts in it.
const OUTER_HEADER: usize = 8;
const HEADER: usize = 40;

/// Reads encoded histograms; its buffers are used again and again.
pub struct Decoder {
    inflate: Decompressor,
    packed: Vec<u8>,
    plain: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        let plain = vec![0; HEADER + BUCKETS * counts::LONGEST];
        Self { inflate: Decompressor::new(), packed: Vec::new(), plain }
    }
}

impl Decoder {
    /// Adds what [`Latencies::encode`] wrote to a histogram; how many latencies it were. The error goes on from "its
    /// histogram", and some of the latencies may have been added.
    pub fn add(&mut self, encoded: &[u8], to: &mut Latencies) -> Result<u64, &'static str> {
        let length = self.unpack(encoded)?;
        let (header, counts) = self.plain[..length].split_at_checked(HEADER).ok_or(CUT_OFF)?;
        let field = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let long_field = |at: usize| u64::from(field(at)) << 32 | u64::from(field(at + 4));
        if field(0) != PLAIN {
            return Err("is no HdrHistogram in the V2 format");
        }
        let range = (field(8), field(12), long_field(16), long_field(24), long_field(32));
        if range != (0, u32::from(DIGITS), 1, LONGEST_US, 1f64.to_bits()) {
            return Err("has not three digits from 1 us to 1 h");
        }
        if field(4) as usize != counts.len() {
            return Err(CUT_OFF);
        }
        counts::add(counts, to)
    }

    /// The length of the plain form, which is made.
    fn unpack(&mut self, encoded: &[u8]) -> Result<usize, &'static str> {
        let most = STANDARD.estimated_decoded_length(encoded.len());
        if self.packed.len() < most {
            self.packed.resize(most, 0);
        }
        let packed = STANDARD.decode(encoded, self.packed.as_mut_slice().as_out()).map_err(|_| "is not in base64")?;
        let (header, deflated) = packed.split_at_checked(OUTER_HEADER).ok_or(CUT_OFF)?;
        if !header.starts_with(&DEFLATED.to_be_bytes()) {
            return Err("is no deflated HdrHistogram in the V2 format");
        }
        if header[4..] != (deflated.len() as u32).to_be_bytes() {
            return Err(CUT_OFF);
        }
        self.inflate.zlib_decompress(deflated, &mut self.plain).map_err(|_| "cannot be inflated")
    }
}

impl Latencies {
    /// The histogram as other programs read it.
    pub fn encode(&self) -> String {
        STANDARD.encode_to_string(deflate(&self.plain()))
    }

    fn plain(&self) -> Vec<u8> {
        let mut plain = Vec::new();
        plain.extend_from_slice(&PLAIN.to_be_bytes());
        // The length of the counts, which is not known yet, and the first bucket, which is that of zero.
        plain.extend_from_slice(&[0; 8]);
        plain.extend_from_slice(&u32::from(DIGITS).to_be_bytes());
        plain.extend_from_slice(&1u64.to_be_bytes());
        plain.extend_from_slice(&LONGEST_US.to_be_bytes());
        plain.extend_from_slice(&1f64.to_be_bytes());
        counts::write(&self.counts, &mut plain);
        let length = (plain.len() - HEADER) as u32;
        plain[4..8].copy_from_slice(&length.to_be_bytes());
        plain
    }

    /// Its counts as the format has them, in some thousand bytes; nothing is left.
    pub fn pack(&mut self) -> Vec<u8> {
        let Self { counts, .. } = std::mem::take(self);
        let mut packed = Vec::new();
        counts::write(&counts, &mut packed);
        packed
    }

    /// Adds what was packed.
    pub fn unpack(&mut self, packed: &[u8]) {
        if let Err(problem) = counts::add(packed, self) {
            unreachable!("a packed histogram {problem}");
        }
    }
}

fn deflate(plain: &[u8]) -> Vec<u8> {
    // A histogram hardly repeats itself: looking for that costs much and saves little.
    let mut compressor = Compressor::new(CompressionLvl::fastest());
    let mut deflated = vec![0; OUTER_HEADER + compressor.zlib_compress_bound(plain.len())];
    let (header, rest) = deflated.split_at_mut(OUTER_HEADER);
    let length = compressor
        .zlib_compress(plain, rest)
        .unwrap_or_else(|error| unreachable!("there is room for the longest outcome: {error}"));
    header[..4].copy_from_slice(&DEFLATED.to_be_bytes());
    header[4..].copy_from_slice(&(length as u32).to_be_bytes());
    deflated.truncate(OUTER_HEADER + length);
    deflated
}

#[cfg(test)]
mod tests {
    use super::super::tests::{library, reference};
    use super::*;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
    use proptest::prelude::*;

    fn latencies(of: &[u64]) -> Latencies {
        let mut latencies = Latencies::default();
        of.iter().for_each(|latency| latencies.record(*latency));
        latencies
    }

    fn added(encoded: &[u8]) -> Result<u64, &'static str> {
        Decoder::default().add(encoded, &mut Latencies::default())
    }

    #[test]
    fn what_is_no_histogram_of_ours_is_refused() {
        let whole = latencies(&[1_000_000, 2_000_000]).encode().into_bytes();
        let bytes = STANDARD.decode_to_vec(&whole).unwrap();
        assert_eq!(added(&whole), Ok(2));
        assert_eq!(added(b""), Err("is cut off"));
        assert_eq!(added("ü".as_bytes()), Err("is not in base64"));
        assert_eq!(added(STANDARD.encode_to_string(&bytes[..bytes.len() - 3]).as_bytes()), Err("is cut off"));
        assert_eq!(
            added(STANDARD.encode_to_string(&bytes[1..]).as_bytes()),
            Err("is no deflated HdrHistogram in the V2 format")
        );
        let mut other = bytes.clone();
        other[12] ^= 0xff;
        assert_eq!(added(STANDARD.encode_to_string(&other).as_bytes()), Err("cannot be inflated"));
        let mut coarse = Histogram::<u64>::new_with_bounds(1, LONGEST_US, 2).unwrap();
        coarse.saturating_record(7);
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&coarse, &mut bytes).unwrap();
        assert_eq!(added(STANDARD.encode_to_string(&bytes).as_bytes()), Err("has not three digits from 1 us to 1 h"));
    }

    #[test]
    fn no_latencies_are_a_histogram_as_well() {
        assert_eq!(added(Latencies::default().encode().as_bytes()), Ok(0));
        assert_eq!(library(&Latencies::default()), reference([]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn parts_add_up_to_the_whole(
            parts in prop::collection::vec(
                prop::collection::vec(prop_oneof![0..20_000_000u64, 0..2 * LONGEST_US * 1000], 0..60), 1..5,
            ),
        ) {
            let (mut decoder, mut sum) = (Decoder::default(), Latencies::default());
            for part in &parts {
                let added = decoder.add(latencies(part).encode().as_bytes(), &mut sum);
                prop_assert_eq!(added, Ok(part.len() as u64));
            }
            let whole = latencies(&parts.concat());
            prop_assert_eq!(sum.encode(), whole.encode());
            prop_assert_eq!(sum.percentiles(), whole.percentiles());
            let packed = sum.pack();
            prop_assert_eq!((sum.percentiles(), sum.total), (None, 0));
            sum.unpack(&packed);
            prop_assert_eq!((sum.encode(), sum.total), (whole.encode(), whole.total));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = added(&bytes);
            let _ = added(STANDARD.encode_to_string(deflate(&bytes)).as_bytes());
        }

        #[test]
        fn a_harmed_histogram_is_refused_or_says_what_the_library_reads(
            of in prop::collection::vec(0..20_000_000u64, 1..200),
            harm in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            inside in any::<bool>(),
        ) {
            let mut bytes = if inside { latencies(&of).plain() } else { deflate(&latencies(&of).plain()) };
            let length = bytes.len();
            harm.iter().for_each(|(place, byte)| bytes[place.index(length)] = *byte);
            let packed = if inside { deflate(&bytes) } else { bytes };
            // Not the other way round: the library makes room for whatever length it is told.
            if let Ok(count) = added(STANDARD.encode_to_string(&packed).as_bytes()) {
                // It minds empty buckets beyond the last.
                let read = Deserializer::new().deserialize::<u64, _>(&mut packed.as_slice());
                prop_assert!(read.is_err() || read.is_ok_and(|read| read.len() == count));
            }
        }
    }
}
