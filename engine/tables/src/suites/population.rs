//! The scale and the seed of the tables of a suite.

use std::fmt;
use std::str::FromStr;

use super::draws::TableDraws;
use crate::row::RowSource;

/// The largest scale, in hundredths.
const LARGEST: i64 = 100 * 100;

/// A scale from 0.01 to 100, with at most two decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    hundredths: i64,
}

impl Scale {
    pub const ONE: Self = Self { hundredths: 100 };

    /// The description of the allowed scales in messages.
    pub const RANGE: &str = "a number from 0.01 to 100 with at most two decimals";
}

/// The error for a text that is not a scale as [`Scale::RANGE`] describes it.
#[derive(Debug, PartialEq, Eq)]
pub struct NoScale;

impl FromStr for Scale {
    type Err = NoScale;

    fn from_str(text: &str) -> Result<Self, NoScale> {
        let (units, decimals) = text.trim().split_once('.').unwrap_or((text.trim(), "0"));
        let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        let decimals = decimals.trim_end_matches('0');
        if !is_number(units) || decimals.len() > 2 || !(decimals.is_empty() || is_number(decimals)) {
            return Err(NoScale);
        }
        let units: i64 = units.parse().map_err(|_| NoScale)?;
        let decimals: i64 = format!("{decimals:0<2}").parse().map_err(|_| NoScale)?;
        let hundredths = units.checked_mul(100).ok_or(NoScale)?.saturating_add(decimals);
        if (1..=LARGEST).contains(&hundredths) { Ok(Self { hundredths }) } else { Err(NoScale) }
    }
}

/// Writes the scale without zeros at the end: `0.01`, `1`, `2.5`.
impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.hundredths as f64 / 100.0)
    }
}

/// The scale and seed that determine the rows with which the tables of a suite are filled.
#[derive(Debug, Clone, Copy)]
pub struct Population {
    pub scale: Scale,
    pub seed: u64,
}

impl Population {
    /// Returns the number of rows of a table that has `rows` rows at scale 1. `rows` must be a multiple of 100.
    pub fn at_scale(&self, rows: i64) -> i64 {
        rows / 100 * self.scale.hundredths
    }

    /// Returns the random values of the table with number `table` in its suite.
    pub fn draws(&self, table: u64) -> TableDraws {
        TableDraws::new(self.seed, table)
    }
}

/// A table of a suite.
pub struct Table {
    pub name: &'static str,
    pub columns: &'static str,
    /// The columns of the primary key.
    pub key: &'static str,
    /// The indexes other than the primary key's, each with its name and its columns.
    pub indexes: &'static [(&'static str, &'static str)],
    pub rows: fn(Population) -> RowSource,
    /// The function that returns the table's number of rows in a population.
    pub count: fn(&Population) -> i64,
}

/// Returns a source of `count` rows. `write` appends the row whose number it is given, counted from 1.
pub fn numbered(count: i64, write: impl Fn(i64, &mut Vec<u8>) + Send + 'static) -> RowSource {
    let mut numbers = 1..=count;
    Box::new(move |out| match numbers.next() {
        Some(number) => {
            write(number, out);
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_hundredths() {
        for (text, hundredths, shown) in
            [("1", 100, "1"), ("0.01", 1, "0.01"), ("2.50", 250, "2.5"), ("100", 10_000, "100"), ("0.100", 10, "0.1")]
        {
            let scale: Scale = text.parse().unwrap();
            assert_eq!((scale.hundredths, scale.to_string().as_str()), (hundredths, shown));
        }
        for text in ["", ".", "0", "0.001", "100.01", "-1", "+1", "1e2", "x", "0x1", "99999999999999999999"] {
            assert_eq!(text.parse::<Scale>(), Err(NoScale), "{text}");
        }
    }
}
