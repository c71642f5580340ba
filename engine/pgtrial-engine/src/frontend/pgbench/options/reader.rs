//! Reads pgbench's command line, and describes its options for the help and the manual page. Options are checked in the
//! order in which they are given, and only the first mistake is reported.

use std::os::unix::ffi::OsStrExt;

use super::arguments::{Arguments, PgbenchCommand};
use super::sections::HelpSection;
use super::settle::settle;
use super::table::{OPTIONS, PgbenchOption};
use super::values::random_seed;
use crate::frontend::common::failure::Failure;
use crate::frontend::common::values::seed_of_time;
use crate::frontend::pgbench::program::VERSION;
use ground::getopt::Getopt;
use ground::manual::{Manual, entries};
use ground::options::Stop;

/// The long options of PostgreSQL's pgbench, in the order of `long_options` in pgbench.c. The error about an ambiguous
/// abbreviation lists the possible options in this order.
#[rustfmt::skip]
const ORIGINALS: &[&str] = &[
    "builtin", "client", "connect", "dbname", "define", "file", "fillfactor", "host", "initialize", "init-steps", "jobs",
    "log", "latency-limit", "no-vacuum", "port", "progress", "protocol", "quiet", "report-per-command", "rate", "scale",
    "select-only", "skip-some-updates", "time", "transactions", "username", "vacuum-all", "unlogged-tables", "tablespace",
    "index-tablespace", "sampling-rate", "aggregate-interval", "progress-timestamp", "log-prefix", "foreign-keys",
    "random-seed", "show-script", "partitions", "partition-method", "failures-detailed", "max-tries", "verbose-errors",
    "exit-on-abort", "debug",
];

/// Reads the arguments, without the program's name. As in pgbench, `--help` and `--version` count only as the first
/// argument.
pub fn parse(args: Vec<String>) -> Result<PgbenchCommand, Stop<Failure>> {
    match args.first().map(String::as_str) {
        Some("--help" | "-?") => return Err(Stop::Print(manual().help())),
        Some("--version" | "-V") => return Err(Stop::Print(version())),
        _ => {}
    }
    let mut arguments = Arguments::new(seed_of_time());
    if let Some(seed) = std::env::var_os("PGBENCH_RANDOM_SEED") {
        let seed = ground::text::of(seed.as_bytes());
        arguments.run.load.seed = random_seed(&seed).map_err(|failure| {
            failure.and("error while setting random seed from PGBENCH_RANDOM_SEED environment variable")
        })?;
    }
    let mut given = Vec::new();
    let mut getopt = Getopt::new(OPTIONS, ORIGINALS, args);
    for option in getopt.by_ref() {
        let (row, value) = option.map_err(Failure::from)?;
        given.push(row);
        arguments.uses_additions |= matches!(row.group, HelpSection::Added(_));
        row.apply(&mut arguments, &value)?;
    }
    Ok(settle(arguments, &given, getopt.into_positional())?)
}

/// Returns the description of pgbench and its options. Options that pgtrial adds are in a section of their own.
pub fn manual() -> Manual {
    let mut options = entries(OPTIONS, |group| group.title());
    // pgbench accepts these two options only as the first argument, so they are not in the table of options.
    let first = [
        PgbenchOption::action(
            "-V, --version",
            HelpSection::Common,
            "output version information, then exit",
            |_| Ok(()),
        ),
        PgbenchOption::action("-?, --help", HelpSection::Common, "show this help, then exit", |_| Ok(())),
    ];
    options.extend(entries(&first, |group| group.title()));
    Manual {
        about: "pgbench is a benchmarking tool for PostgreSQL.",
        usage: &["pgbench [OPTION]... [DBNAME]"],
        description: "",
        options,
        notes: "This pgbench is a part of pgtrial, not of PostgreSQL.\nReport bugs to <the maintainers of pgtrial>."
            .to_owned(),
    }
}

/// Returns the text of `--version`.
fn version() -> String {
    format!("pgbench (PostgreSQL) {VERSION} (pgtrial {})\n", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_originals_are_all_options_but_the_added_ones() {
        for row in OPTIONS {
            let is_added = matches!(row.group, HelpSection::Added(_));
            assert_eq!(ORIGINALS.contains(&row.long()), !is_added, "{}", row.long());
            assert_eq!(row.takes_value(), row.spec.contains('='), "{}", row.spec);
        }
        assert!(ORIGINALS.iter().all(|long| OPTIONS.iter().any(|row| row.long() == *long)));
    }
}
