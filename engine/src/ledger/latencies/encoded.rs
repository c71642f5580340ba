//! Encoded histograms are added up as they are read, without a histogram of each: those of a large fleet are many.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use libdeflater::Decompressor;

use super::{DIGITS, LONGEST_US, Latencies, bucket};

/// The first four bytes of HdrHistogram's V2 format, deflated and as it is inside.
const DEFLATED: u32 = 0x1c84_9314;
const PLAIN: u32 = 0x1c84_9313;

/// Bytes before the deflated part, and before the counts in it.
const OUTER_HEADER: usize = 8;
const HEADER: usize = 40;

const BUCKETS: usize = bucket(LONGEST_US) + 1;

/// A count takes at most so many bytes.
const LONGEST_COUNT: usize = 9;

/// More latencies than this are no count but a mistake; sums of less cannot overflow.
pub const MOST: u64 = 1 << 44;

const TOO_MANY: &str = "has more latencies than there can be";

/// Reads encoded histograms; its buffers are used again and again.
pub struct Decoder {
    inflate: Decompressor,
    packed: Vec<u8>,
    plain: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        let plain = vec![0; HEADER + BUCKETS * LONGEST_COUNT];
        Self { inflate: Decompressor::new(), packed: Vec::new(), plain }
    }
}

impl Decoder {
    /// Adds what [`Latencies::encode`] wrote to a histogram; how many latencies it were. The error goes on from "its
    /// histogram", and some of the latencies may have been added.
    pub fn add(&mut self, encoded: &[u8], to: &mut Latencies) -> Result<u64, &'static str> {
        let length = self.unpack(encoded)?;
        let (header, counts) = self.plain[..length].split_at_checked(HEADER).ok_or("is cut off")?;
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
            return Err("is cut off");
        }
        let added = add_counts(counts, to)?;
        to.total += added;
        Ok(added)
    }

    /// The length of the plain form, which is made.
    fn unpack(&mut self, encoded: &[u8]) -> Result<usize, &'static str> {
        let most = base64::decoded_len_estimate(encoded.len());
        if self.packed.len() < most {
            self.packed.resize(most, 0);
        }
        let length = STANDARD.decode_slice(encoded, &mut self.packed).map_err(|_| "is not in base64")?;
        let (header, deflated) = self.packed[..length].split_at_checked(OUTER_HEADER).ok_or("is cut off")?;
        if !header.starts_with(&DEFLATED.to_be_bytes()) {
            return Err("is no deflated HdrHistogram in the V2 format");
        }
        if header[4..] != (deflated.len() as u32).to_be_bytes() {
            return Err("is cut off");
        }
        self.inflate.zlib_decompress(deflated, &mut self.plain).map_err(|_| "cannot be inflated")
    }
}

impl Latencies {
    /// Its counts as the format has them, in some thousand bytes; nothing is left.
    pub fn pack(&mut self) -> Vec<u8> {
        let Self { counts, .. } = std::mem::take(self);
        let (mut packed, mut empty) = (Vec::new(), 0);
        for count in counts {
            if count == 0 {
                empty += 1;
                continue;
            }
            if empty > 0 {
                write_number(2 * empty - 1, &mut packed);
            }
            empty = 0;
            write_number(2 * count, &mut packed);
        }
        packed
    }

    /// Adds what was packed.
    pub fn unpack(&mut self, packed: &[u8]) {
        match add_counts(packed, self) {
            Ok(added) => self.total += added,
            Err(problem) => unreachable!("a packed histogram {problem}"),
        }
    }

    /// Adds to a bucket that there is not yet.
    #[cold]
    fn add_beyond(&mut self, bucket: usize, count: u64) -> Result<(), &'static str> {
        if bucket >= BUCKETS {
            return Err("goes beyond 1 h");
        }
        self.grow(bucket + 1);
        self.counts[bucket] += count;
        Ok(())
    }
}

