//! The table table_a of the published tasks (docs/tasks.md): one engine or several engines make it, and later loads
//! find it.

use std::time::Instant;

use ground::shard::Shard;
use wire::error::ConnectionError;
use wire::session::Session;
use wire::target::Target;

use crate::error::{Foreign, LoadError, TablesError};
use crate::mark::{Mark, Marks, place_in};
use crate::session::{execute, query};

/// The name of the program in messages.
pub const NAME: &str = "pgtrial-engine tasks";

/// The size of table_a, as its numbers of threads and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The number of different values of the column thread_id, which are numbered from 1.
    pub threads: u32,
    /// The number of rows for each value of thread_id. Within these rows, the column a_value has the numbers from 1.
    pub rows: u32,
}

impl Shape {
    /// The size of table_a in the published study that docs/tasks.md names.
    pub const PUBLISHED: Shape = Shape { threads: 10, rows: 100_000 };

    /// Returns the shape of the published study (docs/tasks.md), with the numbers of threads and rows replaced by the
    /// options that are given.
    pub fn published_but(threads: Option<u32>, rows: Option<u32>) -> Self {
        let Self { threads: published, rows: published_rows } = Self::PUBLISHED;
        Self { threads: threads.unwrap_or(published), rows: rows.unwrap_or(published_rows) }
    }

    /// Returns the mark of a table of this shape: `begin`, and the numbers of threads and rows. The mark is the comment
    /// by which this program recognizes its own table.
    fn text(self, begin: &str) -> String {
        format!("{begin}{} x {}", self.threads, self.rows)
    }

    fn from_text(begin: &str, text: &str) -> Option<Self> {
        let (threads, rows) = text.strip_prefix(begin)?.split_once(" x ")?;
        Some(Self { threads: threads.parse().ok()?, rows: rows.parse().ok()? })
    }
}

const MADE: &str = "pgtrial tasks: ";
const UNFINISHED: &str = "pgtrial tasks, unfinished: ";

/// The state of the table of this name, according to the catalog.
#[derive(PartialEq, Eq)]
enum Present {
    No,
    Ours(Shape),
    /// This program has begun to make the table, and its mark does not say that it is complete: rows may be missing, or
    /// VACUUM was not run.
    Unfinished(Shape),
    /// Somebody has restored or copied a table that this program made with this shape.
    Copy(Shape),
    /// This program did not make the table, somebody has removed its mark, or the table is a copy of an unfinished one.
    Other,
}

/// The letters of the steps that make the table, in their order. `t` makes the table and its index, and first drops a
/// table of this name that this program made. `g` generates the rows, or this engine's share of them. `v` runs VACUUM
/// ANALYZE, and then marks the table as complete.
pub const STEPS: &str = "tgv";

/// True if `letters` are one or more letters of [`STEPS`], each at most once, in the order of `STEPS`.
pub fn are_steps(letters: &str) -> bool {
    !letters.is_empty() && letters.chars().eq(STEPS.chars().filter(|step| letters.contains(*step)))
}

/// Makes the table, its index and its rows as the published study did: one statement with generate_series for each
/// value of thread_id. Runs only the steps of which `steps` has the letters (see [`STEPS`]). Replaces a table of this
/// name only if this program made it, and fails if it did not. Without the step `t`, fails if there is no unfinished
/// table of this shape. If several engines share the load, each engine makes the rows for its share of the values of
/// thread_id.
pub fn make(
    session: &mut Session,
    shape: Shape,
    steps: &str,
    shard: Shard,
    target: &Target,
) -> Result<(), TablesError> {
    let dbname = target.params.dbname.as_str();
    let began = Instant::now();
    if steps.contains('t') {
        create(session, shape, dbname)?;
    } else if present(session)? != Present::Unfinished(shape) {
        let Shape { threads, rows } = shape;
        return Err(TablesError::NotBegun { threads, rows, dbname: dbname.to_owned() });
    }
    if steps.contains('g') {
        generate(session, shape, shard, began)?;
    }
    let made = since(began);
    if steps.contains('v') {
        let began = Instant::now();
        execute(session, "vacuum analyze table_a").map_err(describe)?;
        finish(session, shape, dbname)?;
        let created = if steps == STEPS { format!("created in {made:.0} ms, ") } else { String::new() };
        let Shape { threads, rows } = shape;
        let vacuumed = since(began);
        (target.user.tell)(&format!("table_a: {threads} x {rows} rows {created}vacuumed in {vacuumed:.0} ms"));
    }
    Ok(())
}

/// Makes the empty table and its index, and marks the table as unfinished in the same transaction, so that later runs
/// recognize a table that was never finished.
fn create(session: &mut Session, shape: Shape, dbname: &str) -> Result<(), TablesError> {
    let before = present(session)?;
    refuse_foreign(&before, dbname)?;
    execute(session, "begin").map_err(describe)?;
    if before != Present::No {
        // Nobody can rename or replace the table while it is locked. Before the lock, somebody may have put a table of
        // their own under this name, so the table is examined again.
        execute(session, "lock table table_a").map_err(describe)?;
        refuse_foreign(&present(session)?, dbname)?;
        execute(session, "drop table table_a").map_err(describe)?;
    }
    create_marked(session, shape).map_err(describe)
}

