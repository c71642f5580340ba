//! The prepared statements and portals of a session, which are found by their names.

use std::collections::HashMap;

use crate::statements::StatementKind;

/// A statement that a client has prepared.
pub struct NamedStatement {
    pub kind: StatementKind,
    /// The type OIDs of the statement's parameters.
    pub types: Vec<u32>,
}

/// A portal: a statement and the format of its rows. The values of the parameters are not kept, since nothing is
/// executed.
#[derive(Clone)]
pub struct Portal {
    pub kind: StatementKind,
    pub is_binary: bool,
}

/// Prepared statements or portals by their names. The unnamed one is stored separately, because most clients use only
/// that one.
pub struct Named<T> {
    unnamed: Option<T>,
    named: HashMap<Box<[u8]>, T>,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self { unnamed: None, named: HashMap::new() }
    }
}

impl<T> Named<T> {
    pub fn get(&self, name: &[u8]) -> Option<&T> {
        if name.is_empty() { self.unnamed.as_ref() } else { self.named.get(name) }
    }

    pub fn insert(&mut self, name: &[u8], item: T) {
        if name.is_empty() {
            self.unnamed = Some(item);
        } else {
            self.named.insert(name.into(), item);
        }
    }

    pub fn remove(&mut self, name: &[u8]) -> Option<T> {
        if name.is_empty() { self.unnamed.take() } else { self.named.remove(name) }
    }

    pub fn clear(&mut self) {
        self.unnamed = None;
        if !self.named.is_empty() {
            self.named.clear();
        }
    }
}
