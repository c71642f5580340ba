//! Writes one row in COPY's binary format, field by field.

use std::fmt::Arguments;
use std::io::Write;

/// The number of base-10000 digits in which an amount of money is sent: two for the eight digits before the decimal
/// point, one for the two digits after it.
const MONEY_DIGITS: u16 = 3;

/// A function that generates the rows of a table: it appends the next row, or returns false if all rows were generated.
pub type RowSource = Box<dyn FnMut(&mut Vec<u8>) -> bool + Send>;

/// A row in COPY's binary format, to which fields are appended.
pub struct RowBuffer<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> RowBuffer<'a> {
    /// Begins a row of `fields` fields.
    pub fn new(out: &'a mut Vec<u8>, fields: u16) -> Self {
        out.extend_from_slice(&fields.to_be_bytes());
        Self { out }
    }

    fn field(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        self.out.extend_from_slice(bytes);
    }

    /// Appends a field of type `integer`.
    pub fn int(mut self, number: i64) -> Self {
        self.field(&(number as i32).to_be_bytes());
        self
    }

    /// Appends a field of type `smallint`.
    pub fn small(mut self, number: i64) -> Self {
        self.field(&(number as i16).to_be_bytes());
        self
    }

    /// Appends a field of type `date`, given in days since 2000.
    pub fn date(self, days: i64) -> Self {
        self.int(days)
    }

    /// Appends a field of type `boolean`.
    pub fn boolean(mut self, is_true: bool) -> Self {
        self.field(&[u8::from(is_true)]);
        self
    }

    /// Appends a field of type `timestamptz`, given in microseconds since 2000.
    pub fn time(mut self, microseconds: i64) -> Self {
        self.field(&microseconds.to_be_bytes());
        self
    }

    /// Appends a field that is NULL.
    pub fn null(self) -> Self {
        self.out.extend_from_slice(&(-1i32).to_be_bytes());
        self
    }

    /// Appends a text field.
    pub fn text(mut self, text: &[u8]) -> Self {
        self.field(text);
        self
    }

    /// Appends a text field that consists of `words` with `separator` between them.
    pub fn words(self, words: &[&str], separator: u8) -> Self {
        self.written(|out| {
            for (number, word) in words.iter().enumerate() {
                if number > 0 {
                    out.push(separator);
                }
                out.extend_from_slice(word.as_bytes());
            }
        })
    }

    /// Appends a text field from format arguments: `.formatted(format_args!("maker {letter}"))`.
    pub fn formatted(self, text: Arguments<'_>) -> Self {
        // Writing to memory cannot fail.
        self.written(|out| drop(out.write_fmt(text)))
    }

    /// Appends a field of type `numeric` with two digits after the decimal point. The amount must be below 10^8 units.
    pub fn money(self, cents: i64) -> Self {
        let (units, rest) = (cents.unsigned_abs() / 100, cents.unsigned_abs() % 100);
        let digits = [units / 10_000, units % 10_000, rest * 100].map(|digit| digit as u16);
        self.numeric([MONEY_DIGITS, 1, sign(cents), 2], &digits)
    }

    /// Appends a field of type `numeric` with four digits after the decimal point. The value must be at least 0 and
    /// below 1.
    pub fn share(self, ten_thousandths: i64) -> Self {
        self.numeric([1, u16::MAX, 0, 4], &[ten_thousandths as u16])
    }

    /// Appends a field of type `numeric` in PostgreSQL's binary form. `head` has the number of base-10000 digits, the
    /// weight of the first digit, the sign, and the number of decimal digits that are shown after the point.
    fn numeric(self, head: [u16; 4], digits: &[u16]) -> Self {
        let length = 2 * (head.len() + digits.len()) as u32;
        self.out.extend_from_slice(&length.to_be_bytes());
        head.iter().chain(digits).for_each(|word| self.out.extend_from_slice(&word.to_be_bytes()));
        self
    }

    /// Appends a text field whose contents `write` appends.
    pub fn written(self, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        let start = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        write(self.out);
        let length = (self.out.len() - start - 4) as u32;
        self.out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        self
    }
}

fn sign(number: i64) -> u16 {
    if number < 0 { 0x4000 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_the_server_reads_them() {
        let mut out = Vec::new();
        RowBuffer::new(&mut out, 3).money(-1234).money(30_000_000).share(1999);
        let words: Vec<_> = out.chunks(2).map(|word| u16::from_be_bytes(word.try_into().unwrap())).collect();
        let expected = [
            vec![3],
            vec![0, 14, 3, 1, 0x4000, 2, 0, 12, 3400],
            vec![0, 14, 3, 1, 0, 2, 30, 0, 0],
            vec![0, 10, 1, u16::MAX, 0, 4, 1999],
        ];
        assert_eq!(words, expected.concat());
    }
}
