//! The comments by which tables are known as ours, and what they were made with.

use std::fmt;

use ground::words::plural;
use wire::session::Session;

use super::definition::TABLES;
use crate::session::{LoadError, query};

/// The program whose name comments and messages have.
pub const NAME: &str = "pgtrial-engine order-entry";

/// The comment on each table, and before a finished load also that on `warehouse`.
pub const PART: &str = "pgtrial order entry";

/// With this the comment on `warehouse` begins when all is there.
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

/// The comment on `warehouse`.
impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { warehouses, seed, fillfactor, foreign_keys } = self;
        let keys = if *foreign_keys { "with" } else { "without" };
        let warehouses = plural(*warehouses, "warehouse");
        write!(f, "{MADE}{warehouses}, seed {seed}, fillfactor {fillfactor}, {keys} foreign keys")
    }
}

impl Made {
    fn from_comment(text: &str) -> Option<Self> {
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
    comment: String,
}

impl Present {
    /// Whether [`super::load()`] made it.
    pub fn is_ours(&self) -> bool {
        self.comment.starts_with(PART)
    }
}

/// The tables of our names that unqualified names reach.
pub fn present(session: &mut Session) -> Result<Vec<Present>, LoadError> {
    let names = TABLES.map(|table| format!("'{}'", table.name)).join(", ");
    let sql = format!(
        "select name, pg_catalog.obj_description(pg_catalog.to_regclass(name)::oid, 'pg_class') \
         from pg_catalog.unnest(array[{names}]) as name where pg_catalog.to_regclass(name) is not null"
    );
    let rows = query(session, &sql)?.into_iter().map(|row| {
        let mut values = row.into_iter().map(Option::unwrap_or_default);
        Present { name: values.next().unwrap_or_default(), comment: values.next().unwrap_or_default() }
    });
    Ok(rows.collect())
}

/// Finds the tables for a run. The error is a sentence.
pub fn find(session: &mut Session, dbname: &str) -> Result<Made, String> {
    let present = present(session).map_err(|error| error.to_string())?;
    let advice = format!("make them with \"{NAME} load\"");
    let Some(warehouse) = present.iter().find(|table| table.name == "warehouse") else {
        return Err(format!("there are no tables of order entry in database \"{dbname}\"; {advice}"));
    };
    if let Some(foreign) = present.iter().find(|table| !table.is_ours()) {
        let name = &foreign.name;
        return Err(format!(
            "table {name} in database \"{dbname}\" was not made by {NAME}; {advice} in another database"
        ));
    }
    let made = Made::from_comment(&warehouse.comment).filter(|_| present.len() == TABLES.len());
    made.ok_or_else(|| format!("the tables of order entry in database \"{dbname}\" are not complete; {advice} anew"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_says_what_the_tables_were_made_with() {
        let made = Made { warehouses: 12, seed: u64::MAX, fillfactor: 90, foreign_keys: false };
        for made in [made, Made { foreign_keys: true, ..made }, Made { warehouses: 1, ..made }] {
            assert_eq!(Made::from_comment(&made.to_string()), Some(made));
        }
        for text in
            ["", PART, MADE, "warehouses", "pgtrial order entry: 1 warehouse, seed x, fillfactor 1, with foreign keys"]
        {
            assert_eq!(Made::from_comment(text), None, "{text}");
        }
    }
}
