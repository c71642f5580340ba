//! Counts of buckets as HdrHistogram's V2 format has them: LEB128 of at most nine bytes, zigzag; a negative number is that
//! of empty buckets.

use super::{BUCKETS, Latencies};

/// A count takes at most so many bytes.
pub const LONGEST: usize = 9;

/// More latencies than this are no count but a mistake; sums of less cannot overflow.
pub const MOST: u64 = 1 << 44;

pub const TOO_MANY: &str = "has more latencies than there can be";
pub const CUT_OFF: &str = "is cut off";

/// So many numbers are added together, and the buckets that they reach if they have a byte each.
const BATCH: usize = 16;
const WINDOW: usize = 64 * BATCH;

/// The highest bit of each byte: a number with it has more than one.
const HIGHEST: u128 = u128::from_ne_bytes([0x80; BATCH]);

/// By numbers of one byte: how many latencies are added, and to which bucket from here the next number belongs.
const ADDED: [u8; 1 << u8::BITS] = by_number(true);
const STEPS: [u8; 1 << u8::BITS] = by_number(false);

const fn by_number(added: bool) -> [u8; 1 << u8::BITS] {
    let mut by_number = [0; 1 << u8::BITS];
    let mut number = 0;
    while number < by_number.len() {
        let half = number as u8 >> 1;
        let is_count = number & 1 == 0;
        by_number[number] = match (added, is_count) {
            (true, true) => half,
            (true, false) => 0,
            (false, true) => 1,
            (false, false) => half + 1,
        };
        number += 1;
    }
    by_number
}

/// Writes counts up to the last bucket that is not empty, to the byte as HdrHistogram's libraries do.
pub fn write(counts: &[u64], to: &mut Vec<u8>) {
    let buckets = counts.iter().rposition(|count| *count > 0).map_or(1, |last| last + 1);
    let mut empty = 0;
    for count in counts.iter().take(buckets).copied() {
        if count == 0 {
            empty += 1;
            continue;
        }
        write_empty(empty, to);
        empty = 0;
        write_number(count << 1, to);
    }
    write_empty(empty.max(u64::from(counts.is_empty())), to);
}

fn write_empty(buckets: u64, to: &mut Vec<u8>) {
    match buckets {
        0 => {}
        // Of one there is the count.
        1 => to.push(0),
        _ => write_number(2 * buckets - 1, to),
    }
}

fn write_number(mut number: u64, to: &mut Vec<u8>) {
    for _ in 0..LONGEST - 1 {
        if number < 0x80 {
            break;
        }
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Adds what was written; how many latencies it were. The error goes on from "its histogram", and some of them may have
/// been added.
pub fn add(encoded: &[u8], to: &mut Latencies) -> Result<u64, &'static str> {
    let mut adding = Adding { rest: encoded, bucket: 0, total: 0 };
    while !adding.rest.is_empty() {
        let reached = BUCKETS.min(adding.bucket + WINDOW);
        if adding.rest.len() >= BATCH && to.counts.len() < reached {
            to.grow(reached);
        }
        let within = to.counts.len().min(BUCKETS);
        while adding.add_batch(&mut to.counts[..within]) {}
        for _ in 0..BATCH {
            if !adding.add_one(to)? {
                break;
            }
        }
    }
    if adding.total > MOST {
        return Err(TOO_MANY);
    }
    to.total += adding.total;
    Ok(adding.total)
}

/// How far adding has come.
struct Adding<'a> {
    rest: &'a [u8],
    bucket: usize,
    total: u64,
}

impl Adding<'_> {
    /// Adds the next numbers, if they have a byte each and all buckets that they could reach are there: without a branch
    /// that could be guessed wrong.
    #[inline]
    fn add_batch(&mut self, counts: &mut [u64]) -> bool {
        let Some((batch, rest)) = self.rest.split_first_chunk::<BATCH>() else { return false };
        let Some((window, _)) = counts.get_mut(self.bucket..).and_then(<[u64]>::split_first_chunk_mut::<WINDOW>) else {
            return false;
        };
        if u128::from_ne_bytes(*batch) & HIGHEST != 0 {
            return false;
        }
        let mut place = 0;
        for number in batch.map(usize::from) {
            let added = u64::from(ADDED[number]);
            window[place % WINDOW] += added;
            self.total += added;
            place += usize::from(STEPS[number]);
        }
        self.rest = rest;
        self.bucket += place;
        true
    }

    /// Adds the next number, if there is one.
    fn add_one(&mut self, to: &mut Latencies) -> Result<bool, &'static str> {
        let Some((&byte, rest)) = self.rest.split_first() else { return Ok(false) };
        self.rest = rest;
        let mut number = u64::from(byte);
        if byte & 0x80 != 0 {
            let (higher, length) = higher_bits(rest).ok_or(CUT_OFF)?;
            number = number & 0x7f | higher << 7;
            self.rest = &rest[length..];
            if number > 2 * MOST {
                return Err(TOO_MANY);
            }
        }
        if number & 1 == 1 {
            self.bucket += (number >> 1) as usize + 1;
            return Ok(true);
        }
        let count = number >> 1;
        if count > 0 {
            to.add_to(self.bucket, count)?;
        }
        self.total += count;
        self.bucket += 1;
        Ok(true)
    }
}

