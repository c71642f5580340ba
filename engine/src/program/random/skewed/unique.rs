//! Numbers that are drawn once only.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::program::random::Random;

/// The greatest prime below 2^32 that is 3 modulo 4.
const PRIME: u32 = 4_294_967_291;

/// A permutation of the numbers of 32 bits, walked through by all threads together (method: Jeff Preshing, "How to
/// Generate a Sequence of Unique Random Integers", 2012).
#[derive(Debug)]
pub struct Unique {
    next: AtomicU32,
    offset: u32,
    flips: u32,
}

impl Unique {
    pub fn new(random: &mut Random) -> Self {
        let mut word = || random.next_u64() as u32;
        Self { next: AtomicU32::new(word()), offset: word(), flips: word() }
    }

    pub fn draw(&self) -> u32 {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
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
