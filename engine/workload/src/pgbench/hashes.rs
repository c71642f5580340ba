//! pgbench's hash functions of integers.

/// FNV-1a over the eight bytes of `value`, the lowest first (source: <http://www.isthe.com/chongo/tech/comp/fnv/>).
pub fn fnv1a(value: i64, seed: i64) -> i64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let bytes = value.to_le_bytes();
    bytes.iter().fold(OFFSET_BASIS ^ seed as u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME)) as i64
}

/// MurmurHash2 (64 bits) of the eight bytes of `value` (source: Austin Appleby, <https://github.com/aappleby/smhasher>).
pub fn murmur2(value: i64, seed: i64) -> i64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    const LENGTH: u64 = 8;
    const ROTATION: u32 = 47;
    let shaken = |value: u64| value ^ value >> ROTATION;
    let key = shaken((value as u64).wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    let hash = seed as u64 ^ LENGTH.wrapping_mul(MULTIPLIER) ^ key;
    shaken(shaken(hash.wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are pgbench 18's.
    #[test]
    fn hashes_are_those_of_pgbench() {
        assert_eq!(fnv1a(10, 5432), -7793829335365542153);
        assert_eq!(murmur2(10, 5432), -5817877081768721676);
        assert_eq!(murmur2(-1, 0), 4219408603045787357);
    }
}
