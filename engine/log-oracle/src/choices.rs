//! Random decisions that are drawn from the bytes of a fuzzer or of a property test.

/// The bytes that have not been used yet. When they are used up, every drawn number is 0.
pub struct Choices<'a> {
    bytes: &'a [u8],
}

impl<'a> Choices<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Draws a number below `limit`, which must be above 0.
    pub fn below(&mut self, limit: usize) -> usize {
        let width = if limit > 256 { 2 } else { 1 };
        let (taken, rest) = self.bytes.split_at(width.min(self.bytes.len()));
        self.bytes = rest;
        taken.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)) % limit
    }

    /// Returns true with a probability of one in `rarity`.
    pub fn happens(&mut self, rarity: usize) -> bool {
        self.below(rarity) + 1 == rarity
    }

    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}
