//! Rows that a program asks for: of each result the columns' names, the number of rows, and the last row.

use super::error::ConnectionError;

/// One statement's result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResultSet {
    /// Empty for a statement that returns no rows at all.
    pub columns: Vec<Vec<u8>>,
    pub rows: u64,
    /// The last row's values in text format; NULL is `None`.
    pub last: Vec<Option<Vec<u8>>>,
}

/// What follows a column's name in a RowDescription: table, attribute, type, size, modifier, format.
const COLUMN_DETAILS: usize = 18;

impl ResultSet {
    /// Takes the columns' names from the body of a RowDescription.
    pub fn set_columns(&mut self, body: &[u8]) -> Result<(), ConnectionError> {
        let (count, mut rest) = body.split_first_chunk::<2>().ok_or_else(short)?;
        self.columns.clear();
        for _ in 0..u16::from_be_bytes(*count) {
            let end = rest.iter().position(|byte| *byte == 0).ok_or_else(short)?;
            self.columns.push(rest[..end].to_vec());
            rest = rest.get(end + 1 + COLUMN_DETAILS..).ok_or_else(short)?;
        }
        Ok(())
    }

    /// Counts a row and takes its values from the body of a DataRow.
    pub fn add_row(&mut self, body: &[u8]) -> Result<(), ConnectionError> {
        let (count, mut rest) = body.split_first_chunk::<2>().ok_or_else(short)?;
        self.rows += 1;
        self.last.clear();
        for _ in 0..u16::from_be_bytes(*count) {
            let (length, after) = rest.split_first_chunk::<4>().ok_or_else(short)?;
            let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
                self.last.push(None);
                rest = after;
                continue;
            };
            let (value, after) = after.split_at_checked(length).ok_or_else(short)?;
            self.last.push(Some(value.to_vec()));
            rest = after;
        }
        Ok(())
    }
}

fn short() -> ConnectionError {
    ConnectionError::Protocol("a message of the server's answer is shorter than it says".to_owned())
}
