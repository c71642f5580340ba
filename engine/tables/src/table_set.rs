//! Makes a set of tables that belong together, and finds such tables by their marks (see [`crate::mark`]).
//!
//! Each table is made in one transaction over one connection: the transaction creates the table, fills it by COPY with
//! FREEZE (which only the transaction that has created the table may use) and then makes its keys. Each connection
//! takes the largest table that nobody has begun. No two connections fill the same table, so that its rows always have
//! the same order on disk.

use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use wire::session::Session;
use wire::target::Target;

use crate::copy::{CopyFormat, copy_rows};
use crate::error::{Foreign, LoadError, TablesError};
use crate::mark::{Mark, Marks, place_in};
use crate::parallel::for_each;
use crate::progress::{ProgressStyle, TableProgress};
use crate::row::RowSource;
use crate::session::{MAX_SORT_MEMORY_KB, execute, query, raise_sort_memory};

/// The greatest number of connections if the user does not choose one. More would not be faster, because a few tables
/// have nearly all of the rows.
const CONNECTIONS: usize = 4;

/// A set of tables that are made together.
pub struct TableSet {
    /// The name of the tables in messages, such as `the tables of order entry`.
    pub what: &'static str,
    /// The name of the program in messages.
    pub program: &'static str,
    /// The mark, a comment by which this program recognizes each table of the set as its own. `complete`, which the
    /// table `marked` gets later, begins with this text too.
    pub part: &'static str,
    /// The tables, the largest first.
    pub tables: Vec<PlannedTable>,
    /// The statements that make the foreign keys after all tables are filled.
    pub foreign_keys: Vec<String>,
    /// The name of the table whose mark (identifying comment) is replaced by `complete` when all tables of the set are
    /// complete.
    pub marked: &'static str,
    /// The mark (identifying comment) that the table `marked` gets when the set is complete. As long as the table has
    /// only the mark `part`, the set is not complete.
    pub complete: String,
}

/// A table of a set.
pub struct PlannedTable {
    pub name: &'static str,
    pub columns: &'static str,
    /// The fillfactor of the table in per cent.
    pub fillfactor: u32,
    /// The columns of the primary key; empty if the table has none.
    pub key: &'static str,
    /// The indexes other than the primary key's, each with its name and its columns.
    pub indexes: &'static [(&'static str, &'static str)],
    /// The number of rows that the table will have.
    pub count: u64,
    pub rows: Box<dyn Fn() -> RowSource + Send + Sync>,
}

impl PlannedTable {
    /// Returns the statement that makes the table without its keys.
    fn create(&self) -> String {
        format!("create table {} ({}) with (fillfactor={})", self.name, self.columns, self.fillfactor)
    }

    /// Returns the statements that make the primary key and the other indexes.
    fn keys(&self) -> impl Iterator<Item = String> {
        let name = self.name;
        let primary = (!self.key.is_empty()).then(|| format!("alter table {name} add primary key ({})", self.key));
        let indexes =
            self.indexes.iter().map(move |(index, columns)| format!("create index {index} on {name} ({columns})"));
        primary.into_iter().chain(indexes)
    }
}

/// Makes the tables with `jobs` connections, one of which is `session`, but with no more connections than there are
/// tables. If `jobs` is `None`, uses up to four connections, no more than there are processors, and fewer if the server
/// refuses some. If the connection string has several hosts, uses only `session`. Replaces the tables that an earlier
/// load has made, and fails if somebody else's table has one of the names.
pub fn make_set(session: Session, target: &Arc<Target>, set: TableSet, jobs: Option<usize>) -> Result<(), TablesError> {
    let dbname = &target.params.dbname;
    let (what, program) = (set.what, set.program);
    make_all(session, target, set, jobs).map_err(|error| match error {
        Refusal::Foreign { name, is_copy } => {
            let (dbname, table) = (dbname.clone(), format!("table {name}"));
            TablesError::Foreign(Foreign { dbname, table, program, is_copy })
        }
        Refusal::Failed(error) => TablesError::Make { what, error },
    })
}

