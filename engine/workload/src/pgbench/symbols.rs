//! The names of a run's variables, each with a slot: looked up when scripts are linked, never while they run.

use std::collections::HashMap;

use ground::sql::is_name;

/// Names in the order of their slots, shared by all scripts of a run.
#[derive(Debug, Default, Clone)]
pub struct Symbols {
    names: Vec<String>,
    slots: HashMap<String, usize>,
}

impl Symbols {
    /// Returns the slot of `name`, which is new if necessary.
    pub fn slot(&mut self, name: &str) -> usize {
        if let Some(slot) = self.slots.get(name) {
            return *slot;
        }
        let slot = self.names.len();
        self.names.push(name.to_owned());
        self.slots.insert(name.to_owned(), slot);
        slot
    }

    /// Returns the name of a slot.
    pub fn name(&self, slot: usize) -> &str {
        &self.names[slot]
    }

    /// Returns all names in the order of their slots.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// Returns true if a command may create a variable of this name: letters, digits and `_`, the first no digit;
/// characters that are not ASCII count as letters.
pub fn is_valid(name: &[u8]) -> bool {
    name.first().is_some_and(|c| !c.is_ascii_digit()) && name.iter().all(|c| is_name(*c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_slot() {
        let mut symbols = Symbols::default();
        let (a, b) = (symbols.slot("a"), symbols.slot("b"));
        assert_ne!(a, b);
        assert_eq!(symbols.slot("a"), a);
        assert_eq!(symbols.name(b), "b");
    }

    #[test]
    fn names_do_not_start_with_digits() {
        for name in ["a", "_1", "Aid", "\u{e9}t\u{e9}"] {
            assert!(is_valid(name.as_bytes()), "{name}");
        }
        for name in ["", "1a", "a-b", "a b", ":a"] {
            assert!(!is_valid(name.as_bytes()), "{name}");
        }
    }
}
