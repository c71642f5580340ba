//! The marks by which tables and procedures are known as ours, and what they were made with.

use std::fmt;

use ground::words::plural;
use wire::session::Session;

use super::definition::TABLES;
use crate::error::{LoadError, TablesError};
use crate::mark::{Mark, Marks, place_in};
use crate::session::query;

/// The program whose name comments and messages have.
pub const NAME: &str = "pgtrial-engine order-entry";

/// The mark on each table and procedure, and before a finished load also that on `warehouse`.
pub const PART: &str = "pgtrial order entry";

/// With this the mark on `warehouse` begins when all is there.
const MADE: &str = "pgtrial order entry: ";

/// What tables were made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    pub warehouses: u32,
    pub seed: u64,
    /// Percent.
    pub fillfactor: u32,
    pub foreign_keys: bool,
}

/// The text of the mark on `warehouse`.
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

/// A table of one of our names that is there.
pub struct Present {
    pub name: String,
    mark: Mark,
}

impl Present {
    /// Whether [`super::load()`] made this very table.
    pub fn is_ours(&self) -> bool {
        self.mark.is_here && self.is_like_ours()
    }

    /// Whether it made this one, or the one that this is a copy of.
    pub fn is_like_ours(&self) -> bool {
        self.mark.text.starts_with(PART)
    }
}

/// The tables of our names that unqualified names reach.
pub fn present(session: &mut Session) -> Result<Vec<Present>, LoadError> {
    let names = TABLES.map(|table| format!("'{}'", table.name)).join(", ");
    let sql = format!(
        "select relname, pg_catalog.obj_description(oid, 'pg_class'), {} from pg_catalog.pg_class \
         where oid = any (select pg_catalog.to_regclass(name)::pg_catalog.oid \
         from pg_catalog.unnest(array[{names}]) as name) order by relname",
        place_in("relname", "oid")
    );
    let marks = Marks::open(session)?;
    let rows = query(session, &sql)?.into_iter().map(|row| {
        let mut values = row.into_iter().map(Option::unwrap_or_default);
        let mut next = || values.next().unwrap_or_default();
        let (name, comment, place) = (next(), next(), next());
        Present { name, mark: marks.read(&comment, &place) }
    });
    Ok(rows.collect())
}

/// Finds the tables for a run, which copies of ours serve as well.
pub fn find(session: &mut Session, dbname: &str) -> Result<Made, TablesError> {
    let present = present(session)?;
    let (dbname, command) = (dbname.to_owned(), format!("{NAME} load"));
    let Some(warehouse) = present.iter().find(|table| table.name == "warehouse") else {
        return Err(TablesError::NoOrderEntry { dbname, command });
    };
    if let Some(foreign) = present.iter().find(|table| !table.is_like_ours()) {
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
