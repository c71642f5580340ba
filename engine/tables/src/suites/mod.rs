//! The tables of the suites that pgtrial ships, and the code that makes them.

mod draws;
mod joins;
mod population;
mod reports;

use std::sync::Arc;
use std::time::Instant;

use wire::session::Session;
use wire::target::Target;

use crate::error::TablesError;
use crate::table_set::{PlannedTable, TableSet, make_set};
pub use population::Scale;
use population::{Population, Table};

/// The name of the program in messages.
pub const NAME: &str = "pgtrial-engine generate";

/// The tables of a suite that pgtrial ships.
pub struct SuiteTables {
    pub name: &'static str,
    /// The name of the suite's tables in messages, such as `the tables of reports`.
    what: &'static str,
    /// The mark (a comment by which this program recognizes its tables) on each table of the suite. The mark of the
    /// first table is replaced by another one when all tables are complete.
    part: &'static str,
    tables: &'static [Table],
    /// The foreign keys: the table, its columns, and the table that they refer to.
    foreign_keys: &'static [(&'static str, &'static str, &'static str)],
}

/// All suites that pgtrial ships.
pub const SUITES: [SuiteTables; 2] = [
    SuiteTables {
        name: "reports",
        what: "the tables of reports",
        part: "pgtrial reports",
        tables: &reports::TABLES,
        foreign_keys: &reports::FOREIGN_KEYS,
    },
    SuiteTables {
        name: "joins",
        what: "the tables of joins",
        part: "pgtrial joins",
        tables: &joins::TABLES,
        foreign_keys: &joins::FOREIGN_KEYS,
    },
];

/// Makes the tables of a suite with `jobs` connections, one of which is `session`, but with no more connections than
/// there are tables; with up to four if `jobs` is `None`. Replaces the tables that an earlier run has made, and fails
/// if somebody else's table has one of the names.
pub fn generate(
    session: Session,
    target: &Arc<Target>,
    suite: &'static SuiteTables,
    scale: Scale,
    seed: u64,
    jobs: Option<usize>,
) -> Result<(), TablesError> {
    let began = Instant::now();
    let population = Population { scale, seed };
    let set = TableSet {
        what: suite.what,
        program: NAME,
        part: suite.part,
        tables: suite.tables.iter().map(|table| planned(table, population)).collect(),
        foreign_keys: suite
            .foreign_keys
            .iter()
            .map(|(table, columns, other)| {
                format!("alter table {table} add foreign key ({columns}) references {other}")
            })
            .collect(),
        marked: suite.tables[0].name,
        complete: format!("{}: scale {scale}, seed {seed}", suite.part),
    };
    make_set(session, target, set, jobs)?;
    let elapsed = began.elapsed().as_secs_f64();
    (target.user.tell)(&format!("{} at scale {scale} made in {elapsed:.2} s", suite.what));
    Ok(())
}

fn planned(table: &'static Table, population: Population) -> PlannedTable {
    PlannedTable {
        name: table.name,
        columns: table.columns,
        fillfactor: 100,
        key: table.key,
        indexes: table.indexes,
        count: (table.count)(&population) as u64,
        rows: Box::new(move || (table.rows)(population)),
    }
}
