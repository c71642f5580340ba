//! Random texts as clause 4.3.2 of TPC-C defines them.

use ground::random::Random;

const SYMBOLS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const FIRST_DIGIT: u64 = 52;

/// The word that the data column contains in a tenth of the rows of `item` and `stock`.
const ORIGINAL: &[u8] = b"ORIGINAL";

/// Appends from `min` to `max` letters and digits.
pub fn write_letters(random: &mut Random, min: i64, max: i64, out: &mut Vec<u8>) {
    let length = random.range(min, max) as usize;
    write_symbols(random, length, 0, SYMBOLS.len() as u64, out);
}

/// Appends `length` random digits.
pub fn write_digits(random: &mut Random, length: usize, out: &mut Vec<u8>) {
    write_symbols(random, length, FIRST_DIGIT, 10, out);
}

/// Appends four random digits, then `11111` (clause 4.3.2.7).
pub fn write_zip(random: &mut Random, out: &mut Vec<u8>) {
    write_digits(random, 4, out);
    out.extend_from_slice(b"11111");
}

/// Appends the contents of the data column of `item` or `stock`: 26 to 50 letters and digits, which contain
/// [`ORIGINAL`] in a tenth of the cases.
pub fn write_data(random: &mut Random, out: &mut Vec<u8>) {
    let start = out.len();
    write_letters(random, 26, 50, out);
    if random.range(1, 10) == 1 {
        let place = start + random.range(0, (out.len() - start - ORIGINAL.len()) as i64) as usize;
        out[place..place + ORIGINAL.len()].copy_from_slice(ORIGINAL);
    }
}

/// Appends `length` random symbols from the `count` symbols that begin with number `first`. Each symbol consumes 16 of
/// the generator's bits.
fn write_symbols(random: &mut Random, length: usize, first: u64, count: u64, out: &mut Vec<u8>) {
    let mut left = length;
    while left > 0 {
        let bits = random.next_u64();
        let symbols = [0, 16, 32, 48].map(|shift| symbol(first, count, (bits >> shift) & 0xffff));
        let taken = left.min(symbols.len());
        out.extend_from_slice(&symbols[..taken]);
        left -= taken;
    }
}

/// Returns one of the `count` symbols that begin with number `first`. The 16 random bits `bits` choose it.
fn symbol(first: u64, count: u64, bits: u64) -> u8 {
    SYMBOLS[(first + ((bits * count) >> 16)) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 20_000;

    fn texts(write: impl Fn(&mut Random, &mut Vec<u8>)) -> Vec<Vec<u8>> {
        let mut random = Random::seeded(3);
        let text = |_| {
            let mut out = Vec::new();
            write(&mut random, &mut out);
            out
        };
        (0..DRAWS).map(text).collect()
    }

    #[test]
    fn letters_have_all_lengths_and_all_symbols() {
        let texts = texts(|random, out| write_letters(random, 14, 24, out));
        assert!((14..=24).all(|length| texts.iter().any(|text| text.len() == length)));
        assert!(texts.iter().all(|text| (14..=24).contains(&text.len())));
        let all = texts.concat();
        let mean = all.len() as f64 / 62.0;
        for symbol in SYMBOLS {
            let count = all.iter().filter(|byte| *byte == symbol).count() as f64;
            // Of the 65,536 values of 16 bits, 1,057 or 1,058 stand for each symbol.
            assert!((count / mean - 1.0).abs() < 0.08, "{symbol} {count} {mean}");
        }
    }

    #[test]
    fn a_zip_code_ends_with_ones() {
        for zip in texts(write_zip) {
            assert!(zip.len() == 9 && zip.ends_with(b"11111") && zip.iter().all(u8::is_ascii_digit));
        }
    }

    #[test]
    fn a_tenth_of_the_data_is_original_at_any_place() {
        let texts = texts(write_data);
        assert!(texts.iter().all(|text| (26..=50).contains(&text.len())));
        let places: Vec<_> = texts
            .iter()
            .filter_map(|text| text.windows(ORIGINAL.len()).position(|window| window == ORIGINAL))
            .collect();
        let spread = (DRAWS as f64 * 0.1 * 0.9).sqrt();
        assert!((places.len() as f64 - DRAWS as f64 * 0.1).abs() < 5.0 * spread, "{}", places.len());
        assert!(places.contains(&0) && places.contains(&40));
    }
}
