//! The transactions of order entry as stored procedures, so that a client runs a transaction with one CALL. The
//! procedures run the same statements as the clients do without procedures, and return what the specification shows at
//! the terminal.

use wire::session::Session;

use super::mark::{NAME, PART};
use crate::error::{LoadError, TablesError};
use crate::mark::{Marks, place_in};
use crate::session::{execute, query};

/// A stored procedure in PL/pgSQL.
struct Procedure {
    name: &'static str,
    arguments: &'static str,
    body: &'static str,
}

/// The oldest PostgreSQL that has procedures, as `server_version_num`.
const OLDEST: u32 = 110_000;

/// The statement that lets only one session at a time make the procedures. It is needed because several engines may
/// share one load, and each of them begins by making the procedures.
const LOCK: &str = "select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('pgtrial order entry'))";

const PROCEDURES: [Procedure; 5] = [
    Procedure {
        name: "pgtrial_new_order",
        arguments: "home int, place int, buyer int, items int[], supplies int[], quantities int[], \
            inout number int default null, inout last_name text default null, inout credit text default null, \
            inout total numeric default null, inout lines text[] default null",
        body: include_str!("procedures/new_order.sql"),
    },
    Procedure {
        name: "pgtrial_payment",
        arguments: "home int, place int, buyer_home int, buyer_place int, buyer int, last_name text, amount numeric, \
            inout warehouse_address text default null, inout district_address text default null, \
            inout customer_details text default null, inout balance numeric default null, \
            inout note text default null",
        body: include_str!("procedures/payment.sql"),
    },
    Procedure {
        name: "pgtrial_order_status",
        arguments: "home int, place int, buyer int, last_name text, inout name text default null, \
            inout balance numeric default null, inout number int default null, \
            inout entered timestamptz default null, inout carrier int default null, inout lines text[] default null",
        body: include_str!("procedures/order_status.sql"),
    },
    Procedure {
        name: "pgtrial_delivery",
        arguments: "home int, carrier int, inout delivered int[] default null",
        body: include_str!("procedures/delivery.sql"),
    },
    Procedure {
        name: "pgtrial_stock_level",
        arguments: "home int, place int, threshold int, inout low int default null",
        body: include_str!("procedures/stock_level.sql"),
    },
];

/// Makes the procedures that are missing, and replaces procedures that another version of this program has made.
pub fn make_procedures(session: &mut Session) -> Result<(), TablesError> {
    let failed = |error| TablesError::Make { what: "the procedures of order entry", error };
    let version = query(session, "select pg_catalog.current_setting('server_version_num')").map_err(failed)?;
    let version: u32 = version.into_iter().flatten().flatten().next().and_then(|text| text.parse().ok()).unwrap_or(0);
    if version < OLDEST {
        return Err(TablesError::OldServer { server: session.server.version.clone(), program: NAME });
    }
    match make_missing(session).map_err(failed)? {
        None => Ok(()),
        Some(signature) => Err(TablesError::OtherProcedure { signature, program: NAME }),
    }
}

/// Makes the procedures that are missing. If a procedure of somebody else has one of the names and another body,
/// returns the signature of that procedure and commits nothing: the transaction stays open, and the server undoes it
/// when the session ends.
fn make_missing(session: &mut Session) -> Result<Option<String>, LoadError> {
    // Another engine may make the procedures while this session waits for the lock. Only READ COMMITTED shows them
    // then.
    execute(session, "begin isolation level read committed")?;
    execute(session, LOCK)?;
    let marks = Marks::open(session)?;
    for procedure in &PROCEDURES {
        let found = procedure.found(session, &marks)?;
        if matches!(&found[..], [there] if there.body == procedure.body) {
            continue;
        }
        if let Some(foreign) = found.iter().find(|there| !there.is_ours) {
            return Ok(Some(foreign.signature.clone()));
        }
        for there in found {
            execute(session, &format!("drop procedure {}", there.signature))?;
        }
        execute(session, &procedure.create())?;
        marks.set_on_procedure(session, procedure.name, PART)?;
    }
    execute(session, "commit").map(|()| None)
}

/// An existing procedure that has the name of a procedure of this program.
struct There {
    signature: String,
    body: String,
    is_ours: bool,
}

impl Procedure {
    /// Returns the procedures of this name that are visible under the session's search_path.
    fn found(&self, session: &mut Session, marks: &Marks) -> Result<Vec<There>, LoadError> {
        let sql = format!(
            "select oid::pg_catalog.regprocedure, prosrc, pg_catalog.obj_description(oid, 'pg_proc'), {} \
             from pg_catalog.pg_proc \
             where proname = '{}' and prokind = 'p' and pg_catalog.pg_function_is_visible(oid)",
            place_in("proname", "oid"),
            self.name
        );
        let rows = query(session, &sql)?.into_iter().map(|row| {
            let mut values = row.into_iter().map(Option::unwrap_or_default);
            let mut next = || values.next().unwrap_or_default();
            let (signature, body, comment, place) = (next(), next(), next(), next());
            let mark = marks.read(&comment, &place);
            There { signature, body, is_ours: mark.is_here && mark.text.starts_with(PART) }
        });
        Ok(rows.collect())
    }

    fn create(&self) -> String {
        let Self { name, arguments, body } = self;
        format!("create procedure {name}({arguments}) language plpgsql as $order_entry${body}$order_entry$")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_ends_no_quote() {
        for procedure in &PROCEDURES {
            assert!(procedure.body.trim_end().ends_with("end") && !procedure.body.contains("$order_entry$"));
            assert!(procedure.create().starts_with(&format!("create procedure {}(", procedure.name)));
        }
    }
}
