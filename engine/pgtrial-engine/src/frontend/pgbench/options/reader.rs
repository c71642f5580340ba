//! Reads pgbench's command line. The first mistake is reported, in the order of the options.

use super::chosen::Options;
use super::settle::settle;
use super::table::{HelpSection, OPTIONS, ORIGINALS, help, version};
use super::values::{is_number, random_seed, seed_of_time};
use crate::frontend::pgbench::messages::Failure;
use ground::getopt::Getopt;
use ground::options::Stop;

/// What the command line asks for.
#[derive(Debug)]
pub enum PgbenchCommand {
    Initialize(Box<Options>),
    Benchmark(Box<Options>),
}

/// Reads the arguments, without the program's name. Help and version are asked for by the first argument or not at all, as
/// in pgbench.
pub fn parse(args: Vec<String>) -> Result<PgbenchCommand, Stop<Failure>> {
    match args.first().map(String::as_str) {
        Some("--help" | "-?") => return Err(Stop::Print(help())),
        Some("--version" | "-V") => return Err(Stop::Print(version())),
        _ => {}
    }
    let mut options = Options { seed: seed_of_time(), ..Options::default() };
    if let Some(seed) = std::env::var_os("PGBENCH_RANDOM_SEED") {
        let seed = seed.to_string_lossy();
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
    let options = Box::new(options);
    Ok(if options.init.is_asked_for { PgbenchCommand::Initialize(options) } else { PgbenchCommand::Benchmark(options) })
}
