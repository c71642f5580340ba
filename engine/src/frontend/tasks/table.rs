//! table_a: made as published, and found again.

use std::time::Instant;

use super::options::Options;
use crate::connection::error::ConnectionError;
use crate::connection::session::Session;
use crate::frontend::pgbench::messages::tell;

/// How many rows the table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Values of thread_id, from 1.
    pub threads: u32,
    /// Rows of each, with values of a_value from 1.
    pub rows: u32,
}

impl Shape {
    /// That of the published study.
    pub const PUBLISHED: Shape = Shape { threads: 10, rows: 100_000 };

    /// The comment by which a table is known as one of ours.
    fn comment(self) -> String {
        format!("{COMMENT}{} x {}", self.threads, self.rows)
    }

    fn from_comment(text: &str) -> Option<Self> {
        let (threads, rows) = text.strip_prefix(COMMENT)?.split_once(" x ")?;
        Some(Self { threads: threads.parse().ok()?, rows: rows.parse().ok()? })
    }
}

const COMMENT: &str = "pgtrial tasks: ";

/// What the catalog says of a table of this name.
enum Present {
    No,
    Ours(Shape),
    /// Not made here, or no longer marked.
    Other,
}

/// The server must be one that takes writes.
pub fn refuse_read_only(session: &mut Session) -> Result<(), String> {
    const SQL: &str = "select pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only')";
    let rows = session.query(SQL).map_err(|error| error.to_string())?;
    match rows.first().map(|row| row.iter().map(Option::as_deref).collect::<Vec<_>>()).as_deref() {
        Some([Some("t"), _]) => {
            Err("the server is a read-only standby, and tasks update a table; name the primary".to_owned())
        }
        Some([_, Some("on")]) => {
            Err("transactions of this user are read-only (default_transaction_read_only), and tasks update a table"
                .to_owned())
        }
        _ => Ok(()),
    }
}

/// Makes the table, its index and its rows, as published: rows by generate_series, one statement for each thread_id. A
/// table of that name is replaced only if it was made here.
pub fn make(session: &mut Session, shape: &Shape, dbname: &str) -> Result<(), String> {
    match present(session)? {
        Present::Other => {
            return Err(format!(
                "database \"{dbname}\" has a table_a that was not made by {}; rename it, or name another database",
                super::NAME
            ));
        }
        Present::Ours(_) => execute(session, "drop table table_a")?,
        Present::No => {}
    }
    let began = Instant::now();
    let since = |start: Instant| start.elapsed().as_secs_f64() * 1000.0;
    execute(session, "create table table_a (thread_id int, a_value int)")?;
    execute(session, "create index table_a_thread_id on table_a (thread_id)")?;
    for thread in 1..=shape.threads {
        execute(
            session,
            &format!("insert into table_a select {thread}, pg_catalog.generate_series(1, {})", shape.rows),
        )?;
        let (made, all) = (u64::from(thread) * u64::from(shape.rows), u64::from(shape.threads) * u64::from(shape.rows));
        tell(format_args!("{made} of {all} rows of table_a made ({:.1} s)\n", since(began) / 1000.0));
    }
    let made = since(began);
    let began = Instant::now();
    execute(session, &format!("comment on table table_a is '{}'", shape.comment()))?;
    execute(session, "vacuum analyze table_a")?;
    tell(format_args!(
        "table_a: {} x {} rows created in {made:.0} ms, vacuumed in {:.0} ms\n",
        shape.threads,
        shape.rows,
        since(began)
    ));
    Ok(())
}

/// The table's shape: as it was made here, else as the options have it.
pub fn find(session: &mut Session, options: &Options, dbname: &str) -> Result<Shape, String> {
    let shape = match present(session)? {
        Present::No => {
            return Err(format!(
                "there is no table_a in database \"{dbname}\"; make it with \"{} --initialize\"",
                super::NAME
            ));
        }
        Present::Other => return Ok(options.shape()),
        Present::Ours(shape) => shape,
    };
    for (option, given, made) in
        [("--threads-in-table", options.threads_in_table, shape.threads), ("--rows", options.rows, shape.rows)]
    {
        if let Some(given) = given.filter(|given| *given != made) {
            return Err(format!(
                "{option} is {given}, but table_a was made with {made}; leave the option out, or make the table anew with --initialize"
            ));
        }
    }
    Ok(shape)
}

fn present(session: &mut Session) -> Result<Present, String> {
    const SQL: &str = "select pg_catalog.obj_description(oid, 'pg_class') \
        from pg_catalog.pg_class where oid = pg_catalog.to_regclass('table_a')";
    let rows = session.query(SQL).map_err(|error| error.to_string())?;
    let Some(row) = rows.into_iter().next() else { return Ok(Present::No) };
    let comment = row.into_iter().next().flatten().unwrap_or_default();
    Ok(Shape::from_comment(&comment).map_or(Present::Other, Present::Ours))
}

fn execute(session: &mut Session, sql: &str) -> Result<(), String> {
    session.query(sql).map(drop).map_err(|error| describe(&error))
}

/// Why the table could not be made.
fn describe(error: &ConnectionError) -> String {
    const DENIED: &str = "42501";
    match error {
        ConnectionError::Server(server) if server.sqlstate == DENIED => format!(
            "could not make table_a: {}; name a database in which this user may create tables, or grant that right",
            server.message
        ),
        other => format!("could not make table_a: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_ours_says_how_large_it_is() {
        let shape = Shape { threads: 3, rows: 50 };
        assert_eq!(Shape::from_comment(&shape.comment()), Some(shape));
        for text in ["", "pgtrial tasks: ", "pgtrial tasks: 3 x", "accounts", "pgtrial tasks: a x b"] {
            assert_eq!(Shape::from_comment(text), None, "{text}");
        }
    }
}
