//! Chooses a token for each piece of a capture's values.
//!
//! Pieces of the same kind and the same length form a group. All possible tokens of the group, in ascending order, are
//! divided into as many equal ranges as the group has pieces. The token of the n-th piece is drawn from the n-th range,
//! with a random key that is not stored. So the tokens have the same order as the pieces. The more of all possible
//! pieces occur in a group, the closer its tokens are to the pieces: if all of them occur, each piece is its own token.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};

use super::pieces::{Form, Piece, cut};
use crate::time::date_of;

/// All pieces of a capture, and the tokens that replace them.
pub struct Vocabulary {
    learned: HashMap<Group, BTreeSet<Box<str>>>,
    /// The sorted pieces of each group (pieces of the same kind and length). [`Self::seal`] fills this field.
    sealed: HashMap<Group, Vec<Box<str>>>,
    key: RandomState,
    /// The number of days that is added to each date of the capture. It may be negative.
    shift: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Group {
    kind: Kind,
    /// The length, in characters, that all pieces of the group have.
    length: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Digits,
    /// Digits of which the first is 0. Their tokens begin with 0 too.
    ZeroLed,
    Letters,
    Hex,
    CapitalHex,
    Octal,
    Bits,
}

/// The least and the greatest number of weeks by which dates are moved. Whole weeks keep the day of the week.
const WEEKS: (u64, u64) = (2, 260);

/// The letters that tokens for words consist of. They are chosen so that no token equals a word that stays in values,
/// such as `true`, `t` or `ms`.
const LETTERS: &str = "bcgjklnpqrvwxz";

impl Group {
    /// Returns the group to which a piece belongs, and its text. Returns `None` for pieces that need no group: single
    /// digits and other text that stays, and dates, which are moved by a number of days.
    fn of<'a>(piece: &Piece<'a>) -> Option<(Self, &'a str)> {
        let (kind, text) = match *piece {
            // Single digits stay: there are only ten of them, and programs use 0 and 1 as flags.
            Piece::Digits(text) if text.len() == 1 => return None,
            Piece::Digits(text) if text.starts_with('0') => (Kind::ZeroLed, text),
            Piece::Digits(text) => (Kind::Digits, text),
            Piece::Letters(text) => (Kind::Letters, text),
            Piece::Hex(text) if text.bytes().any(|c| c.is_ascii_uppercase()) => (Kind::CapitalHex, text),
            Piece::Hex(text) => (Kind::Hex, text),
            Piece::Octal(text) => (Kind::Octal, text),
            Piece::Bits(text) => (Kind::Bits, text),
            Piece::Kept(_) | Piece::Date(_) => return None,
        };
        Some((Self { kind, length: text.chars().count() }, text))
    }

    /// Returns the characters, in ascending order, of which the tokens of this group consist. There are enough
    /// characters for at least `pieces` different tokens of the group's length.
    fn alphabet(&self, pieces: usize) -> Vec<char> {
        match self.kind {
            Kind::Digits | Kind::ZeroLed => ('0'..='9').collect(),
            Kind::Octal => ('0'..='7').collect(),
            Kind::Bits => vec!['0', '1'],
            Kind::Hex => ('0'..='9').chain('a'..='f').collect(),
            Kind::CapitalHex => ('0'..='9').chain('A'..='F').collect(),
            Kind::Letters => {
                let is_enough = |letters: u64| letters.saturating_pow(self.length.min(60) as u32) >= pieces as u64;
                match () {
                    () if is_enough(LETTERS.len() as u64) => LETTERS.chars().collect(),
                    () if is_enough(2 * LETTERS.len() as u64) => {
                        LETTERS.to_uppercase().chars().chain(LETTERS.chars()).collect()
                    }
                    () => ('\u{4e00}'..'\u{9fa5}').collect(),
                }
            }
        }
    }
}

impl Vocabulary {
    pub fn new() -> Self {
        let key = RandomState::new();
        let drawn = key.hash_one("dates");
        let weeks = (WEEKS.0 + drawn / 2 % (WEEKS.1 - WEEKS.0 + 1)) as i64;
        let shift = if drawn.is_multiple_of(2) { -7 * weeks } else { 7 * weeks };
        Self { learned: HashMap::new(), sealed: HashMap::new(), key, shift }
    }

    /// Records the pieces of a value. This is called for all values of the capture before the first token is chosen.
    pub fn learn(&mut self, value: &str, form: Form) {
        cut(value, form, &mut |piece| {
            let Some((group, text)) = Group::of(&piece) else { return };
            let pieces = self.learned.entry(group).or_default();
            if !pieces.contains(text) {
                pieces.insert(text.into());
            }
        });
    }

    /// Ends the recording of values. From this call on, [`Self::token`] may be called, and [`Self::learn`] no longer.
    pub fn seal(&mut self) {
        let learned = std::mem::take(&mut self.learned);
        self.sealed = learned.into_iter().map(|(group, pieces)| (group, pieces.into_iter().collect())).collect();
    }

    /// Returns the token for a value that was recorded with [`Self::learn`].
    pub fn token(&self, value: &str, form: Form) -> String {
        let mut token = String::new();
        cut(value, form, &mut |piece| match (Group::of(&piece), piece) {
            (Some((group, text)), _) => self.push_token(group, text, &mut token),
            (None, Piece::Date(days)) => token.push_str(&date(days, self.shift)),
            (
                None,
                Piece::Kept(text)
                | Piece::Digits(text)
                | Piece::Letters(text)
                | Piece::Hex(text)
                | Piece::Octal(text)
                | Piece::Bits(text),
            ) => token.push_str(text),
        });
        token
    }

