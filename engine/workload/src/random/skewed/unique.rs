//! Numbers that are drawn once only.

use std::sync::atomic::{AtomicU32, Ordering};

use ground::random::Random;
use ground::shard::Shard;

/// The greatest prime below 2^32 that is 3 modulo 4.
const PRIME: u32 = 4_294_967_291;

/// A permutation of the numbers of 32 bits, walked through by all threads together (method: Jeff Preshing, "How to
/// Generate a Sequence of Unique Random Integers", 2012). Several engines take turns on the walk.
#[derive(Debug)]
pub struct Unique {
    next: AtomicU32,
    offset: u32,
    flips: u32,
    /// To the next number that is this engine's.
    step: u32,
}

impl Unique {
    pub fn new(random: &mut Random) -> Self {
        let mut word = || random.next_u64() as u32;
        Self { next: AtomicU32::new(word()), offset: word(), flips: word(), step: 1 }
    }

    /// The part of one of several engines, which have the same walk.
    pub fn of_shard(self, shard: Shard) -> Self {
        let next = self.next.into_inner().wrapping_add(shard.index as u32);
        Self { next: AtomicU32::new(next), step: shard.of as u32, ..self }
    }

    pub fn draw(&self) -> u32 {
        let index = self.next.fetch_add(self.step, Ordering::Relaxed);
        permute(permute(index).wrapping_add(self.offset) ^ self.flips)
    }
}

/// The quadratic residue, of the upper half its negative: each number once. The few beyond the prime stay.
fn permute(number: u32) -> u32 {
    if number >= PRIME {
        return number;
    }
    let residue = (u64::from(number) * u64::from(number) % u64::from(PRIME)) as u32;
    if number <= PRIME / 2 { residue } else { PRIME - residue }
}
