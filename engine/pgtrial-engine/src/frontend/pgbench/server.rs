//! Prepares the server for a run: reads the scale from pgbench's tables, and vacuums the tables.

use super::options::table::PgbenchOptions;
use super::program::{PGBENCH, VERSION};
use crate::frontend::common::failure::Failure;
use crate::frontend::common::messages::USER;
use ground::output;
use wire::error::ConnectionError;
use wire::session::Session;
use wire::target::Target;

/// Properties of the database that a run needs to know.
#[derive(Debug, Default)]
pub struct Facts {
    pub scale: u32,
    /// The partition method of pgbench_accounts and the number of its partitions. `None` if the table is not
    /// partitioned.
    pub partitions: Option<(String, u32)>,
}

/// Prints pgbench's line with the versions. It has only one version if pgbench and the server have the same major
/// version.
pub fn print_version(server: &str) {
    let same = server.split('.').next() == Some(VERSION);
    if same {
        output::print_stdout(format_args!("pgbench ({VERSION})\n"));
    } else {
        output::print_stdout(format_args!("pgbench ({VERSION}, server {server})\n"));
    }
}

/// Reads the scale and the partitioning from pgbench's tables. If the run has no built-in script, the tables need not
/// exist: they are not read, and the scale is the value of the option `-s` (default 1).
pub fn survey(session: &mut Session, options: &PgbenchOptions, target: &Target) -> Result<Facts, Failure> {
    if !options.sources.needs_tables {
        return Ok(Facts { scale: options.scale.unwrap_or(1), partitions: None });
    }
    let rows = session.query("select count(*) from pgbench_branches").map_err(|error| {
        let mut failure = Failure::error(format!("could not count number of branches: {error}"));
        if matches!(&error, ConnectionError::Server(server) if server.sqlstate == "42P01") {
            let dbname = &target.params.dbname;
            failure = failure
                .hint(format!("Perhaps you need to do initialization (\"pgbench -i\") in database \"{dbname}\"."));
        }
        failure
    })?;
    let count = rows.first().and_then(|row| row.first()?.clone()).unwrap_or_default();
    let scale = count
        .parse()
        .ok()
        .filter(|scale| *scale <= i32::MAX as u32)
        .ok_or_else(|| Failure::error(format!("invalid count(*) from pgbench_branches: \"{count}\"")))?;
    if options.scale.is_some() {
        PGBENCH.warning(format!("scale option ignored, using count from pgbench_branches table ({scale})"));
    }
    Ok(Facts { scale, partitions: partitions(session, &target.params.dbname)? })
}

fn partitions(session: &mut Session, dbname: &str) -> Result<Option<(String, u32)>, Failure> {
    let sql = if session.server.has_partitions() {
        "select p.partstrat, pg_catalog.count(i.inhparent) \
         from pg_catalog.pg_class as c \
         left join pg_catalog.pg_partitioned_table as p on (p.partrelid = c.oid) \
         left join pg_catalog.pg_inherits as i on (c.oid = i.inhparent) \
         where c.oid = pg_catalog.to_regclass('pgbench_accounts') group by 1"
    } else {
        "select null, 0 from pg_catalog.pg_class where oid = pg_catalog.to_regclass('pgbench_accounts')"
    };
    let rows = session.query(sql).map_err(Failure::error)?;
    let Some([strategy, count]) = rows.first().map(Vec::as_slice) else {
        return Err(Failure::error("no pgbench_accounts table found in \"search_path\"")
            .hint(format!("Perhaps you need to do initialization (\"pgbench -i\") in database \"{dbname}\".")));
    };
    let method = match strategy.as_deref() {
        None => return Ok(None),
        Some("r") => "range",
        Some("h") => "hash",
        Some(other) => return Err(Failure::error(format!("unexpected partition method: \"{other}\""))),
    };
    let count = count.as_deref().and_then(|count| count.parse().ok()).unwrap_or(0);
    Ok(Some((method.to_owned(), count)))
}

/// Vacuums the tables before the run. An error is reported and does not end the run.
pub fn vacuum(session: &mut Session, options: &PgbenchOptions) {
    let mut try_to = |sql: &str| {
        if let Err(error) = session.query(sql) {
            PGBENCH.report(&Failure::error(error).detail("(ignoring this error and continuing anyway)"));
        }
    };
    if !options.no_vacuum {
        (USER.show)("starting vacuum...");
        for sql in ["vacuum pgbench_branches", "vacuum pgbench_tellers", "truncate pgbench_history"] {
            try_to(sql);
        }
        (USER.tell)("end.");
        if options.vacuum_all {
            (USER.show)("starting vacuum pgbench_accounts...");
            try_to("vacuum analyze pgbench_accounts");
            (USER.tell)("end.");
        }
    }
}
