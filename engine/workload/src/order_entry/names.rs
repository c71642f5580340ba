//! Customers' last names: clause 4.3.2.3.

const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// The number of last names.
pub const LAST_NAMES: i64 = 1000;

/// Appends the last name of this number below 1000: a syllable for each of its three digits.
pub fn write_last_name(number: i64, out: &mut Vec<u8>) {
    for place in [100, 10, 1] {
        out.extend_from_slice(SYLLABLES[(number / place % 10) as usize].as_bytes());
    }
}
