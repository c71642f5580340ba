//! Random strings.

use ground::random::Random;

/// A group of digits in the columns `c` and `pad`, and the same with the dash after it.
const GROUP: usize = 11;
const GROUP_AND_DASH: usize = GROUP + 1;

/// Appends the template with a random digit for each `#` and a random letter for each `@`.
pub fn string(random: &mut Random, template: &[u8], out: &mut Vec<u8>) {
    out.extend(template.iter().map(|byte| match byte {
        b'#' => random.range(i64::from(b'0'), i64::from(b'9')) as u8,
        b'@' => random.range(i64::from(b'a'), i64::from(b'z')) as u8,
        other => *other,
    }));
}

/// Appends a string of `min` to `max` characters from `0` to `z` in ASCII's order. If `min` is the greater, it is taken
/// for 1; with a `max` of 0 there is nothing.
pub fn varstring(random: &mut Random, min: u32, max: u32, out: &mut Vec<u8>) {
    if max == 0 {
        return;
    }
    let min = if min > max { 1 } else { min };
    for _ in 0..random.range(i64::from(min), i64::from(max)) {
        out.push(random.range(i64::from(b'0'), i64::from(b'z')) as u8);
    }
}

/// Fills `out` with groups of eleven digits, dashes between them.
#[inline]
pub fn fill_groups(random: &mut Random, out: &mut [u8]) {
    for group in out.chunks_mut(GROUP_AND_DASH) {
        // The word is a fraction of 2^64; what is left of it behind eleven digits is far too fine to matter.
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
