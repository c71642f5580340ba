//! Which partition PostgreSQL puts an account into when partitions go by hash.

/// The seed of PostgreSQL's hashes for partitioning (`HASH_PARTITION_SEED` in `partitioning/partbounds.h`).
const SEED: u64 = 0x7A5B_2236_7996_DCFD;

/// What `hash_combine64` adds to a column's hash.
const COMBINE: u64 = 0x49a0_f4dd_15e5_a8e3;

/// The remainder, modulo `modulus`, of the hash of a row whose key is the one integer column `key`, `int` or `bigint`:
/// `hashint4extended` and `hashint8extended` agree on what both can hold.
pub fn remainder(key: u64, modulus: u64) -> u64 {
    let low = key as u32 ^ (key >> 32) as u32;
    hash_u32(low, SEED).wrapping_add(COMBINE) % modulus
}

/// `hash_bytes_uint32_extended` of PostgreSQL: Bob Jenkins's lookup3 of one word.
fn hash_u32(key: u32, seed: u64) -> u64 {
    let start = 0x9e37_79b9_u32.wrapping_add(4).wrapping_add(3_923_095);
    let (mut a, mut b, mut c) = (start.wrapping_add((seed >> 32) as u32), start.wrapping_add(seed as u32), start);
    for (rotation, position) in [4, 6, 8, 16, 19, 4].into_iter().zip([0, 1, 2].into_iter().cycle()) {
        let (x, y, z) = match position {
            0 => (&mut a, &mut c, &mut b),
            1 => (&mut b, &mut a, &mut c),
            _ => (&mut c, &mut b, &mut a),
        };
        *x = x.wrapping_sub(*y) ^ y.rotate_left(rotation);
        *y = y.wrapping_add(*z);
    }
    a = a.wrapping_add(key);
    for (rotation, position) in [14, 11, 25, 16, 4, 14, 24].into_iter().zip([2, 0, 1].into_iter().cycle()) {
        let (x, y) = match position {
            2 => (&mut c, b),
            0 => (&mut a, c),
            _ => (&mut b, a),
        };
        *x = (*x ^ y).wrapping_sub(y.rotate_left(rotation));
    }
    u64::from(b) << 32 | u64::from(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `select hashint8extended(key, 8816678312871386365)` of PostgreSQL 18.
    #[test]
    fn hashes_are_the_servers() {
        let known: [(u64, i64); 6] = [
            (0, -4403592609991167795),
            (1, 5968994663651403477),
            (2, -6784076462669891433),
            (100_000, -4261177139570981594),
            (2_147_483_647, -6050265599104649060),
            (5_000_000_000, -2799505259769899283),
        ];
        for (key, hash) in known {
            let expected = (hash as u64).wrapping_add(COMBINE) % 1_000_003;
            assert_eq!(remainder(key, 1_000_003), expected, "{key}");
        }
    }
}
