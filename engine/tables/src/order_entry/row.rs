//! Appends the fields of rows that only the tables of order entry have.

use ground::random::Random;

use super::text;
use crate::row::RowBuffer;

impl RowBuffer<'_> {
    /// Appends a text of `min` to `max` random letters and digits.
    pub fn letters(self, random: &mut Random, min: i64, max: i64) -> Self {
        self.written(|out| text::write_letters(random, min, max, out))
    }

    /// Appends two streets, a city, a state and a zip code.
    pub fn address(self, random: &mut Random) -> Self {
        self.letters(random, 10, 20)
            .letters(random, 10, 20)
            .letters(random, 10, 20)
            .letters(random, 2, 2)
            .written(|out| text::write_zip(random, out))
    }
}
