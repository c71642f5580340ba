//! Keeps the data of a script's client: its prepared statements, and the server's answers from which the script fetches
//! rows.

use std::collections::BTreeMap;

use wire::Answered;
use wire::statement::{Hole, Statement};

/// A statement that a script has prepared.
pub struct Prepared {
    pub statement: Statement,
    /// The text of the statement, as the script wrote it.
    pub text: Vec<u8>,
    /// The number of parameters of the statement.
    pub holes: usize,
}

impl Prepared {
    /// Makes a statement from a text with a question mark for each parameter. `types` are the OIDs of the parameters'
    /// types.
    pub fn new(number: usize, text: &[u8], types: &[u32]) -> Self {
        let pieces: Vec<Vec<u8>> = text.split(|byte| *byte == b'?').map(<[u8]>::to_vec).collect();
        let holes = pieces.len() - 1;
        let named = (0..holes).map(|slot| Hole { slot, name: (slot + 1).to_string() }).collect();
        let statement = Statement::of_session(number, pieces, named, types);
        Self { statement, text: text.to_vec(), holes }
    }
}

/// The rows and columns of the last answer on each connection. An answer is kept until the connection's next query.
#[derive(Default)]
pub struct Fetched {
    connections: BTreeMap<usize, Kept>,
}

#[derive(Default)]
struct Kept {
    /// The rows of the answer, as DataRow messages.
    rows: Vec<u8>,
    /// The columns of the answer: the body of its RowDescription message.
    columns: Vec<u8>,
}

impl Fetched {
    /// Keeps an answer of the server. It replaces the answer that was kept for this connection before, but earlier
    /// columns stay if the server has sent no RowDescription.
    pub fn keep(&mut self, connection: usize, answered: &Answered) {
        let kept = self.connections.entry(connection).or_default();
        kept.rows.clear();
        kept.rows.extend_from_slice(&answered.data);
        if let Some(columns) = &answered.columns {
            kept.columns.clear();
            kept.columns.extend_from_slice(columns);
        }
    }

    /// Removes the kept answer of a connection that was closed.
    pub fn forget(&mut self, connection: usize) {
        self.connections.remove(&connection);
    }

    pub fn rows(&self, connection: usize) -> &[u8] {
        self.connections.get(&connection).map_or(&[], |kept| &kept.rows)
    }

    pub fn columns(&self, connection: usize) -> &[u8] {
        self.connections.get(&connection).map_or(&[], |kept| &kept.columns)
    }
}
