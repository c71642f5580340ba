//! The marks by which this program recognizes its tables and procedures of order entry, and the options with which the
//! tables were made.

use std::fmt;

use ground::words::plural;
use wire::session::Session;

use super::definition::TABLES;
use crate::error::TablesError;
use crate::table_set::present;

/// The name of the program in comments and messages.
pub const NAME: &str = "pgtrial-engine order-entry";

/// The mark, a comment by which this program recognizes its tables and procedures, on each of them. The table
/// `warehouse` has this mark only until all tables are complete; then its mark begins with [`MADE`].
pub const PART: &str = "pgtrial order entry";

/// The beginning of the mark (the identifying comment) that the table `warehouse` gets when all tables are complete.
/// The options with which they were made follow.
const MADE: &str = "pgtrial order entry: ";

/// The options with which the existing tables were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    pub warehouses: u32,
    pub seed: u64,
    /// The fillfactor of the tables in per cent.
    pub fillfactor: u32,
    pub foreign_keys: bool,
}

/// Writes the mark that the table `warehouse` gets when all tables are complete: [`MADE`], and the options with which
/// they were made.
impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { warehouses, seed, fillfactor, foreign_keys } = self;
        let keys = if *foreign_keys { "with" } else { "without" };
        let warehouses = plural(*warehouses, "warehouse");
        write!(f, "{MADE}{warehouses}, seed {seed}, fillfactor {fillfactor}, {keys} foreign keys")
    }
}

impl Made {
    fn from_mark(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix(MADE)?.split(", ");
        let made = Self {
            warehouses: parts.next()?.split_once(" warehouse")?.0.parse().ok()?,
            seed: parts.next()?.strip_prefix("seed ")?.parse().ok()?,
            fillfactor: parts.next()?.strip_prefix("fillfactor ")?.parse().ok()?,
            foreign_keys: parts.next()? == "with foreign keys",
        };
        Some(made)
    }
}

/// Finds the tables for a run, and returns the options with which they were made. Tables that this program made and
/// that were restored or copied since are accepted too.
pub fn find(session: &mut Session, dbname: &str) -> Result<Made, TablesError> {
    let present = present(session, TABLES.iter().map(|table| table.name))?;
    let (dbname, command) = (dbname.to_owned(), format!("{NAME} load"));
    let Some(warehouse) = present.iter().find(|table| table.name == "warehouse") else {
        return Err(TablesError::NoOrderEntry { dbname, command });
    };
    if let Some(foreign) = present.iter().find(|table| !table.is_like_ours(PART)) {
        return Err(TablesError::OtherTable { table: foreign.name.clone(), dbname, program: NAME, command });
    }
    let made = Made::from_mark(&warehouse.mark.text).filter(|_| present.len() == TABLES.len());
    made.ok_or(TablesError::Incomplete { dbname, command })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_says_what_the_tables_were_made_with() {
        let made = Made { warehouses: 12, seed: u64::MAX, fillfactor: 90, foreign_keys: false };
        for made in [made, Made { foreign_keys: true, ..made }, Made { warehouses: 1, ..made }] {
            assert_eq!(Made::from_mark(&made.to_string()), Some(made));
        }
        for text in
            ["", PART, MADE, "warehouses", "pgtrial order entry: 1 warehouse, seed x, fillfactor 1, with foreign keys"]
        {
            assert_eq!(Made::from_mark(text), None, "{text}");
        }
    }
}
