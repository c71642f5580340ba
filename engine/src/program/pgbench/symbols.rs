//! The names of a run's variables, each with a slot: looked up when scripts are compiled, never while they run.

/// Names in the order of their slots, shared by all scripts of a run.
#[derive(Debug, Default, Clone)]
pub struct Symbols {
    names: Vec<String>,
}

impl Symbols {
    /// The slot of `name`, new if need be.
    pub fn slot(&mut self, name: &str) -> usize {
        self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        })
    }

    /// The name of a slot.
    pub fn name(&self, slot: usize) -> &str {
        &self.names[slot]
    }

    /// How many slots there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }
}
