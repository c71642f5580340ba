//! The tables of order entry: making them, finding them again, and the consistency conditions of their contents.
//!
//! Each table is made in one transaction over one connection: created, filled by COPY with FREEZE (only the transaction
//! that has created the table may freeze its rows), then its keys. Connections share the tables, the largest first, never
//! the rows of one table.

pub mod conditions;
mod definition;
mod mark;
mod population;
mod procedures;
mod row;
mod rows;
mod space;
mod text;

use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Instant;

use ground::words::plural;
use wire::session::Session;
use wire::target::Target;

use crate::copy::{CopyFormat, copy_rows};
use crate::error::{Foreign, LoadError, TablesError};
use crate::mark::Marks;
use crate::parallel::for_each;
use crate::progress::{ProgressStyle, TableProgress};
use crate::session::{MAX_SORT_MEMORY_KB, execute, raise_sort_memory};
use definition::{TABLES, Table, foreign_keys};
pub use mark::{Made, NAME, find};
use population::Population;
pub use procedures::make_procedures;
pub use space::{Space, space};

/// The most connections if the user does not choose their number: three tables have nearly all of the rows.
const CONNECTIONS: usize = 4;

/// Makes the tables over the session and as many more as `jobs` asks for, at most one for each table. Tables of an earlier
/// load are replaced, those of others are not.
pub fn load(session: Session, target: &Arc<Target>, made: Made, jobs: Option<usize>) -> Result<(), TablesError> {
    let began = Instant::now();
    let dbname = &target.params.dbname;
    load_all(session, target, made, jobs).map_err(|error| match error {
        Refusal::Foreign { name, is_copy } => {
            let (dbname, table) = (dbname.clone(), format!("table {name}"));
            TablesError::Foreign(Foreign { dbname, table, program: NAME, is_copy })
        }
        Refusal::Failed(error) => TablesError::Make { what: "the tables of order entry", error },
    })?;
    let warehouses = plural(made.warehouses, "warehouse");
    (target.user.tell)(&format!("{warehouses} loaded in {:.2} s", began.elapsed().as_secs_f64()));
    Ok(())
}

/// Why nothing was made, or not all.
enum Refusal {
    /// A table that was not made here has one of the names.
    Foreign {
        name: String,
        is_copy: bool,
    },
    Failed(LoadError),
}

impl From<LoadError> for Refusal {
    fn from(error: LoadError) -> Self {
        Self::Failed(error)
    }
}

fn load_all(mut session: Session, target: &Arc<Target>, made: Made, jobs: Option<usize>) -> Result<(), Refusal> {
    let before = mark::present(&mut session)?;
    if let Some(foreign) = before.iter().find(|table| !table.is_ours()) {
        return Err(Refusal::Foreign { name: foreign.name.clone(), is_copy: foreign.is_like_ours() });
    }
    if !before.is_empty() {
        let names: Vec<_> = before.iter().map(|table| table.name.as_str()).collect();
        execute(&mut session, &format!("drop table {}", names.join(", ")))?;
    }
    let sessions = open_sessions(session, target, jobs)?;
    let population = Population::new(made.warehouses, made.seed);
    let rows = TABLES.iter().map(|table| (table.count)(&population)).sum();
    let style = if stderr().is_terminal() { ProgressStyle::Bar } else { ProgressStyle::Quiet };
    let progress = Arc::new(TableProgress::new("the tables of order entry", rows, style, target.user));
    let max_kb = MAX_SORT_MEMORY_KB / sessions.len() as u64;
    let shown = Arc::clone(&progress);
    let done = for_each(sessions, TABLES.into(), move |session, table, stop| {
        make_table(session, table, population, made.fillfactor, max_kb, &shown, stop)
    });
    progress.clear();
    let mut sessions = done?;
    let Some(session) = sessions.first_mut() else { return Err(LoadError::ThreadLost.into()) };
    if made.foreign_keys {
        foreign_keys().iter().try_for_each(|sql| execute(session, sql))?;
    }
    // From here on the tables are complete.
    Marks::open(session)?.set_on_table(session, "warehouse", &made.to_string())?;
    Ok(())
}

/// The session, and others beside it.
fn open_sessions(session: Session, target: &Arc<Target>, jobs: Option<usize>) -> Result<Vec<Session>, LoadError> {
    let processors = thread::available_parallelism().map_or(1, |count| count.get());
    let wanted = jobs.unwrap_or(processors.min(CONNECTIONS)).min(TABLES.len());
    // With several hosts, another connection might reach another server.
    let params = &target.params;
    let is_alone = params.endpoints.len() > 1 || params.load_balance_random;
    let mut sessions = vec![session];
    while sessions.len() < wanted && !is_alone {
        match Session::open(target) {
            Ok(helper) => sessions.push(helper),
            // The user did not choose the number of connections: fewer will do.
            Err(_) if jobs.is_none() => break,
            Err(error) => return Err(LoadError::Connect(error)),
        }
    }
    Ok(sessions)
}

fn make_table(
    session: &mut Session,
    table: &Table,
    population: Population,
    fillfactor: u32,
    max_kb: u64,
    progress: &TableProgress,
    stop: &AtomicBool,
) -> Result<(), LoadError> {
    let raise = raise_sort_memory(session, (table.count)(&population), max_kb)?;
    execute(session, "begin")?;
    raise.iter().try_for_each(|sql| execute(session, sql))?;
    execute(session, &table.create(fillfactor))?;
    Marks::open(session)?.set_on_table(session, table.name, mark::PART)?;
    let rows = (table.rows)(population);
    copy_rows(session, &table.copy(), CopyFormat::Binary, rows, progress, stop).map_err(LoadError::Copy)?;
    table.keys().iter().try_for_each(|sql| execute(session, sql))?;
    execute(session, "commit")?;
    // This makes statistics for the planner, and leaves no page that the first read would write.
    execute(session, &format!("vacuum analyze {}", table.name))
}