impl Latencies {
    fn add_to(&mut self, bucket: usize, count: u64) -> Result<(), &'static str> {
        if bucket >= BUCKETS {
            return Err("goes beyond 1 h");
        }
        if bucket >= self.counts.len() {
            self.grow(bucket + 1);
        }
        self.counts[bucket] += count;
        Ok(())
    }
}

/// What follows the first seven bits of a number, and in how many bytes; `None` if it is cut off.
fn higher_bits(encoded: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0;
    for (place, byte) in encoded.iter().take(LONGEST - 1).enumerate() {
        if place == LONGEST - 2 {
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
    use super::super::{DIGITS, LONGEST_US, bucket, lowest};
    use super::*;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
    use proptest::prelude::*;

    /// Bytes of the library's plain form before the counts.
    const HEADER: usize = 40;

    fn nothing() -> Histogram<u64> {
        Histogram::new_with_bounds(1, LONGEST_US, DIGITS).unwrap()
    }

    fn plain(histogram: &Histogram<u64>) -> Vec<u8> {
        let mut plain = Vec::new();
        V2Serializer::new().serialize(histogram, &mut plain).unwrap();
        plain
    }

    /// What the library reads from these counts, by bucket.
    fn library(encoded: &[u8]) -> Option<Vec<(usize, u64)>> {
        let mut whole = plain(&nothing())[..HEADER].to_vec();
        whole[4..8].copy_from_slice(&(encoded.len() as u32).to_be_bytes());
        whole.extend_from_slice(encoded);
        let read: Histogram<u64> = Deserializer::new().deserialize(&mut whole.as_slice()).ok()?;
        Some(read.iter_recorded().map(|step| (bucket(step.value_iterated_to()), step.count_at_value())).collect())
    }

    fn buckets(latencies: &Latencies) -> Vec<(u64, u64)> {
        latencies.buckets().collect()
    }

    /// Counts as engines have them, most of them small, and what no engine writes.
    fn counts() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![20 => 0..32u8, 4 => 0..0x80u8, 1 => any::<u8>()];
        prop::collection::vec(byte, 0..400)
    }

    #[test]
    fn counts_are_read_to_their_last_byte() {
        let mut to = Latencies::default();
        // 3 empty buckets; 1; a count of two bytes; a number that goes on beyond the end
        assert_eq!(add(&[5, 2, 0x80, 0x02], &mut to), Ok(129));
        assert_eq!((buckets(&to), to.total), (vec![(3, 1), (4, 128)], 129));
        assert_eq!(add(&[2, 0x80], &mut to), Err("is cut off"));
        assert_eq!(add(&[0xff; 9], &mut to), Err(TOO_MANY));
        assert_eq!(add(&[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], &mut to), Err(TOO_MANY));
        assert_eq!(add(&[0xff, 0xff, 0x03, 2], &mut to), Err("goes beyond 1 h"));
    }

    #[test]
    fn the_last_bucket_is_the_end_however_many_there_are() {
        let mut to = Latencies::default();
        to.record(u64::MAX - 1000);
        let mut encoded = Vec::new();
        write(&to.counts, &mut encoded);
        encoded.extend_from_slice(&[0; 16]);
        assert_eq!((add(&encoded, &mut to), to.total), (Ok(1), 2));
        encoded.extend_from_slice(&[2; 16]);
        assert_eq!(add(&encoded, &mut to), Err("goes beyond 1 h"));
        assert_eq!(buckets(&to).last().map(|(latency, _)| bucket(*latency)), Some(BUCKETS - 1));
    }

    proptest! {
        #[test]
        fn written_counts_are_the_librarys_to_the_byte(
            counts in prop::collection::vec((0..BUCKETS, prop_oneof![1..100u64, 1..1u64 << 40]), 0..40),
        ) {
            let (mut ours, mut theirs) = (vec![0; BUCKETS], nothing());
            for (bucket, count) in counts {
                ours[bucket] += count;
                theirs.record_n(lowest(bucket), count).unwrap();
            }
            let mut written = Vec::new();
            write(&ours, &mut written);
            prop_assert_eq!(&written, &plain(&theirs)[HEADER..]);
        }

        /// To a sum in which there is already something, whatever its size.
        #[test]
        fn what_the_library_reads_is_added_and_nothing_else(
            before in counts(), encoded in counts(), cut in any::<prop::sample::Index>(),
        ) {
            let mut sum = Latencies::default();
            if add(&before, &mut sum).is_err() {
                sum = Latencies::default();
            }
            let (had, total) = (sum.clone(), sum.total);
            let added = add(&encoded, &mut sum);
            let expected = library(&encoded)
                .filter(|all| all.iter().all(|(bucket, count)| *bucket < BUCKETS && *count <= MOST));
            match (added, expected) {
                (Ok(added), Some(expected)) => {
                    prop_assert_eq!(added, expected.iter().map(|(_, count)| count).sum::<u64>());
                    prop_assert_eq!(sum.total, total + added);
                    let mut whole = had.counts;
                    whole.resize(sum.counts.len(), 0);
                    expected.iter().for_each(|(bucket, count)| whole[*bucket] += count);
                    prop_assert_eq!(sum.counts, whole);
                }
                // The library minds empty buckets beyond the last.
                (Ok(added), None) => prop_assert!(added <= MOST),
                (Err(problem), Some(_)) => prop_assert_eq!(problem, TOO_MANY),
                (Err(_), None) => {}
            }
            let _ = add(&encoded[..cut.index(encoded.len() + 1)], &mut Latencies::default());
        }
    }
}
