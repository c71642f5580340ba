//! The transactions as stored procedures: each is one call. They do what the statements of the workload do, and return
//! what the specification shows at the terminal.

use wire::session::Session;

use super::mark::NAME;
use crate::session::{LoadError, execute, query};

/// A stored procedure in PL/pgSQL.
struct Procedure {
    name: &'static str,
    arguments: &'static str,
    body: &'static str,
}

/// Since this version of the server, as `server_version_num`, there are procedures.
const OLDEST: u32 = 110_000;

/// One at a time makes them: several engines of a run begin together.
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

/// Makes the procedures that are missing or of another version of this program. The error is a sentence.
pub fn make_procedures(session: &mut Session) -> Result<(), String> {
    let failed = |error: LoadError| format!("could not make the procedures of order entry: {error}");
    let version = query(session, "select pg_catalog.current_setting('server_version_num')").map_err(failed)?;
    let version: u32 = version.into_iter().flatten().flatten().next().and_then(|text| text.parse().ok()).unwrap_or(0);
    if version < OLDEST {
        let server = &session.server.version;
        return Err(format!(
            "--procedures needs PostgreSQL 11 or later, and this server is {server}; run {NAME} without it"
        ));
    }
    make_missing(session).map_err(failed)
}

fn make_missing(session: &mut Session) -> Result<(), LoadError> {
    // What another engine has made while this one waited is seen, whatever the default isolation is.
    execute(session, "begin isolation level read committed")?;
    execute(session, LOCK)?;
    for procedure in &PROCEDURES {
        let found = procedure.found(session)?;
        if matches!(&found[..], [(_, body)] if body == procedure.body) {
            continue;
        }
        for (signature, _) in found {
            execute(session, &format!("drop procedure {signature}"))?;
        }
        execute(session, &procedure.create())?;
    }
    execute(session, "commit")
}

impl Procedure {
    /// The signatures and bodies of those of its name that unqualified names reach.
    fn found(&self, session: &mut Session) -> Result<Vec<(String, String)>, LoadError> {
        let sql = format!(
            "select oid::pg_catalog.regprocedure, prosrc from pg_catalog.pg_proc \
             where proname = '{}' and prokind = 'p' and pg_catalog.pg_function_is_visible(oid)",
            self.name
        );
        let rows = query(session, &sql)?.into_iter().map(|row| {
            let mut values = row.into_iter().map(Option::unwrap_or_default);
            (values.next().unwrap_or_default(), values.next().unwrap_or_default())
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
