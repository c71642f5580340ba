//! The rows of a table sbtestN in COPY's binary format.

use std::ops::Range;

use crate::rows::Messages;
use ground::random::Random;
use workload::oltp::{C_LENGTH, PAD_LENGTH};
use workload::sb_rand::{Distribution, fill_groups};

/// Bytes of a field's length.
const LENGTH: usize = 4;

/// Where the fields of a row begin, behind their lengths: `id` and `k` of four bytes, `c`, `pad`; and the row's length.
const ID: usize = 2 + LENGTH;
const K: usize = ID + 4 + LENGTH;
const C: usize = K + 4 + LENGTH;
const PAD: usize = C + C_LENGTH + LENGTH;
const ROW: usize = PAD + PAD_LENGTH;

/// The rows of one table, a message at a time.
pub struct Rows {
    /// The ids that are left.
    left: Range<u32>,
    ks: Distribution,
    random: Random,
    /// A row, of which only the values change.
    row: [u8; ROW],
    messages: Messages,
}

impl Rows {
    /// Rows 1 to `count`, `k` drawn from `ks`.
    pub fn new(count: u32, ks: Distribution, random: Random) -> Self {
        let mut row = [0; ROW];
        row[1] = 4;
        for (field, length) in [(ID, 4), (K, 4), (C, C_LENGTH), (PAD, PAD_LENGTH)] {
            row[field - 1] = length as u8;
        }
        Self { left: 1..count.saturating_add(1), ks, random, row, messages: Messages::default() }
    }

    /// Appends one message's rows; the number of rows, and whether there are more messages to come.
    pub fn fill(&mut self, out: &mut Vec<u8>) -> (u64, bool) {
        let Self { left, ks, random, row, messages } = self;
        messages.fill(out, |out| {
            let Some(id) = left.next() else { return false };
            let k = ks.draw(random) as u32;
            row[ID..ID + 4].copy_from_slice(&id.to_be_bytes());
            row[K..K + 4].copy_from_slice(&k.to_be_bytes());
            fill_groups(random, &mut row[C..C + C_LENGTH]);
            fill_groups(random, &mut row[PAD..PAD + PAD_LENGTH]);
            out.extend_from_slice(row);
            true
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{HEADER, TRAILER};
    use workload::sb_rand::Distributions;
    use workload::settings::Settings;

    fn integer(bytes: &[u8]) -> i64 {
        bytes.iter().fold(0, |number, byte| number << 8 | i64::from(*byte))
    }

    fn all(count: u32) -> (Vec<u8>, u64) {
        let ks = Distributions::new(&Settings::default()).unwrap().over(1, i64::from(count));
        let (mut rows, mut out, mut total) = (Rows::new(count, ks, Random::seeded(9)), Vec::new(), 0);
        loop {
            let (more, is_more) = rows.fill(&mut out);
            total += more;
            if !is_more {
                return (out, total);
            }
        }
    }

    /// Groups of eleven digits with dashes between them.
    fn is_grouped(text: &[u8], groups: usize) -> bool {
        let text = std::str::from_utf8(text).unwrap();
        let parts: Vec<_> = text.split('-').collect();
        parts.len() == groups && parts.iter().all(|part| part.len() == 11 && part.bytes().all(|c| c.is_ascii_digit()))
    }

    #[test]
    fn rows_are_numbered_and_of_sysbenchs_shape() {
        let (bytes, rows) = all(1000);
        assert_eq!(rows, 1000);
        let mut rest = bytes.strip_prefix(HEADER).unwrap();
        let mut take = |count: usize| {
            let (taken, after) = rest.split_at(count);
            rest = after;
            taken
        };
        let (mut sum, mut texts) = (0, std::collections::HashSet::new());
        for id in 1..=1000 {
            assert_eq!(take(2), [0, 4]);
            let [found, k, c, pad] = [0; 4].map(|_| {
                let length = integer(take(4)) as usize;
                take(length).to_vec()
            });
            assert_eq!((found.len(), integer(&found)), (4, id));
            assert!(k.len() == 4 && (1..=1000).contains(&integer(&k)));
            sum += integer(&k);
            assert!(is_grouped(&c, 10) && is_grouped(&pad, 5));
            texts.insert(c);
        }
        assert_eq!(take(2), TRAILER);
        assert!(rest.is_empty());
        assert_eq!(texts.len(), 1000);
        // The special distribution, sysbench's default, stays near the middle.
        assert!((480..=520).contains(&(sum / 1000)), "{sum}");
    }

    #[test]
    fn no_rows_are_a_header_and_a_trailer() {
        assert_eq!(all(0), ([HEADER, &TRAILER].concat(), 0));
    }
}
