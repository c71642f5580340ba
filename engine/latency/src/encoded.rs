//! The encoded form of a histogram: HdrHistogram's V2 format, deflated, in base64. The HdrHistogram libraries of all
//! languages can read it.
//!
//! Histograms are written with the library `hdrhistogram`, but they are read by code of this module. The library
//! allocates as much memory as the input demands, panics in debug builds on some inputs, and takes three times as long,
//! which matters when the histograms of many machines are added.

use base64_simd::STANDARD;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use libdeflater::Decompressor;

use crate::latencies::{BUCKETS, DIGITS, LONGEST_NS, Latencies, bucket, lowest};

/// The largest number of latencies that is accepted in a histogram. Sums of smaller numbers cannot overflow.
pub const MOST: u64 = 1 << 44;

/// The first four bytes of the format before and after it is inflated.
const DEFLATED: [u8; 4] = 0x1c84_9314_u32.to_be_bytes();
const INFLATED: [u8; 4] = 0x1c84_9313_u32.to_be_bytes();

/// The number of header bytes before the deflated part.
const OUTER_HEADER: usize = 8;
/// The number of header bytes in the inflated part, before the counts.
const HEADER: usize = 40;

/// The longest latency in histograms of version 1 of the event protocol, which are in microseconds.
const LONGEST_US: u64 = LONGEST_NS / 1000;

/// The maximum number of bytes of an encoded count.
const LONGEST_COUNT: usize = 9;

const CUT_OFF: &str = "is cut off";
const TOO_MANY: &str = "has more latencies than any run can have";

impl Latencies {
    /// Encodes the histogram.
    pub fn encode(&self) -> String {
        let mut packed = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.histogram(), &mut packed)
            .unwrap_or_else(|error| unreachable!("a histogram is written to memory: {error}"));
        STANDARD.encode_to_string(packed)
    }
}

/// Reads encoded histograms. It keeps its buffer, which the next histogram reuses.
pub struct Decoder {
    inflate: Decompressor,
    plain: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        let plain = vec![0; HEADER + BUCKETS * LONGEST_COUNT];
        Self { inflate: Decompressor::new(), plain }
    }
}

impl Decoder {
    /// Adds a histogram from [`Latencies::encode`] to `sum`, and returns the number of its latencies. The message of an
    /// error continues a sentence that begins with "its histogram". After an error some of the latencies may have been
    /// added.
    pub fn add(&mut self, encoded: &[u8], sum: &mut Latencies) -> Result<u64, &'static str> {
        let length = self.inflate(encoded)?;
        let (header, counts) = self.plain[..length].split_at_checked(HEADER).ok_or(CUT_OFF)?;
        let (magic, rest) = header.split_at(INFLATED.len());
        let (counts_length, layout) = rest.split_at(4);
        if magic != INFLATED {
            return Err("is not an HdrHistogram in the V2 format");
        }
        let unit_ns = match layout {
            _ if layout == layout_fields(LONGEST_NS) => 1,
            _ if layout == layout_fields(LONGEST_US) => 1000,
            _ => return Err("does not have three significant digits from 1 us to 1 h"),
        };
        if counts_length != (counts.len() as u32).to_be_bytes() {
            return Err(CUT_OFF);
        }
        add_counts(counts, unit_ns, sum)
    }

    /// Inflates the histogram into `self.plain`, and returns the inflated length.
    fn inflate(&mut self, encoded: &[u8]) -> Result<usize, &'static str> {
        let packed = STANDARD.decode_to_vec(encoded).map_err(|_| "is not in base64")?;
        let (header, deflated) = packed.split_at_checked(OUTER_HEADER).ok_or(CUT_OFF)?;
        if !header.starts_with(&DEFLATED) {
            return Err("is not a deflated HdrHistogram in the V2 format");
        }
        if header[4..] != (deflated.len() as u32).to_be_bytes() {
            return Err(CUT_OFF);
        }
        self.inflate.zlib_decompress(deflated, &mut self.plain).map_err(|_| "cannot be inflated")
    }
}

