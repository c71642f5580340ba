//! The command line of `pgtrial-engine generate`: the name of a suite of queries, the size of its tables, and the
//! server.

use crate::frontend::common::connection::with_database;
use crate::frontend::common::failure::Failure;
use crate::frontend::common::messages::FrontEnd;
use crate::frontend::common::rows::{CONNECTION, about_rows, connection_rows};
use crate::frontend::common::values::{ValueError, count_to, seed};
use ground::getopt;
use ground::manual::{Manual, entries};
use ground::options::{OptionRow, Stop, set};
use tables::suites::{NAME, SUITES, Scale, SuiteTables};
use wire::params::Given;

/// The greatest number of connections that may load rows.
const MOST_JOBS: u32 = 1000;

/// The default seed of the random values in the rows. It is the same in every run, so that making the tables again
/// gives the same rows.
const DEFAULT_SEED: u64 = 1;

/// The front end's name, with which its messages begin. A failure is printed as one sentence, and the exit status is
/// then 3.
pub const GENERATE: FrontEnd = FrontEnd::new(NAME);

/// The options: on which server tables are made, and how.
pub struct GenerateOptions {
    pub server: Given,
    pub scale: Scale,
    /// The seed of the random values in the rows.
    pub seed: u64,
    /// The number of connections that load rows. `None` means one connection for each processor, but at most four.
    pub jobs: Option<usize>,
}

type Row = OptionRow<GenerateOptions, Failure, &'static str>;

const TABLES: &str = "Tables:";

#[rustfmt::skip]
const OPTIONS: &[&[Row]] = &[&[
    Row::value("-s, --scale=NUM", TABLES,
        "size of the tables, from 0.01 to 100 (default: 1); at scale 1\nreports has about 1.5 GB and joins about 0.4 \
         GB",
        |o, v| set(&mut o.scale, v.text.parse::<Scale>().map_err(|_| ValueError::unexpected(v, Scale::RANGE)))),
    Row::value("-j, --jobs=NUM", TABLES,
        "number of connections that load rows (default: one for each\nprocessor, at most 4)",
        |o, v| set(&mut o.jobs, count_to(v, MOST_JOBS).map(|jobs| jobs as usize))),
    Row::value("--random-seed=NUM", TABLES,
        "seed of the rows, a whole number (default: 1)", |o, v| set(&mut o.seed, seed(v))),
], &connection_rows!(CONNECTION, server), &about_rows!("")];

/// Returns the description of this front end and its options, from which the help and the manual page are made.
pub fn manual() -> Manual {
    Manual {
        about: "pgtrial-engine generate makes the tables of a suite of queries.",
        usage: &["pgtrial-engine generate [OPTION]... SUITE [DBNAME]"],
        description: "\
SUITE is one of two suites: reports (a wholesale trade, for decision support) or joins (a shop
with skewed and correlated data). Tables that this program made earlier are replaced. The same
scale and seed always give the same rows, with any number of connections.",
        options: entries(OPTIONS, |title| title),
        notes: "\
The exit status is 0 if the tables were made, 3 after an error, and 130 after an interrupt."
            .to_owned(),
    }
}

/// Reads the command line (without the program's name). Returns the options, and the suite that it names.
pub fn parse(args: Vec<String>) -> Result<(GenerateOptions, &'static SuiteTables), Stop<Failure>> {
    let mut options = GenerateOptions { server: Given::default(), scale: Scale::ONE, seed: DEFAULT_SEED, jobs: None };
    let mut words = getopt::read(OPTIONS, args, &mut options)?.into_iter();
    let names = SUITES.each_ref().map(|suite| suite.name).join(" or ");
    let Some(word) = words.next() else {
        return Err(Failure::misuse(format!("name a suite: {names}")).into());
    };
    let Some(suite) = SUITES.iter().find(|suite| suite.name == word) else {
        return Err(Failure::misuse(format!("unknown suite \"{word}\"; write {names}")).into());
    };
    with_database(&mut options.server, words)?;
    Ok((options, suite))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::lines::{all_refused, parsed};

    #[test]
    fn a_suite_has_a_scale_a_seed_and_a_database() {
        let (options, suite) = parsed("-s 0.1 joins bench --jobs 3 --random-seed 7", parse).ok().unwrap();
        assert_eq!((suite.name, options.scale.to_string().as_str()), ("joins", "0.1"));
        assert_eq!((options.seed, options.jobs, options.server.dbname.as_deref()), (7, Some(3), Some("bench")));
        let (options, suite) = parsed("reports", parse).ok().unwrap();
        assert_eq!((suite.name, options.scale, options.seed), ("reports", Scale::ONE, 1));
    }

    #[test]
    fn mistakes_are_a_sentence_each() {
        let lines = [
            ("", "name a suite: reports or joins; try \"pgtrial-engine generate --help\""),
            ("orders", "unknown suite \"orders\"; write reports or joins; try"),
            ("reports a b", "too many command-line arguments (first is \"b\"); try"),
            ("reports -s 0", "invalid value \"0\" for option -s/--scale: it must be a number from 0.01 to 100"),
            ("reports -s 101", "invalid value \"101\" for option -s/--scale"),
            ("reports -j 0", "invalid value \"0\" for option -j/--jobs: it must be a whole number"),
            ("reports --random-seed x", "invalid value \"x\" for option --random-seed: it must be a whole number"),
            ("reports --bogus", "unrecognized option '--bogus'; try"),
        ];
        all_refused(GENERATE, parse, &lines);
    }
}
