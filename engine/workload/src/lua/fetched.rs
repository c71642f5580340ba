//! What the server returned, kept for scripts that fetch it.

use wire::Answered;

/// Of each connection the last answer's rows and columns, up to its next query.
#[derive(Default)]
pub struct Fetched {
    /// By their numbers; there are few.
    connections: Vec<(usize, Kept)>,
}

#[derive(Default)]
struct Kept {
    /// DataRow messages.
    rows: Vec<u8>,
    /// The body of a RowDescription.
    columns: Vec<u8>,
}

impl Fetched {
    /// Keeps an answer in place of the connection's former one.
    pub fn keep(&mut self, connection: usize, answered: &Answered) {
        let found = self.connections.iter().position(|(number, _)| *number == connection);
        let at = found.unwrap_or_else(|| {
            self.connections.push((connection, Kept::default()));
            self.connections.len() - 1
        });
        let kept = &mut self.connections[at].1;
        kept.rows.clear();
        kept.rows.extend_from_slice(&answered.data);
        if let Some(columns) = &answered.columns {
            kept.columns.clear();
            kept.columns.extend_from_slice(columns);
        }
    }

    /// The connection is closed.
    pub fn forget(&mut self, connection: usize) {
        self.connections.retain(|(number, _)| *number != connection);
    }

    pub fn rows(&self, connection: usize) -> &[u8] {
        self.find(connection).map_or(&[], |kept| &kept.rows)
    }

    pub fn columns(&self, connection: usize) -> &[u8] {
        self.find(connection).map_or(&[], |kept| &kept.columns)
    }

    fn find(&self, connection: usize) -> Option<&Kept> {
        self.connections.iter().find(|(number, _)| *number == connection).map(|(_, kept)| kept)
    }
}
