//! Marks: comments on database objects by which this program recognizes the tables and procedures that it has made.
//! Each mark contains the location of its object: the server, the database and the object.
//!
//! If a dump is restored, a database copied or an object renamed, the comment stays the same, but the object is no
//! longer at the location that its mark names. From this the program knows that it did not make the object. The lab
//! writes and reads marks of the same form (`lab/pgtrial/loads/marks.py`).

use wire::session::Session;

use crate::error::LoadError;
use crate::session::{execute, query};

/// The separator between the text of a mark (a comment that identifies the program's objects) and the location of the
/// object.
const BEGIN: &str = " [made as ";

/// The text that a mark (a comment that identifies the program's objects) has in place of the server's identifier, if
/// the user is not allowed to read the identifier.
const UNKNOWN: &str = "-";

/// A mark, by which this program recognizes an object that it made, as it was read from the comment on the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The comment without the location; empty if the object has no comment.
    pub text: String,
    /// True if the mark names the object's present location, or names none, like the marks of versions up to 0.2. False
    /// if the object was copied, restored or renamed after it was marked, or if the mark contains the server's
    /// identifier and the user is not allowed to read the identifier.
    pub is_here: bool,
}

/// Reads and writes the marks on the objects of one server. A mark is a comment by which this program recognizes the
/// objects that it made.
pub struct Marks {
    system: String,
}

impl Marks {
    /// Asks the server for its system identifier, which each mark (a comment that identifies the program's objects)
    /// contains.
    pub fn open(session: &mut Session) -> Result<Self, LoadError> {
        const MAY_ASK: &str = "select pg_catalog.has_function_privilege(\
            pg_catalog.to_regprocedure('pg_catalog.pg_control_system()')::pg_catalog.oid, 'execute')";
        const ASK: &str = "select system_identifier from pg_catalog.pg_control_system()";
        let may_ask = first(query(session, MAY_ASK)?).as_deref() == Some("t");
        let system = if may_ask { first(query(session, ASK)?) } else { None };
        Ok(Self { system: system.unwrap_or_else(|| UNKNOWN.to_owned()) })
    }

    /// Reads the mark of this program from the comment on an object. `place` is the object's present location, as the
    /// SQL of [`place_in`] returns it.
    pub fn read(&self, comment: &str, place: &str) -> Mark {
        let Some((text, named)) = comment.rsplit_once(BEGIN) else {
            return Mark { text: comment.to_owned(), is_here: true };
        };
        let is_here = [self.system.as_str(), UNKNOWN].iter().any(|system| named.strip_prefix(system) == Some(place));
        Mark { text: text.to_owned(), is_here }
    }

    /// Sets the mark `text`, as a comment, on the table that the unqualified name `table` denotes under the session's
    /// search_path.
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

    /// Sets the mark `text`, as a comment, on the procedures called `name` that are visible under the session's
    /// search_path.
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

/// Runs the query that the user gave with `--mark-by`, and then runs the statements that the query returns as its only
/// value. The statements mark the objects that the session's current transaction has made. Without the option this
/// function does nothing.
pub fn mark_made(session: &mut Session, mark_by: Option<&str>) -> Result<(), LoadError> {
    let Some(sql) = mark_by else { return Ok(()) };
    match first(query(session, sql)?) {
        Some(statements) => execute(session, &statements),
        None => Ok(()),
    }
}

/// Returns an SQL expression for the location of an object, without the server's identifier. `name` and `oid` are SQL
/// expressions for the object's name and OID. In the names of the database and the object, all characters other than
/// ASCII letters, digits and underscores are replaced by `?`, because ASCII is the same in every encoding and nothing
/// then has to be quoted.
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
