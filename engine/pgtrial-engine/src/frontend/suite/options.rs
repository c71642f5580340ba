//! The command line of `pgtrial-engine suite`, and the query files that it names.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use crate::event::Events;
use crate::frontend::common::connection::with_database;
use crate::frontend::common::failure::Failure;
use crate::frontend::common::messages::FrontEnd;
use crate::frontend::common::rows::{CONNECTION, OUTPUT, about_rows, connection_rows};
use crate::frontend::common::values::{count_to, positive_seconds, seed, seed_of_time};
use ground::getopt;
use ground::manual::{Manual, entries};
use ground::options::{OptionRow, Stop, set};
use ground::output::could_not;
use wire::params::Given;

const NAME: &str = "pgtrial-engine suite";

/// The front end's name, with which its messages begin. A failure is printed as one sentence, and the exit status is
/// then 3.
pub const SUITE: FrontEnd = FrontEnd::new(NAME);

const MOST_RUNS: u32 = 1_000_000;

/// The options of a run: which queries run, on which server and how often, and which results are written.
#[derive(Debug)]
pub struct SuiteOptions {
    files: Vec<PathBuf>,
    pub server: Given,
    /// The number of measured runs of each query.
    pub runs: u32,
    /// True if all queries run once before the measured runs, without being measured.
    pub warms_up: bool,
    pub limit: Duration,
    pub seed: u64,
    /// True if the engine closes its connection before each query and waits for a line on standard input, so that the
    /// caller can restart the server or empty caches.
    pub pauses: bool,
    pub events: Option<Events>,
}

impl SuiteOptions {
    fn new() -> Self {
        Self {
            files: Vec::new(),
            server: Given::default(),
            runs: 1,
            warms_up: false,
            limit: Duration::from_secs(60),
            seed: seed_of_time(),
            pauses: false,
            events: None,
        }
    }

    /// Returns true if the events are written to standard output. Other results must then not be written there.
    pub fn has_only_events(&self) -> bool {
        self.events == Some(Events::Stdout)
    }

    /// Reads the queries from the files that the options name.
    pub fn queries(&self) -> Result<Vec<Query>, Failure> {
        if self.files.is_empty() {
            return Err(Failure::misuse("name one or more files with queries (-f FILE)"));
        }
        let mut names = BTreeSet::new();
        let mut queries = Vec::new();
        for path in &self.files {
            let shown = ground::text::of_path(path);
            let text = ground::trust::read_file(path).map_err(could_not(format_args!("read \"{shown}\"")))?;
            let stem = path.file_stem().map(PathBuf::from).unwrap_or_default();
            let name = ground::text::of_path(&stem);
            if !names.insert(name.clone()) {
                let message = format!(
                    "two files are called \"{name}\"; rename one of them, since results name queries after their files"
                );
                return Err(Failure::error(message));
            }
            queries.push(Query { name, text });
        }
        Ok(queries)
    }
}

/// A query of the suite.
#[derive(Debug)]
pub struct Query {
    /// The name of the query: the name of its file without directory and extension.
    pub name: String,
    pub text: Vec<u8>,
}

/// A row of the table of options. The third type parameter is the type of the headings under which the help lists
/// options.
type Row = OptionRow<SuiteOptions, Failure, &'static str>;

const QUERIES: &str = "Queries:";

#[rustfmt::skip]
const OPTIONS: &[&[Row]] = &[&[
    Row::value("-f, --file=FILE", QUERIES, "run the statements of FILE as one query; may be given many times",
        |o, v| { o.files.push(ground::text::path(v.text)); Ok(()) }),
    Row::value("--limit=SECONDS", QUERIES, "cancel a query that runs longer than this (default: 60)",
        |o, v| set(&mut o.limit, positive_seconds(v))),
    Row::switch("--pause", QUERIES,
        "before each query close the connection and wait for a line on\nstandard input",
        |o| &mut o.pauses),
    Row::value("--random-seed=NUM", QUERIES,
        "seed of the random order of the queries, a whole number\n(default: the current time)",
        |o, v| set(&mut o.seed, seed(v))),
    Row::value("--runs=NUM", QUERIES, "run each query NUM times, in a new order each time (default: 1)",
        |o, v| set(&mut o.runs, count_to(v, MOST_RUNS))),
    Row::switch("--warmup", QUERIES,
        "run each query once before the measured runs, without counting\nit", |o| &mut o.warms_up),

    Row::value("--events=FILE", OUTPUT,
        "write the events of the run as JSON Lines to FILE, or with \"-\"\nto standard output instead of the report",
        |o, v| set(&mut o.events, Ok::<_, Failure>(Events::named(v.text)))),
], &connection_rows!(CONNECTION, server), &about_rows!("")];

/// Returns the description of this front end and its options, from which the help and the manual page are made.
pub fn manual() -> Manual {
    Manual {
        about: "pgtrial-engine suite runs queries one after the other and times each.",
        usage: &["pgtrial-engine suite [OPTION]... -f FILE [-f FILE]... [DBNAME]"],
        description: "\
The queries run in one session, in random order. The time of a query is measured from sending
it to the end of its result. If a query is cancelled at the limit, the limit counts as its
time. After each query, settings that it changed are reset, and a transaction that it left
open is rolled back.",
        options: entries(OPTIONS, |title| title),
        notes: "\
The exit status is 0 if the run is complete, even if queries failed; 2 if the connection is
lost; 3 if an option is invalid or a file cannot be written; 130 after an interrupt."
            .to_owned(),
    }
}

/// Reads the command line (without the program's name).
pub fn parse(args: Vec<String>) -> Result<SuiteOptions, Stop<Failure>> {
    let mut options = SuiteOptions::new();
    let positional = getopt::read(OPTIONS, args, &mut options)?;
    with_database(&mut options.server, positional)?;
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::lines::parsed;

    #[test]
    fn options_are_read_in_any_order() {
        let options =
            parsed("-f a/q1.sql bench --runs 3 --limit 1.5 -f q2.sql --pause --random-seed=7", parse).unwrap();
        assert_eq!(options.files, [PathBuf::from("a/q1.sql"), PathBuf::from("q2.sql")]);
        assert_eq!((options.runs, options.limit, options.seed), (3, Duration::from_millis(1500), 7));
        assert_eq!((options.pauses, options.warms_up), (true, false));
        assert_eq!(options.server.dbname.as_deref(), Some("bench"));
    }

    #[test]
    fn mistakes_are_a_sentence_each() {
        let rejected = |line: &str| match parsed(line, parse) {
            Ok(options) => SUITE.describe(&options.queries().unwrap_err()),
            Err(mistake) => SUITE.describe(&mistake),
        };
        for (line, message) in [
            ("", "name one or more files with queries (-f FILE); try \"pgtrial-engine suite --help\""),
            ("--runs 0", "invalid value \"0\" for option --runs: it must be a whole number from 1 to 1000000"),
            ("--limit 0", "invalid value \"0\" for option --limit: it must be a number of seconds from 0.001"),
            ("-f /nowhere/q1.sql", "could not read \"/nowhere/q1.sql\": No such file or directory"),
            (
                "-f /dev/null -f /dev/null",
                "two files are called \"null\"; rename one of them, since results name queries after their files",
            ),
            ("a b", "too many command-line arguments (first is \"b\")"),
        ] {
            let found = rejected(line);
            assert!(found.starts_with(&format!("pgtrial-engine suite: error: {message}")), "{line}: {found}");
        }
    }
}