/// Returns the last fields of the header: the offset of the first bucket, the number of digits, the lowest and the
/// highest value, and a ratio that is not used.
fn layout_fields(longest: u64) -> [u8; 32] {
    let mut layout = [0; 32];
    layout[4..8].copy_from_slice(&u32::from(DIGITS).to_be_bytes());
    layout[8..16].copy_from_slice(&1u64.to_be_bytes());
    layout[16..24].copy_from_slice(&longest.to_be_bytes());
    layout[24..].copy_from_slice(&1f64.to_be_bytes());
    layout
}

/// Adds the counts of the buckets in their order. Each count is a zigzag-encoded number. A negative number stands for
/// that many empty buckets. If the encoded unit is not the nanosecond, the latencies of a bucket are added as the
/// lowest latency of that bucket.
fn add_counts(mut encoded: &[u8], unit_ns: u64, sum: &mut Latencies) -> Result<u64, &'static str> {
    let (mut place, mut total) = (0, 0);
    while !encoded.is_empty() {
        let number = next_number(&mut encoded)?;
        let half = number >> 1;
        if half > MOST {
            return Err(TOO_MANY);
        }
        if number & 1 == 1 {
            place += half as usize + 1;
            continue;
        }
        if half > 0 {
            let known = if unit_ns == 1 || place >= BUCKETS { place } else { bucket(lowest(place) * unit_ns) };
            sum.add_to_bucket(known, half).ok_or("goes beyond 1 h")?;
        }
        total += half;
        place += 1;
    }
    if total > MOST { Err(TOO_MANY) } else { Ok(total) }
}

