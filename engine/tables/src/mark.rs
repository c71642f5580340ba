//! Marks: comments on database objects that identify what this program has made. Each mark names the place of its
//! object.
//!
//! A place consists of the server, the database and the object. After a dump is restored, a database is copied or an
//! object is renamed, the comment is the same, but its object is not in the place that the mark names: so this program
//! did not make it. The lab writes and reads the same form (`lab/pgtrial/loads/marks.py`).

use wire::session::Session;

use crate::error::LoadError;
use crate::session::{execute, query};

/// The text that separates a mark's text from the place behind it.
const BEGIN: &str = " [made as ";

/// The text in place of a server's identifier, where the user is not allowed to ask for it.
const UNKNOWN: &str = "-";

/// The comment on an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The text without the place; empty without a comment.
    pub text: String,
    /// True if the place in the mark is the object's own, or if the mark names no place, as marks of versions up to
    /// 0.2.
    pub is_here: bool,
}

/// The reader and writer of the marks of one server.
pub struct Marks {
    system: String,
}

impl Marks {
    /// Asks for the server's identifier.
    pub fn open(session: &mut Session) -> Result<Self, LoadError> {
        const MAY_ASK: &str = "select pg_catalog.has_function_privilege(\
            pg_catalog.to_regprocedure('pg_catalog.pg_control_system()')::pg_catalog.oid, 'execute')";
        const ASK: &str = "select system_identifier from pg_catalog.pg_control_system()";
        let may_ask = first(query(session, MAY_ASK)?).as_deref() == Some("t");
        let system = if may_ask { first(query(session, ASK)?) } else { None };
        Ok(Self { system: system.unwrap_or_else(|| UNKNOWN.to_owned()) })
    }

    /// Reads the mark in the comment on an object. `place` is the object's own place, as the SQL of [`place_in`]
    /// returns it.
    pub fn read(&self, comment: &str, place: &str) -> Mark {
        let Some((text, named)) = comment.rsplit_once(BEGIN) else {
            return Mark { text: comment.to_owned(), is_here: true };
        };
        let is_here = [self.system.as_str(), UNKNOWN].iter().any(|system| named.strip_prefix(system) == Some(place));
        Mark { text: text.to_owned(), is_here }
    }

    /// Marks a table that unqualified names reach.
    pub fn set_on_table(&self, session: &mut Session, table: &str, text: &str) -> Result<(), LoadError> {
        self.set(
            session,
            "table",
            table,
            text,
            &format!(
                "select {} from pg_catalog.pg_class where oid = pg_catalog.to_regclass('{table}')",
                place_in("relname", "oid")
            ),
        )
    }

    /// Marks the procedures of a name that unqualified names reach.
    pub fn set_on_procedure(&self, session: &mut Session, name: &str, text: &str) -> Result<(), LoadError> {
        self.set(
            session,
            "procedure",
            name,
            text,
            &format!(
                "select {} from pg_catalog.pg_proc where proname = '{name}' and pg_catalog.pg_function_is_visible(oid)",
                place_in("proname", "oid")
            ),
        )
    }

    fn set(&self, session: &mut Session, kind: &str, name: &str, text: &str, place: &str) -> Result<(), LoadError> {
        let place = first(query(session, place)?).unwrap_or_default();
        execute(session, &format!("comment on {kind} {name} is '{text}{BEGIN}{}{place}'", self.system))
    }
}

/// Runs the query of the option `--mark-by` in the transaction of the session, and then the statements that it returns
/// as its one value: they mark what the transaction has made. Without the option nothing is marked.
pub fn mark_made(session: &mut Session, mark_by: Option<&str>) -> Result<(), LoadError> {
    let Some(sql) = mark_by else { return Ok(()) };
    match first(query(session, sql)?) {
        Some(statements) => execute(session, &statements),
        None => Ok(()),
    }
}

/// Returns the SQL of an object's place without the server's identifier; `name` and `oid` are expressions. The place
/// has plain letters alone: they are the same in every encoding, and none has to be quoted.
pub fn place_in(name: &str, oid: &str) -> String {
    let plain = |name| format!("pg_catalog.regexp_replace({name}::pg_catalog.text, '[^A-Za-z0-9_]', '?', 'g')");
    let (database, name) = (plain("pg_catalog.current_database()"), plain(name));
    format!(
        "pg_catalog.concat('.', (select d.oid from pg_catalog.pg_database d \
         where d.datname = pg_catalog.current_database()), '.', {oid}, ' ', {database}, '.', {name}, ']')"
    )
}

fn first(rows: Vec<wire::session::Row>) -> Option<String> {
    rows.into_iter().flatten().flatten().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_here_where_its_place_is() {
        let marks = Marks { system: "71".to_owned() };
        let read = |comment| marks.read(comment, ".5.9 bench.orders]");
        let is_here = |comment| (read(comment).text, read(comment).is_here);
        for (comment, text, here) in [
            ("", "", true),
            ("made by somebody", "made by somebody", true),
            ("pgtrial: 3 x 4", "pgtrial: 3 x 4", true),
            ("pgtrial: 3 x 4 [made as 71.5.9 bench.orders]", "pgtrial: 3 x 4", true),
            ("pgtrial: 3 x 4 [made as -.5.9 bench.orders]", "pgtrial: 3 x 4", true),
            ("pgtrial: 3 x 4 [made as 72.5.9 bench.orders]", "pgtrial: 3 x 4", false),
            ("pgtrial: 3 x 4 [made as 71.5.8 bench.orders]", "pgtrial: 3 x 4", false),
            ("pgtrial: 3 x 4 [made as 71.5.9 other.orders]", "pgtrial: 3 x 4", false),
            ("pgtrial: 3 x 4 [made as 71.5.9 bench.orders", "pgtrial: 3 x 4", false),
        ] {
            assert_eq!(is_here(comment), (text.to_owned(), here), "{comment}");
        }
        let blind = Marks { system: UNKNOWN.to_owned() };
        assert!(!blind.read("x [made as 71.5.9 bench.orders]", ".5.9 bench.orders]").is_here);
    }
}
