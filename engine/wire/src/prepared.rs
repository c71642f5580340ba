//! What a session has prepared.

use std::collections::VecDeque;

/// Which statements this session has parsed, a bit for each.
#[derive(Default)]
pub struct Prepared {
    words: Vec<u64>,
    /// Statements that were sent to be parsed, and of which the server has not told yet.
    pending: VecDeque<usize>,
}

impl Prepared {
    /// Whether the session knows the statement.
    #[inline]
    pub fn has(&self, statement: usize) -> bool {
        self.words.get(statement / 64).is_some_and(|word| word >> (statement % 64) & 1 == 1)
    }

    /// A statement is sent to be parsed.
    pub fn expect(&mut self, statement: usize) {
        self.pending.push_back(statement);
    }

    /// The server has parsed the next one.
    pub fn note_parsed(&mut self) {
        let Some(statement) = self.pending.pop_front() else { return };
        if self.words.len() <= statement / 64 {
            self.words.resize(statement / 64 + 1, 0);
        }
        self.words[statement / 64] |= 1 << (statement % 64);
    }

    /// How many statements the server has still to parse.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Gives back the memory for statements that are to be parsed.
    pub fn trim(&mut self) {
        self.pending.shrink_to_fit();
    }

    /// The answer is complete: what is not parsed by now will not be, after an error.
    #[inline]
    pub fn forget_pending(&mut self) {
        if !self.pending.is_empty() {
            self.pending.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_server_has_parsed_is_prepared() {
        let mut prepared = Prepared::default();
        [3, 70, 71].into_iter().for_each(|statement| prepared.expect(statement));
        prepared.note_parsed();
        prepared.note_parsed();
        prepared.forget_pending();
        prepared.note_parsed();
        let known: Vec<_> = (0..200).filter(|statement| prepared.has(*statement)).collect();
        assert_eq!(known, [3, 70]);
    }
}