/// Reads a LEB128 number. A number of nine bytes is rejected, since it is larger than any allowed count.
#[inline]
fn next_number(encoded: &mut &[u8]) -> Result<u64, &'static str> {
    let mut number = 0;
    for (place, byte) in encoded.iter().take(LONGEST_COUNT).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * place);
        if place == LONGEST_COUNT - 1 {
            return Err(TOO_MANY);
        }
        if byte & 0x80 == 0 {
            *encoded = &encoded[place + 1..];
            return Ok(number);
        }
    }
    Err(CUT_OFF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::{Deserializer, V2Serializer};
    use libdeflater::{CompressionLvl, Compressor};
    use proptest::prelude::*;

    fn latencies(of: &[u64]) -> Latencies {
        let mut latencies = Latencies::default();
        of.iter().for_each(|latency| latencies.record(*latency));
        latencies
    }

    fn added(encoded: &[u8]) -> Result<u64, &'static str> {
        Decoder::default().add(encoded, &mut Latencies::default())
    }

    /// Returns the histogram that the library reads from the encoded form.
    fn library(latencies: &Latencies) -> Histogram<u64> {
        let bytes = STANDARD.decode_to_vec(latencies.encode()).unwrap();
        Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap()
    }

    fn plain(histogram: &Histogram<u64>) -> Vec<u8> {
        let mut plain = Vec::new();
        V2Serializer::new().serialize(histogram, &mut plain).unwrap();
        plain
    }

    fn deflate(plain: &[u8]) -> Vec<u8> {
        let mut compressor = Compressor::new(CompressionLvl::fastest());
        let mut deflated = vec![0; OUTER_HEADER + compressor.zlib_compress_bound(plain.len())];
        let (header, rest) = deflated.split_at_mut(OUTER_HEADER);
        let length = compressor.zlib_compress(plain, rest).unwrap();
        header[..4].copy_from_slice(&DEFLATED);
        header[4..].copy_from_slice(&(length as u32).to_be_bytes());
        deflated.truncate(OUTER_HEADER + length);
        deflated
    }

    /// Returns the counts that the library reads from these bytes, by bucket.
    fn library_counts(encoded: &[u8]) -> Option<Vec<(usize, u64)>> {
        let mut whole = plain(&Latencies::default().histogram())[..HEADER].to_vec();
        whole[4..8].copy_from_slice(&(encoded.len() as u32).to_be_bytes());
        whole.extend_from_slice(encoded);
        let read: Histogram<u64> = Deserializer::new().deserialize(&mut whole.as_slice()).ok()?;
        Some(read.iter_recorded().map(|step| (bucket(step.value_iterated_to()), step.count_at_value())).collect())
    }

    fn buckets(latencies: &Latencies) -> Vec<(usize, u64)> {
        latencies.buckets().map(|(ns, count)| (bucket(ns), count)).collect()
    }

    /// Generates encoded counts: valid counts as engines write them, most of them small, and invalid ones.
    fn counts() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![20 => 0..32u8, 4 => 0..0x80u8, 1 => any::<u8>()];
        prop::collection::vec(byte, 0..400)
    }

    #[test]
    fn other_histograms_are_rejected() {
        let whole = latencies(&[1_000_000, 2_000_000]).encode().into_bytes();
        let bytes = STANDARD.decode_to_vec(&whole).unwrap();
        assert_eq!(added(&whole), Ok(2));
        assert_eq!(added(b""), Err("is cut off"));
        assert_eq!(added("ü".as_bytes()), Err("is not in base64"));
        assert_eq!(added(STANDARD.encode_to_string(&bytes[..bytes.len() - 3]).as_bytes()), Err("is cut off"));
        assert_eq!(
            added(STANDARD.encode_to_string(&bytes[1..]).as_bytes()),
            Err("is not a deflated HdrHistogram in the V2 format")
        );
        let mut other = bytes.clone();
        other[12] ^= 0xff;
        assert_eq!(added(STANDARD.encode_to_string(&other).as_bytes()), Err("cannot be inflated"));
        let mut coarse = Histogram::<u64>::new_with_bounds(1, LONGEST_NS, 2).unwrap();
        coarse.saturating_record(7);
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&coarse, &mut bytes).unwrap();
        assert_eq!(
            added(STANDARD.encode_to_string(&bytes).as_bytes()),
            Err("does not have three significant digits from 1 us to 1 h")
        );
    }

    #[test]
    fn a_histogram_in_microseconds_is_read_as_one_in_nanoseconds() {
        let mut of_before = Histogram::<u64>::new_with_bounds(1, LONGEST_US, DIGITS).unwrap();
        for us in [0, 1, 25, 2_047, 4_711, 3_599_000_000] {
            of_before.record_n(us, 2).unwrap();
        }
        let mut sum = latencies(&[25_317]);
        assert_eq!(
            Decoder::default().add(STANDARD.encode_to_string(deflate(&plain(&of_before))).as_bytes(), &mut sum),
            Ok(12)
        );
        let us: Vec<_> = sum.buckets().map(|(ns, count)| (ns as f64 / 1000.0, count)).collect();
        let expected = [(0.0, 2), (1.0, 2), (25.0, 2), (25.317, 1), (2_047.0, 2), (4_711.0, 2), (3_599_000_000.0, 2)];
        assert_eq!(us.len(), expected.len());
        for ((us, count), (exact, expected)) in us.into_iter().zip(expected) {
            assert!((us - exact).abs() <= exact / 1000.0 && count == expected, "{us} us {count} times");
        }
    }

    #[test]
    fn no_latencies_are_a_histogram_as_well() {
        assert_eq!(added(Latencies::default().encode().as_bytes()), Ok(0));
        assert_eq!(library(&Latencies::default()), Latencies::default().histogram());
    }

    #[test]
    fn counts_are_read_to_their_last_byte() {
        let mut sum = Latencies::default();
        // Three empty buckets; a count of 1; a count of two bytes; a number that is cut off at the end of the bytes.
        assert_eq!(add_counts(&[5, 2, 0x80, 0x02], 1, &mut sum), Ok(129));
        assert_eq!(buckets(&sum), [(3, 1), (4, 128)]);
        assert_eq!(add_counts(&[2, 0x80], 1, &mut sum), Err("is cut off"));
        assert_eq!(add_counts(&[0xff; 9], 1, &mut sum), Err(TOO_MANY));
        assert_eq!(add_counts(&[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], 1, &mut sum), Err(TOO_MANY));
        assert_eq!(add_counts(&[0xff, 0xff, 0x07, 2], 1, &mut sum), Err("goes beyond 1 h"));
    }

    #[test]
    fn the_last_bucket_is_the_end_however_many_there_are() {
        let mut sum = Latencies::default();
        sum.add_to_bucket(BUCKETS - 1, 1).unwrap();
        let mut encoded = plain(&sum.histogram())[HEADER..].to_vec();
        encoded.extend_from_slice(&[0; 16]);
        assert_eq!((add_counts(&encoded, 1, &mut sum), sum.total()), (Ok(1), 2));
        encoded.extend_from_slice(&[2; 16]);
        assert_eq!(add_counts(&encoded, 1, &mut sum), Err("goes beyond 1 h"));
        assert_eq!(buckets(&sum).last().map(|(bucket, _)| *bucket), Some(BUCKETS - 1));
    }

    proptest! {
        #[test]
        fn every_count_is_written_to_its_bucket(
            counts in prop::collection::btree_map(0..BUCKETS, prop_oneof![1..100u64, 1..1u64 << 40], 0..40),
        ) {
            let mut ours = Latencies::default();
            counts.iter().for_each(|(bucket, count)| ours.add_to_bucket(*bucket, *count).unwrap());
            let read = library(&ours);
            let read = read.iter_recorded().map(|step| (bucket(step.value_iterated_to()), step.count_at_value()));
            prop_assert!(read.eq(counts));
        }

        /// Checks that encoded counts of any size are added correctly, both to an empty histogram and to one with
        /// latencies.
        #[test]
        fn what_the_library_reads_is_added_and_nothing_else(
            before in counts(), encoded in counts(), cut in any::<prop::sample::Index>(),
        ) {
            let mut sum = Latencies::default();
            if add_counts(&before, 1, &mut sum).is_err() {
                sum = Latencies::default();
            }
            let mut whole: std::collections::BTreeMap<_, _> = buckets(&sum).into_iter().collect();
            let added = add_counts(&encoded, 1, &mut sum);
            let expected = library_counts(&encoded)
                .filter(|all| all.iter().all(|(bucket, count)| *bucket < BUCKETS && *count <= MOST));
            match (added, expected) {
                (Ok(added), Some(expected)) => {
                    prop_assert_eq!(added, expected.iter().map(|(_, count)| count).sum::<u64>());
                    expected.iter().for_each(|(bucket, count)| *whole.entry(*bucket).or_default() += count);
                    prop_assert_eq!(sum.total(), whole.values().sum::<u64>());
                    prop_assert_eq!(buckets(&sum), whole.into_iter().collect::<Vec<_>>());
                }
                // The library rejects empty buckets after the last bucket.
                (Ok(added), None) => prop_assert!(added <= MOST),
                (Err(problem), Some(_)) => prop_assert_eq!(problem, TOO_MANY),
                (Err(_), None) => {}
            }
            let _ = add_counts(&encoded[..cut.index(encoded.len() + 1)], 1, &mut Latencies::default());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn parts_add_up_to_the_whole(
            parts in prop::collection::vec(
                prop::collection::vec(prop_oneof![0..20_000_000u64, 0..2 * LONGEST_NS], 0..60), 1..5,
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
            prop_assert_eq!((sum.percentiles(), sum.total()), (None, 0));
            sum.unpack(packed);
            prop_assert_eq!((sum.encode(), sum.total()), (whole.encode(), whole.total()));
        }

        #[test]
        fn any_bytes_are_read_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = added(&bytes);
            let _ = added(STANDARD.encode_to_string(deflate(&bytes)).as_bytes());
        }

        #[test]
        fn a_harmed_histogram_is_rejected_or_has_what_the_library_reads(
            of in prop::collection::vec(0..20_000_000u64, 1..200),
            harm in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            inside in any::<bool>(),
        ) {
            let plain = plain(&latencies(&of).histogram());
            let mut bytes = if inside { plain } else { deflate(&plain) };
            let length = bytes.len();
            harm.iter().for_each(|(place, byte)| bytes[place.index(length)] = *byte);
            let packed = if inside { deflate(&bytes) } else { bytes };
            // The library is not asked about histograms that this code rejects, since it allocates as much memory as
            // the input demands.
            if let Ok(count) = added(STANDARD.encode_to_string(&packed).as_bytes()) {
                // The library rejects empty buckets after the last bucket.
                let read = Deserializer::new().deserialize::<u64, _>(&mut packed.as_slice());
                prop_assert!(read.is_err() || read.is_ok_and(|read| read.len() == count));
            }
        }
    }
}
