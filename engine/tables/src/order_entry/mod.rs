//! The tables of order entry: makes them, finds existing ones, and checks the consistency conditions of their contents.

pub mod conditions;
mod definition;
mod mark;
mod population;
mod procedures;
mod row;
mod rows;
mod space;
mod text;

use std::sync::Arc;
use std::time::Instant;

use ground::words::plural;
use wire::session::Session;
use wire::target::Target;

use crate::error::TablesError;
use crate::table_set::{PlannedTable, TableSet, make_set};
use definition::{TABLES, foreign_keys};
pub use mark::{Made, NAME, find};
use population::Population;
pub use procedures::make_procedures;
pub use space::{Space, space};

/// Makes the tables with `jobs` connections, one of which is `session`, but with no more connections than there are
/// tables; with up to four if `jobs` is `None`. Replaces the tables that an earlier load has made, and fails if
/// somebody else's table has one of the names.
pub fn load(session: Session, target: &Arc<Target>, made: Made, jobs: Option<usize>) -> Result<(), TablesError> {
    let began = Instant::now();
    let population = Population::new(made.warehouses, made.seed);
    let set = TableSet {
        what: "the tables of order entry",
        program: NAME,
        part: mark::PART,
        tables: TABLES
            .into_iter()
            .map(|table| PlannedTable {
                name: table.name,
                columns: table.columns,
                fillfactor: made.fillfactor,
                key: table.key,
                indexes: table.indexes,
                count: (table.count)(&population),
                rows: Box::new(move || (table.rows)(population)),
            })
            .collect(),
        foreign_keys: if made.foreign_keys { foreign_keys() } else { Vec::new() },
        marked: "warehouse",
        complete: made.to_string(),
    };
    make_set(session, target, set, jobs)?;
    let warehouses = plural(made.warehouses, "warehouse");
    (target.user.tell)(&format!("{warehouses} loaded in {:.2} s", began.elapsed().as_secs_f64()));
    Ok(())
}
