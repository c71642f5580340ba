//! The server: how pgbench reaches it, and what it asks of the database and does to it before a run.

use std::fmt::Display;
use std::sync::Arc;

use super::messages;
use super::messages::{Failure, VERSION};
use super::options::fields::Options;
use ground::output;
use wire::error::ConnectionError;
use wire::params::Given;
use wire::session::Session;
use wire::target::Target;

/// What a connection outside the run is for: `setup` or `initialization`, as messages name it.
pub type Purpose = &'static str;

/// The server that the options and the environment name. `application` is the session's name unless they name it.
pub fn target(given: &Given, application: &str, purpose: Purpose) -> Result<Arc<Target>, Failure> {
    let given = Given { fallback_application_name: application.to_owned(), ..given.clone() };
    Target::of(&given).map_err(|error| no_connection(error, purpose))
}

/// A session for the work outside the run.
pub fn session(target: &Arc<Target>, purpose: Purpose) -> Result<Session, Failure> {
    Session::open(target).map_err(|error| no_connection(error.message, purpose))
}

/// The failure to make a connection; `purpose` is what it is for.
pub fn no_connection(reason: impl Display, purpose: impl Display) -> Failure {
    Failure::error(reason).and(format_args!("could not create connection for {purpose}"))
}

/// Facts of the database that a run depends on.
#[derive(Debug, Default)]
pub struct Facts {
    pub scale: u32,
    /// Partitioning of pgbench_accounts: method and number.
    pub partitions: Option<(String, u32)>,
}

/// The line that names the versions: one version if client and server are of the same major.
pub fn print_version(server: &str) {
    let same = server.split('.').next() == Some(VERSION);
    if same {
        output::print_stdout(format_args!("pgbench ({VERSION})\n"));
    } else {
        output::print_stdout(format_args!("pgbench ({VERSION}, server {server})\n"));
    }
}

/// Asks the database for the scale and for partitions. Without built-in scripts nothing needs its tables, and the scale is
/// the option's.
pub fn survey(session: &mut Session, options: &Options, target: &Target) -> Result<Facts, Failure> {
    if !options.needs_tables {
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
        messages::warning(format!("scale option ignored, using count from pgbench_branches table ({scale})"));
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
pub fn vacuum(session: &mut Session, options: &Options) {
    let mut try_to = |sql: &str| {
        if let Err(error) = session.query(sql) {
            messages::error(format_args!("{error}\npgbench: detail: (ignoring this error and continuing anyway)"));
        }
    };
    if !options.no_vacuum {
        output::print_stderr("starting vacuum...");
        for sql in ["vacuum pgbench_branches", "vacuum pgbench_tellers", "truncate pgbench_history"] {
            try_to(sql);
        }
        output::print_stderr("end.\n");
        if options.vacuum_all {
            output::print_stderr("starting vacuum pgbench_accounts...");
            try_to("vacuum analyze pgbench_accounts");
            output::print_stderr("end.\n");
        }
    }
}
