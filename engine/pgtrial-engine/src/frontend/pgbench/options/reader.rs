//! Reads pgbench's command line, and prints its help. The first mistake is reported, in the order of the options.

use std::os::unix::ffi::OsStrExt;

use super::fields::Options;
use super::sections::HelpSection;
use super::settle::settle;
use super::table::OPTIONS;
use super::values::{is_number, random_seed, seed_of_time};
use crate::frontend::pgbench::messages::{Failure, VERSION};
use ground::getopt::Getopt;
use ground::options::{Stop, help, help_line};

/// The original's long options in the order of `long_options` in pgbench.c, in which the possibilities of an ambiguous
/// abbreviation are listed.
#[rustfmt::skip]
const ORIGINALS: &[&str] = &[
    "builtin", "client", "connect", "dbname", "define", "file", "fillfactor", "host", "initialize", "init-steps", "jobs",
    "log", "latency-limit", "no-vacuum", "port", "progress", "protocol", "quiet", "report-per-command", "rate", "scale",
    "select-only", "skip-some-updates", "time", "transactions", "username", "vacuum-all", "unlogged-tables", "tablespace",
    "index-tablespace", "sampling-rate", "aggregate-interval", "progress-timestamp", "log-prefix", "foreign-keys",
    "random-seed", "show-script", "partitions", "partition-method", "failures-detailed", "max-tries", "verbose-errors",
    "exit-on-abort", "debug",
];

/// Reads the arguments, without the program's name. Help and version are asked for by the first argument or not at all, as
/// in pgbench.
pub fn parse(args: Vec<String>) -> Result<Box<Options>, Stop<Failure>> {
    match args.first().map(String::as_str) {
        Some("--help" | "-?") => return Err(Stop::Print(help_text())),
        Some("--version" | "-V") => return Err(Stop::Print(version())),
        _ => {}
    }
    let mut options = Options::new(seed_of_time());
    if let Some(seed) = std::env::var_os("PGBENCH_RANDOM_SEED") {
        let seed = ground::text::of(seed.as_bytes());
        options.seed = random_seed(&seed).map_err(|failure| {
            failure.and("error while setting random seed from PGBENCH_RANDOM_SEED environment variable")
        })?;
        options.is_seeded = is_number(&seed);
    }
    let mut given = Vec::new();
    let mut getopt = Getopt::new(OPTIONS, ORIGINALS, args);
    for option in getopt.by_ref() {
        let (row, value) = option.map_err(Failure::from)?;
        given.push(row);
        options.uses_additions |= matches!(row.group, HelpSection::Added(_));
        row.apply(&mut options, &value)?;
    }
    settle(&mut options, &given, getopt.into_positional())?;
    Ok(Box::new(options))
}

/// pgbench's help, with the options that pgtrial adds in a section of their own.
fn help_text() -> String {
    let mut text =
        "pgbench is a benchmarking tool for PostgreSQL.\n\nUsage:\n  pgbench [OPTION]... [DBNAME]\n".to_owned();
    text += &help(OPTIONS, |group| group.title());
    // pgbench takes these two as the first argument only.
    text += &help_line("-V, --version", "output version information, then exit");
    text += &help_line("-?, --help", "show this help, then exit");
    text + "\nThis is pgbench as pgtrial has it.\nReport bugs to <the maintainers of pgtrial>.\n"
}

/// What `--version` prints.
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
