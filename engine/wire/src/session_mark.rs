//! The part of a prepared statement's name that differs between sessions. Sessions of clients may share a session of
//! the server behind a pooler; names that two of them use would collide there.

use ground::random::entropy;

/// The number of letters of a mark.
const MARK_LENGTH: usize = 8;

/// The letters of marks. Their number is a power of two, so that each is drawn as often as another.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Letters that are drawn for a session. Two of a thousand sessions have the same with a probability of one in two
/// million.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionMark(pub [u8; MARK_LENGTH]);

impl SessionMark {
    /// The letters that stand for those of a session in messages that are made before the session.
    pub const NONE: Self = Self([b'-'; MARK_LENGTH]);

    /// Draws a mark, whatever the seed of the run is: engines with the same seed may share a pooler, too.
    pub fn draw() -> Self {
        let mut bits = entropy();
        Self(std::array::from_fn(|_| {
            let letter = LETTERS[(bits % LETTERS.len() as u64) as usize];
            bits /= LETTERS.len() as u64;
            letter
        }))
    }

    /// Returns the name of statement number `id` in a session with this mark.
    pub fn name(self, id: usize) -> String {
        let letters: String = self.0.iter().map(|letter| char::from(*letter)).collect();
        format!("s{letters}_{id}")
    }

    /// Writes the mark into a message whose statement's name begins at `name`.
    #[inline(always)]
    pub fn write(self, name: usize, message: &mut [u8]) {
        message[name + 1..name + 1 + MARK_LENGTH].copy_from_slice(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_have_different_names_for_the_same_statement() {
        let names: Vec<_> = (0..100).map(|_| SessionMark::draw().name(7)).collect();
        assert!(names.iter().all(|name| name.len() == 11 && name.ends_with("_7")), "{names:?}");
        let mut different = names.clone();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), names.len());
    }
}