fn write_number(mut number: u64, to: &mut Vec<u8>) {
    for _ in 0..LONGEST_COUNT - 1 {
        if number < 0x80 {
            break;
        }
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Adds counts as the format has them: LEB128 of at most nine bytes, zigzag; a negative one is that of empty buckets.
fn add_counts(encoded: &[u8], to: &mut Latencies) -> Result<u64, &'static str> {
    let (mut at, mut bucket, mut total) = (0, 0, 0);
    while let Some(&byte) = encoded.get(at) {
        at += 1;
        let mut number = u64::from(byte);
        if byte & 0x80 != 0 {
            let (rest, length) = more_of(&encoded[at..]).ok_or("is cut off")?;
            number = number & 0x7f | rest << 7;
            at += length;
            if number > 2 * MOST {
                return Err(TOO_MANY);
            }
        }
        // Without a branch, which would be guessed wrong time and again: all bits of one are set, and none of the other.
        let is_empty = 0u64.wrapping_sub(number & 1);
        let (count, empty) = (number >> 1 & !is_empty, number >> 1 & is_empty);
        match to.counts.get_mut(bucket) {
            Some(mine) => *mine += count,
            None if count > 0 => to.add_beyond(bucket, count)?,
            None => {}
        }
        total += count;
        bucket += 1 + empty as usize;
    }
    if total <= MOST { Ok(total) } else { Err(TOO_MANY) }
}

/// What follows the first seven bits of a number, and in how many bytes; `None` if it is cut off.
#[inline]
fn more_of(encoded: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0;
    for (place, byte) in encoded.iter().take(LONGEST_COUNT - 1).enumerate() {
        if place == LONGEST_COUNT - 2 {
            return Some((number | u64::from(*byte) << (7 * place), place + 1));
        }
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some((number, place + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let bytes = STANDARD.decode(&whole).unwrap();
        assert_eq!(added(&whole), Ok(2));
        assert_eq!(added(b""), Err("is cut off"));
        assert_eq!(added("ü".as_bytes()), Err("is not in base64"));
        assert_eq!(added(STANDARD.encode(&bytes[..bytes.len() - 3]).as_bytes()), Err("is cut off"));
        assert_eq!(added(STANDARD.encode(&bytes[1..]).as_bytes()), Err("is no deflated HdrHistogram in the V2 format"));
        let mut other = bytes.clone();
        other[12] ^= 0xff;
        assert_eq!(added(STANDARD.encode(&other).as_bytes()), Err("cannot be inflated"));
        let mut coarse: hdrhistogram::Histogram<u64> =
            hdrhistogram::Histogram::new_with_bounds(1, LONGEST_US, 2).unwrap();
        coarse.saturating_record(7);
        let mut bytes = Vec::new();
        use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
        V2DeflateSerializer::new().serialize(&coarse, &mut bytes).unwrap();
        assert_eq!(added(STANDARD.encode(&bytes).as_bytes()), Err("has not three digits from 1 us to 1 h"));
    }

    #[test]
    fn counts_are_read_to_their_last_byte() {
        let mut to = Latencies::default();
        // 3 empty buckets; 1; a count of two bytes; a number that goes on beyond the end
        assert_eq!(add_counts(&[5, 2, 0x80, 0x02], &mut to), Ok(129));
        assert_eq!(to.buckets().collect::<Vec<_>>(), [(3, 1), (4, 128)]);
        assert_eq!(add_counts(&[2, 0x80], &mut to), Err("is cut off"));
        assert_eq!(add_counts(&[0xff; 9], &mut to), Err(TOO_MANY));
        assert_eq!(add_counts(&[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], &mut to), Err(TOO_MANY));
        assert_eq!(add_counts(&[0xff, 0xff, 0x03, 2], &mut to), Err("goes beyond 1 h"));
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
            prop_assert_eq!(sum.percentiles(), None);
            sum.unpack(&packed);
            prop_assert_eq!((sum.encode(), sum.total), (whole.encode(), whole.total));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = added(&bytes);
            let _ = add_counts(&bytes, &mut Latencies::default());
        }
    }
}
