//! Random values that are not drawn from a range: unique numbers and strings.

use std::sync::atomic::{AtomicU32, Ordering};

use ground::random::Random;
use ground::shard::Shard;

/// The greatest prime below 2^32 whose remainder modulo 4 is 3.
const PRIME: u32 = 4_294_967_291;

/// Draws each 32-bit number exactly once. The numbers form a permutation, through which all threads proceed together
/// (source: Jeff Preshing, "How to Generate a Sequence of Unique Random Integers", 2012). If a run has n engines, each
/// engine uses every n-th number of the same permutation.
#[derive(Debug)]
pub struct Unique {
    next: AtomicU32,
    offset: u32,
    flips: u32,
    /// The step from one index to the next, which is the number of engines of the run.
    step: u32,
}

impl Unique {
    pub fn new(random: &mut Random) -> Self {
        let mut word = || random.next_u64() as u32;
        Self { next: AtomicU32::new(word()), offset: word(), flips: word(), step: 1 }
    }

    /// Returns the same permutation, from which only the numbers of one engine are drawn. All engines of the run must
    /// have the same seed.
    pub fn of_shard(self, shard: Shard) -> Self {
        let next = self.next.into_inner().wrapping_add(shard.index as u32);
        Self { next: AtomicU32::new(next), step: shard.of as u32, ..self }
    }

    pub fn draw(&self) -> u32 {
        let index = self.next.fetch_add(self.step, Ordering::Relaxed);
        permute(permute(index).wrapping_add(self.offset) ^ self.flips)
    }
}

/// A permutation of the numbers below [`PRIME`]: it maps a number to its quadratic residue or, in the upper half, to
/// the negative of that residue. Higher numbers map to themselves.
fn permute(number: u32) -> u32 {
    if number >= PRIME {
        return number;
    }
    let residue = (u64::from(number) * u64::from(number) % u64::from(PRIME)) as u32;
    if number <= PRIME / 2 { residue } else { PRIME - residue }
}

/// The length of a group of digits in the columns `c` and `pad`.
const GROUP: usize = 11;

/// The length of a group of digits with the dash behind it.
const GROUP_AND_DASH: usize = GROUP + 1;

/// Appends `template` with a random digit in place of each `#` and a random letter in place of each `@`.
pub fn string(random: &mut Random, template: &[u8], out: &mut Vec<u8>) {
    out.extend(template.iter().map(|byte| match byte {
        b'#' => random.range(i64::from(b'0'), i64::from(b'9')) as u8,
        b'@' => random.range(i64::from(b'a'), i64::from(b'z')) as u8,
        other => *other,
    }));
}

/// Appends a string of `min` to `max` characters, each from `0` to `z` in ASCII order. If `min` is above `max`, it
/// counts as 1. If `max` is 0, nothing is appended.
pub fn varstring(random: &mut Random, min: u32, max: u32, out: &mut Vec<u8>) {
    if max == 0 {
        return;
    }
    let min = if min > max { 1 } else { min };
    for _ in 0..random.range(i64::from(min), i64::from(max)) {
        out.push(random.range(i64::from(b'0'), i64::from(b'z')) as u8);
    }
}

/// Fills `out` with groups of eleven random digits, and a dash between groups.
#[inline]
pub fn fill_groups(random: &mut Random, out: &mut [u8]) {
    for group in out.chunks_mut(GROUP_AND_DASH) {
        // The 64-bit word is taken as a fraction of 2^64. Eleven decimal digits use about 37 of its bits.
        let mut word = random.next_u64();
        let mut below = |count: u64| {
            let product = u128::from(word) * u128::from(count);
            word = product as u64;
            (product >> 64) as u8
        };
        let (digits, dash) = group.split_at_mut(group.len().min(GROUP));
        let mut pairs = digits.chunks_exact_mut(2);
        for pair in &mut pairs {
            let number = below(100);
            pair[0] = b'0' + number / 10;
            pair[1] = b'0' + number % 10;
        }
        pairs.into_remainder().iter_mut().for_each(|digit| *digit = b'0' + below(10));
        dash.fill(b'-');
    }
}
