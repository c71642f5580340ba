//! The last names of customers (clause 4.3.2.3 of TPC-C).

const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// The number of different last names.
pub const LAST_NAMES: i64 = 1000;

/// Appends the last name with the given number, which must be below 1000. It has a syllable for each of the three
/// digits.
pub fn write_last_name(number: i64, out: &mut Vec<u8>) {
    for place in [100, 10, 1] {
        out.extend_from_slice(SYLLABLES[(number / place % 10) as usize].as_bytes());
    }
}
