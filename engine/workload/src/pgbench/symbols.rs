//! The names of all variables of a run. Each name has a slot, the index of the variable's value among the values of a
//! client. Names are looked up when scripts are linked, and never while scripts run.

use std::collections::HashMap;

use ground::sql::is_name;

/// The names of variables, in the order of their slots (the indexes of their values in a client). All scripts of a run
/// share them.
#[derive(Debug, Default, Clone)]
pub struct Symbols {
    names: Vec<String>,
    slots: HashMap<String, usize>,
}

impl Symbols {
    /// Returns the slot of the variable `name`: the index of its value among the values of a client. A new name gets
    /// the next index.
    pub fn slot(&mut self, name: &str) -> usize {
        if let Some(slot) = self.slots.get(name) {
            return *slot;
        }
        let slot = self.names.len();
        self.names.push(name.to_owned());
        self.slots.insert(name.to_owned(), slot);
        slot
    }

    /// Returns the name of the variable that has the given slot.
    pub fn name(&self, slot: usize) -> &str {
        &self.names[slot]
    }

    /// Returns all names in the order of their slots.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// True if a variable can have this name: it consists of letters, digits and `_`, and does not begin with a digit.
/// Characters outside of ASCII count as letters.
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