/// The reason for which no table, or not every table, was made.
enum Refusal {
    /// A table that this program did not make has one of the names.
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

fn make_all(mut session: Session, target: &Arc<Target>, set: TableSet, jobs: Option<usize>) -> Result<(), Refusal> {
    let TableSet { what, part, tables, foreign_keys, marked, complete, .. } = set;
    let before = ours(&mut session, &tables, part)?;
    if !before.is_empty() {
        // Nobody can rename or replace the tables while they are locked. Before the lock, somebody may have put a table
        // of their own under one of the names, so the tables are examined again.
        execute(&mut session, "begin")?;
        execute(&mut session, &format!("lock table {}", before.join(", ")))?;
        let locked = ours(&mut session, &tables, part)?;
        execute(&mut session, &format!("drop table {}", locked.join(", ")))?;
        execute(&mut session, "commit")?;
    }
    let sessions = open_sessions(session, target, tables.len(), jobs)?;
    let rows = tables.iter().map(|table| table.count).sum();
    let style = if stderr().is_terminal() { ProgressStyle::Bar } else { ProgressStyle::Quiet };
    let progress = Arc::new(TableProgress::new(what, rows, style, target.user));
    let max_kb = MAX_SORT_MEMORY_KB / sessions.len() as u64;
    let shown = Arc::clone(&progress);
    let done =
        for_each(sessions, tables, move |session, table, stop| make_table(session, table, part, max_kb, &shown, stop));
    progress.clear();
    let mut sessions = done?;
    let Some(session) = sessions.first_mut() else { return Err(LoadError::ThreadLost.into()) };
    foreign_keys.iter().try_for_each(|sql| execute(session, sql))?;
    // The tables are complete now. Before they are marked, a lock and another check make sure that nobody has replaced
    // the table that gets the mark.
    execute(session, "begin")?;
    execute(session, &format!("lock table {marked} in share update exclusive mode"))?;
    if let Some(foreign) = present(session, [marked])?.into_iter().find(|table| !table.is_ours(part)) {
        return Err(Refusal::Foreign { is_copy: foreign.is_like_ours(part), name: foreign.name });
    }
    Marks::open(session)?.set_on_table(session, marked, &complete)?;
    execute(session, "commit")?;
    Ok(())
}

/// Returns the names of the existing tables that an earlier load of this program has made. Fails if somebody else's
/// table has one of the names.
fn ours(session: &mut Session, tables: &[PlannedTable], part: &str) -> Result<Vec<String>, Refusal> {
    let there = present(session, tables.iter().map(|table| table.name))?;
    if let Some(foreign) = there.iter().find(|table| !table.is_ours(part)) {
        return Err(Refusal::Foreign { name: foreign.name.clone(), is_copy: foreign.is_like_ours(part) });
    }
    Ok(there.into_iter().map(|table| table.name).collect())
}

/// Opens further sessions to the same server. Returns all sessions, with the given session first.
fn open_sessions(
    session: Session,
    target: &Arc<Target>,
    tables: usize,
    jobs: Option<usize>,
) -> Result<Vec<Session>, LoadError> {
    let processors = thread::available_parallelism().map_or(1, |count| count.get());
    let wanted = jobs.unwrap_or(processors.min(CONNECTIONS)).min(tables);
    // If the connection string has several hosts, another connection might reach another server.
    let params = &target.params;
    let is_alone = params.endpoints.len() > 1 || params.load_balance_random;
    let mut sessions = vec![session];
    while sessions.len() < wanted && !is_alone {
        match Session::open(target) {
            Ok(helper) => sessions.push(helper),
            // The user did not ask for this number of connections, so fewer are used instead of failing.
            Err(_) if jobs.is_none() => break,
            Err(error) => return Err(LoadError::Connect(error)),
        }
    }
    Ok(sessions)
}

fn make_table(
    session: &mut Session,
    table: &PlannedTable,
    part: &str,
    max_kb: u64,
    progress: &TableProgress,
    stop: &AtomicBool,
) -> Result<(), LoadError> {
    let raise = raise_sort_memory(session, table.count, max_kb)?;
    execute(session, "begin")?;
    raise.iter().try_for_each(|sql| execute(session, sql))?;
    execute(session, &table.create())?;
    Marks::open(session)?.set_on_table(session, table.name, part)?;
    let copy = format!("copy {} from stdin with (format binary, freeze on)", table.name);
    copy_rows(session, &copy, CopyFormat::Binary, (table.rows)(), progress, stop).map_err(LoadError::Copy)?;
    table.keys().try_for_each(|sql| execute(session, &sql))?;
    execute(session, "commit")?;
    // VACUUM ANALYZE makes statistics for the planner, and writes the visibility map and hint bits now, so that the
    // first reader of a page does not have to write it.
    execute(session, &format!("vacuum analyze {}", table.name))
}

/// An existing table that has the same name as a table of a set.
pub struct Present {
    pub name: String,
    pub mark: Mark,
}

impl Present {
    /// True if [`make_set`] made this table and set the mark (the identifying comment) `part` on it. False for copies
    /// of such a table and for tables of others.
    fn is_ours(&self, part: &str) -> bool {
        self.mark.is_here && self.is_like_ours(part)
    }

    /// True if [`make_set`] made this table, or if this table is a copy of one that [`make_set`] made.
    pub fn is_like_ours(&self, part: &str) -> bool {
        self.mark.text.starts_with(part)
    }
}

/// Returns the existing tables that the unqualified `names` denote under the session's search_path.
pub fn present<'a>(session: &mut Session, names: impl IntoIterator<Item = &'a str>) -> Result<Vec<Present>, LoadError> {
    let names: Vec<_> = names.into_iter().map(|name| format!("'{name}'")).collect();
    let sql = format!(
        "select relname, pg_catalog.obj_description(oid, 'pg_class'), {} from pg_catalog.pg_class \
         where oid = any (select pg_catalog.to_regclass(name)::pg_catalog.oid \
         from pg_catalog.unnest(array[{}]) as name) order by relname",
        place_in("relname", "oid"),
        names.join(", ")
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