    fn push_token(&self, group: Group, text: &str, out: &mut String) {
        let pieces = self.sealed.get(&group).map_or(&[][..], Vec::as_slice);
        let rank = pieces.binary_search_by(|piece| (**piece).cmp(text)).expect("the value was learned");
        let alphabet = group.alphabet(pieces.len());
        let (base, is_led) = (alphabet.len() as u64, group.kind == Kind::ZeroLed);
        let free = group.length - usize::from(is_led);
        // A number of 64 bits determines this many leading characters, which keep the order of the pieces. The
        // characters behind them are drawn independently.
        let ordered = free.min((63.0 / (base as f64).log2()) as usize);
        let all = base.pow(ordered as u32);
        let least = if group.kind == Kind::Digits { all / base } else { 0 };
        let mut number = least + self.draw(group, rank, pieces.len(), all - least);
        let mut characters = vec!['0'; group.length];
        for place in (group.length - free..group.length - free + ordered).rev() {
            characters[place] = alphabet[(number % base) as usize];
            number /= base;
        }
        for place in group.length - free + ordered..group.length {
            characters[place] = alphabet[(self.key.hash_one((group, text, place)) % base) as usize];
        }
        out.extend(characters);
    }

    /// Draws a number below `all` from the range that belongs to the piece with the given rank among `pieces` pieces.
    fn draw(&self, group: Group, rank: usize, pieces: usize, all: u64) -> u64 {
        let bound = |rank: usize| (rank as u128 * u128::from(all) / pieces as u128) as u64;
        let (from, to) = (bound(rank), bound(rank + 1));
        from + self.key.hash_one((group, rank)) % (to - from).max(1)
    }
}

/// Returns the date that is `shift` days after `days`. If its year would not have four digits, returns the date
/// unchanged.
fn date(days: i64, shift: i64) -> String {
    let (year, month, day) = date_of(days + shift);
    let (year, month, day) = if (1..=9999).contains(&year) { (year, month, day) } else { date_of(days) };
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(values: &[String], form: Form) -> Vec<String> {
        let mut vocabulary = Vocabulary::new();
        values.iter().for_each(|value| vocabulary.learn(value, form));
        vocabulary.seal();
        values.iter().map(|value| vocabulary.token(value, form)).collect()
    }

    proptest! {
        #[test]
        fn equality_length_and_order_of_numbers_are_kept(values in prop::collection::vec(0_u64.., 1..60)) {
            let texts: Vec<String> = values.iter().map(u64::to_string).collect();
            let tokens = tokens(&texts, Form::Literal);
            for (a, token_a) in values.iter().zip(&tokens) {
                prop_assert_eq!(a.to_string().len(), token_a.len());
                for (b, token_b) in values.iter().zip(&tokens) {
                    let numbers = [token_a, token_b].map(|token| token.parse::<u64>().unwrap_or(u64::MAX));
                    prop_assert_eq!(a.cmp(b), numbers[0].cmp(&numbers[1]).then(token_a.cmp(token_b)));
                }
            }
        }

        #[test]
        fn equality_length_and_order_of_words_are_kept(values in prop::collection::vec("[a-zA-Zéß]{1,30}", 1..60)) {
            let tokens = tokens(&values, Form::Value);
            for (a, token_a) in values.iter().zip(&tokens) {
                prop_assert_eq!(a.chars().count(), token_a.chars().count());
                for (b, token_b) in values.iter().zip(&tokens) {
                    prop_assert_eq!(a == b, token_a == token_b);
                    // Words that stay in values, such as "on", are their own tokens.
                    let stay = a == token_a || b == token_b;
                    if a.chars().count() == b.chars().count() && !stay {
                        prop_assert_eq!(a.cmp(b), token_a.cmp(token_b));
                    }
                }
            }
        }

        #[test]
        fn any_literal_stays_as_long_as_it_is(text in "'[-a-z0-9 .:{}\"\u{e9}]{0,20}'|[1-9][0-9]{0,25}|0x[0-9a-f]{1,20}") {
            let token = &tokens(std::slice::from_ref(&text), Form::Literal)[0];
            prop_assert_eq!(token.chars().count(), text.chars().count());
            prop_assert_eq!(token.starts_with('\''), text.starts_with('\''));
        }
    }

    #[test]
    fn dates_are_moved_by_whole_weeks() {
        let values = ["2026-11-23", "2026-11-24 08:00:00+00"].map(str::to_owned);
        let tokens = tokens(&values, Form::Value);
        assert_ne!(tokens[0], values[0]);
        assert_eq!(&tokens[1][10..], " 08:00:00+00");
        let days = |text: &str| {
            let number = |from: usize, to: usize| text[from..to].parse().unwrap();
            crate::time::days_since_1970(number(0, 4), number(5, 7), number(8, 10))
        };
        assert_eq!(days(&tokens[1]) - days(&tokens[0]), 1);
        assert_eq!((days(&tokens[0]) - days(&values[0])) % 7, 0);
    }

    #[test]
    fn a_value_gives_no_hint_of_itself() {
        let values = ["alice@example.com", "secret"].map(str::to_owned);
        for (value, token) in values.iter().zip(tokens(&values, Form::Value)) {
            let words = value.split(|c: char| !c.is_alphabetic());
            assert!(words.clone().all(|word| !token.contains(word)), "{token}");
        }
    }
}
