//! table_a of the published tasks: made by one engine or by several, and found again.

use std::time::Instant;

use ground::shard::Shard;
use wire::error::ConnectionError;
use wire::session::Session;
use wire::target::Target;

use crate::error::{Foreign, LoadError, TablesError};
use crate::mark::{Mark, Marks, place_in};
use crate::session::{execute, query};

/// The program whose options messages name.
pub const NAME: &str = "pgtrial-engine tasks";

/// The size of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The number of different values of the column thread_id, which are numbered from 1.
    pub threads: u32,
    /// The number of rows with each value of thread_id. Their values of the column a_value are numbered from 1.
    pub rows: u32,
}

impl Shape {
    /// The shape of the published study.
    pub const PUBLISHED: Shape = Shape { threads: 10, rows: 100_000 };

    /// Returns the published shape, except for the values that options give.
    pub fn published_but(threads: Option<u32>, rows: Option<u32>) -> Self {
        let Self { threads: published, rows: published_rows } = Self::PUBLISHED;
        Self { threads: threads.unwrap_or(published), rows: rows.unwrap_or(published_rows) }
    }

    /// Returns the text of a mark by which a table is known as one of the program's own.
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

/// The state of the table of this name in the catalog.
#[derive(PartialEq, Eq)]
enum Present {
    No,
    Ours(Shape),
    /// The table lacks rows, or VACUUM.
    Unfinished(Shape),
    /// The table was restored or copied by somebody else, from one that was made with this shape.
    Copy(Shape),
    /// The table was not made here, or is no longer marked.
    Other,
}

/// The steps that make the table, with a letter for each, in this order: `t` makes the table and its index, and
/// replaces a table that this program made; `g` generates its rows, or this engine's share of them; `v` runs VACUUM
/// ANALYZE, after which the table is finished.
pub const STEPS: &str = "tgv";

/// Returns true if these are letters of [`STEPS`], each once and in their order.
pub fn are_steps(letters: &str) -> bool {
    !letters.is_empty() && letters.chars().eq(STEPS.chars().filter(|step| letters.contains(*step)))
}

/// Makes the table, its index and its rows, as published: rows by generate_series, one statement for each thread_id. A
/// table of that name is replaced only if it was made here. An engine of several makes the rows of its share of the
/// values of thread_id.
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

/// Makes the empty table and its index, and marks them as unfinished in the same transaction, so that a table that is
/// never finished is recognized.
fn create(session: &mut Session, shape: Shape, dbname: &str) -> Result<(), TablesError> {
    let before = present(session)?;
    refuse_foreign(&before, dbname)?;
    execute(session, "begin").map_err(describe)?;
    if before != Present::No {
        // Under the lock the name keeps its table: somebody may have replaced ours since it was found.
        execute(session, "lock table table_a").map_err(describe)?;
        refuse_foreign(&present(session)?, dbname)?;
        execute(session, "drop table table_a").map_err(describe)?;
    }
    create_marked(session, shape).map_err(describe)
}

/// Marks the table as complete, unless another table has taken its place meanwhile.
fn finish(session: &mut Session, shape: Shape, dbname: &str) -> Result<(), TablesError> {
    execute(session, "begin").map_err(describe)?;
    execute(session, "lock table table_a in share update exclusive mode").map_err(describe)?;
    refuse_foreign(&present(session)?, dbname)?;
    mark(session, &shape.text(MADE)).map_err(describe)?;
    execute(session, "commit").map_err(describe)
}

/// Fails if the table was not made here.
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

/// Returns the time since `start`, milliseconds.
fn since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1000.0
}

/// Returns the shape of the existing table: the one in its mark if this program made it, otherwise the published shape
/// with the values of options.
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

/// Returns why the table could not be made.
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
