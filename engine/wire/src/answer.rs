//! What is wanted of a statement's answer, and what was noted of it.

/// A successful answer as a whole.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Answered {
    pub kind: QueryKind,
    /// Rows returned, or else rows affected.
    pub rows: u64,
    /// The body of the RowDescription, if there was one: columns' names and types.
    pub columns: Option<Vec<u8>>,
    /// The rows as they came: DataRow messages, each with its kind and length.
    pub data: Vec<u8>,
}

/// What a statement did, judged by the server's answer as sysbench does.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum QueryKind {
    /// It returned rows, if perhaps none.
    Read,
    /// It changed at least one row.
    Write,
    #[default]
    Other,
}

/// What is wanted of the rows that a query returns.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    #[default]
    Skipped,
    /// Each result's last row, for [`Program::store`].
    Kept,
    /// Whether there are any, for the counts of reads and writes.
    Counted,
    /// All of them, for [`Program::take`].
    Handed,
}

impl Rows {
    /// Whether it is noted what kind of answer came.
    #[inline]
    pub fn are_noted(self) -> bool {
        matches!(self, Rows::Counted | Rows::Handed)
    }
}