/// Marks the table as complete. Fails if somebody has meanwhile put another table under this name.
fn finish(session: &mut Session, shape: Shape, dbname: &str) -> Result<(), TablesError> {
    execute(session, "begin").map_err(describe)?;
    execute(session, "lock table table_a in share update exclusive mode").map_err(describe)?;
    refuse_foreign(&present(session)?, dbname)?;
    mark(session, &shape.text(MADE)).map_err(describe)?;
    execute(session, "commit").map_err(describe)
}

/// Fails if the table that was found is not one that this program made.
fn refuse_foreign(found: &Present, dbname: &str) -> Result<(), TablesError> {
    let is_copy = matches!(found, Present::Copy(_));
    if !is_copy && *found != Present::Other {
        return Ok(());
    }
    let (dbname, table) = (dbname.to_owned(), "table_a".to_owned());
    Err(TablesError::Foreign(Foreign { dbname, table, program: NAME, is_copy }))
}

fn create_marked(session: &mut Session, shape: Shape) -> Result<(), LoadError> {
    execute(session, "create table table_a (thread_id int, a_value int)")?;
    execute(session, "create index table_a_thread_id on table_a (thread_id)")?;
    mark(session, &shape.text(UNFINISHED))?;
    execute(session, "commit")
}

fn mark(session: &mut Session, text: &str) -> Result<(), LoadError> {
    Marks::open(session)?.set_on_table(session, "table_a", text)
}

fn generate(session: &mut Session, shape: Shape, shard: Shard, began: Instant) -> Result<(), TablesError> {
    let own = shard.range(shape.threads.into());
    let (first, all) = (own.start, (own.end - own.start) * u64::from(shape.rows));
    for thread in own {
        let rows = format!("select {}, pg_catalog.generate_series(1, {})", thread + 1, shape.rows);
        execute(session, &format!("insert into table_a {rows}")).map_err(describe)?;
        let made = (thread + 1 - first) * u64::from(shape.rows);
        (session.user().tell)(&format!("{made} of {all} rows of table_a made ({:.1} s)", since(began) / 1000.0));
    }
    Ok(())
}

/// Returns the time since `start` in milliseconds.
fn since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1000.0
}

/// Returns the shape of the existing table. If this program made the table, the comment that marks it has the shape.
/// Otherwise the shape is that of the published study (docs/tasks.md), with the values of the options that are given.
/// Fails if there is no table, or if this program made it and it is unfinished or differs from the options that are
/// given.
pub fn find(
    session: &mut Session,
    threads: Option<u32>,
    rows: Option<u32>,
    dbname: &str,
) -> Result<Shape, TablesError> {
    let names = || (dbname.to_owned(), format!("{NAME} --initialize"));
    let shape = match present(session)? {
        Present::No => {
            let (dbname, command) = names();
            return Err(TablesError::NoTable { dbname, command });
        }
        Present::Unfinished(_) => {
            let (dbname, command) = names();
            return Err(TablesError::Unfinished { dbname, command });
        }
        Present::Other => return Ok(Shape::published_but(threads, rows)),
        Present::Ours(shape) | Present::Copy(shape) => shape,
    };
    for (option, given, made) in [("--threads-in-table", threads, shape.threads), ("--rows", rows, shape.rows)] {
        if let Some(given) = given.filter(|given| *given != made) {
            return Err(TablesError::OtherShape { option, given, made });
        }
    }
    Ok(shape)
}

fn present(session: &mut Session) -> Result<Present, LoadError> {
    let sql = format!(
        "select pg_catalog.obj_description(oid, 'pg_class'), {} \
         from pg_catalog.pg_class where oid = pg_catalog.to_regclass('table_a')",
        place_in("relname", "oid")
    );
    let found = query(session, &sql)?;
    let Some(row) = found.into_iter().next() else { return Ok(Present::No) };
    let mut values = row.into_iter().map(Option::unwrap_or_default);
    let (comment, place) = (values.next().unwrap_or_default(), values.next().unwrap_or_default());
    let Mark { text, is_here } = Marks::open(session)?.read(&comment, &place);
    let (made, unfinished) = (Shape::from_text(MADE, &text), Shape::from_text(UNFINISHED, &text));
    Ok(match (made, unfinished) {
        (Some(shape), _) if is_here => Present::Ours(shape),
        (Some(shape), _) => Present::Copy(shape),
        (None, Some(shape)) if is_here => Present::Unfinished(shape),
        _ => Present::Other,
    })
}

/// Returns the error that tells the user why the table could not be made.
fn describe(error: LoadError) -> TablesError {
    const DENIED: &str = "42501";
    const WHAT: &str = "table_a";
    match error {
        LoadError::Query { error: ConnectionError::Server(server), .. } if server.sqlstate == DENIED => {
            TablesError::Denied { what: WHAT, message: server.message }
        }
        error => TablesError::Make { what: WHAT, error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_ours_says_how_large_it_is() {
        let shape = Shape { threads: 3, rows: 50 };
        assert_eq!(Shape::from_text(MADE, &shape.text(MADE)), Some(shape));
        assert_eq!(Shape::from_text(MADE, &shape.text(UNFINISHED)), None);
        for text in ["", "pgtrial tasks: ", "pgtrial tasks: 3 x", "accounts", "pgtrial tasks: a x b"] {
            assert_eq!(Shape::from_text(MADE, text), None, "{text}");
        }
    }

    #[test]
    fn steps_are_letters_in_their_order() {
        assert!(are_steps(STEPS) && are_steps("g") && are_steps("tv"));
        for letters in ["", "vt", "gg", "tx", "t g"] {
            assert!(!are_steps(letters), "{letters}");
        }
    }
}
