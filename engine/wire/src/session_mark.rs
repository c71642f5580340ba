//! The part of a prepared statement's name that is different in each session. Behind a pooler, several client sessions
//! may share a session of the server, where two prepared statements of the same name would collide.

use ground::random::entropy;

/// The number of letters in the mark of a session, the random part of the names of its prepared statements.
const MARK_LENGTH: usize = 8;

/// The letters of which the marks of sessions, the random parts of statement names, consist. Their number is a power of
/// two, so that each letter is equally likely to be drawn.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The mark of a session: random letters that are drawn for the session and that are a part of the names of its
/// prepared statements. The probability that any two of a thousand sessions get the same mark is one in two million.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionMark(pub [u8; MARK_LENGTH]);

impl SessionMark {
    /// The placeholder for a session's mark (the random letters in the names of its prepared statements), in messages
    /// that are built before the session exists.
    pub const NONE: Self = Self([b'-'; MARK_LENGTH]);

    /// Draws a random mark for a session, to be used in the names of its prepared statements. The mark does not depend
    /// on the seed of the run, since engines with the same seed may share a pooler.
    pub fn draw() -> Self {
        let mut bits = entropy();
        Self(std::array::from_fn(|_| {
            let letter = LETTERS[(bits % LETTERS.len() as u64) as usize];
            bits /= LETTERS.len() as u64;
            letter
        }))
    }

    /// Returns the name of prepared statement number `id` in a session with this mark, which is a random part of the
    /// name.
    pub fn name(self, id: usize) -> String {
        let letters: String = self.0.iter().map(|letter| char::from(*letter)).collect();
        format!("s{letters}_{id}")
    }

    /// Writes the mark, the random part of a statement's name, into a message in which the name begins at the offset
    /// `name`.
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
