//! The statements that a client has prepared.

use wire::statement::{Hole, Statement};

/// Statements by the numbers that the script's side gives them, each of which is given once only: a connection remembers
/// by it what it has prepared.
#[derive(Default)]
pub struct Statements {
    prepared: Vec<Option<Box<Prepared>>>,
}

struct Prepared {
    statement: Statement,
    holes: usize,
}

impl Statements {
    /// Adds a statement, in whose text a question mark stands for each parameter; `types` are OIDs.
    pub fn add(&mut self, number: usize, text: &[u8], types: &[u32]) {
        let pieces: Vec<Vec<u8>> = text.split(|byte| *byte == b'?').map(<[u8]>::to_vec).collect();
        let holes: Vec<Hole> = (0..pieces.len() - 1).map(|slot| Hole { slot, name: (slot + 1).to_string() }).collect();
        let count = holes.len();
        let statement = Statement::typed(number, &format!("sbstmt{number}"), pieces, holes, types);
        if self.prepared.len() <= number {
            self.prepared.resize_with(number + 1, || None);
        }
        self.prepared[number] = Some(Box::new(Prepared { statement, holes: count }));
    }

    pub fn get(&self, number: usize) -> Option<&Statement> {
        self.find(number).map(|prepared| &prepared.statement)
    }

    pub fn has(&self, number: usize) -> bool {
        self.find(number).is_some()
    }

    /// How many values it takes.
    pub fn holes(&self, number: usize) -> usize {
        self.find(number).map_or(0, |prepared| prepared.holes)
    }

    /// Forgets a statement. As in sysbench, the server keeps it.
    pub fn remove(&mut self, number: usize) {
        if let Some(prepared) = self.prepared.get_mut(number) {
            *prepared = None;
        }
    }

    fn find(&self, number: usize) -> Option<&Prepared> {
        self.prepared.get(number)?.as_deref()
    }
}
