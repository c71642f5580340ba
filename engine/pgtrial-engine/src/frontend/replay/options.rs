//! The command line of `pgtrial-engine replay`: its options, and the check that they fit together.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use crate::event::Events;
use crate::frontend::common::connection::with_database;
use crate::frontend::common::failure::Failure;
use crate::frontend::common::messages::FrontEnd;
use crate::frontend::common::rows::{CONNECTION, OUTPUT, about_rows, connection_rows};
use crate::frontend::common::values::{ValueError, count_to, positive_seconds, seed};
use drive::plan::ReplayTiming;
use drive::start_at::StartAt;
use ground::getopt::{Getopt, GetoptError};
use ground::manual::{Manual, entries};
use ground::options::{Argument, OptionRow, Stop, set};
use wire::params::Given;
use workload::replay::Choice;

const NAME: &str = "pgtrial-engine replay";

/// The front end's name, with which its messages begin. A failure is printed as one sentence, and the exit status is
/// then 3.
pub const REPLAY: FrontEnd = FrontEnd::new(NAME);

const MOST_CONNECTIONS: u32 = 1_000_000;
const MOST_COPIES: u32 = 10_000;
const MOST_LINES: u32 = 100_000;

/// The greatest factor for the speed. At this speed a recorded day takes less than a tenth of a second.
const HIGHEST_SPEED: f64 = 1e6;

/// The options of a replay: what is replayed, on which server and how fast, and which results are written.
#[derive(Debug)]
pub struct ReplayOptions {
    /// The directory of the capture, which contains the recorded sessions.
    pub directory: PathBuf,
    pub server: Given,
    speed: Option<f64>,
    is_back_to_back: bool,
    /// The percentage of the recorded sessions that is replayed.
    pub sample: f64,
    pub copies: u32,
    seed: u64,
    pub max_connections: Option<usize>,
    pub jobs: usize,
    pub time: Option<Duration>,
    pub start: Option<StartAt>,
    pub events: Option<Events>,
    /// The number of templates (statement texts without their values) that the report lists.
    pub listed: usize,
    pub hashes_results: bool,
    /// The numbers of the templates (statement texts without their values) for which an example statement is printed.
    /// If this set is not empty, nothing is replayed.
    pub examples: BTreeSet<u32>,
}

impl ReplayOptions {
    fn new() -> Self {
        Self {
            directory: PathBuf::new(),
            server: Given::default(),
            speed: None,
            is_back_to_back: false,
            sample: 100.0,
            copies: 1,
            seed: 0,
            max_connections: None,
            jobs: 1,
            time: None,
            start: None,
            events: None,
            listed: 20,
            hashes_results: false,
            examples: BTreeSet::new(),
        }
    }

    /// Returns the timing of the replay: at the recorded times, divided by the speed, or as fast as possible.
    pub fn timing(&self) -> ReplayTiming {
        if self.is_back_to_back {
            return ReplayTiming::BackToBack;
        }
        ReplayTiming::Recorded { speed: self.speed.unwrap_or(1.0) }
    }

    /// Returns which sessions are replayed: a share of the recorded sessions that is chosen at random, the seed of this
    /// choice, and how many copies of each chosen session run.
    pub fn choice(&self) -> Choice {
        Choice { share: self.sample / 100.0, seed: self.seed, copies: self.copies }
    }

    /// Returns true if the events are written to standard output. The report must then not be written there.
    pub fn has_only_events(&self) -> bool {
        self.events == Some(Events::Stdout)
    }

    /// Returns the seed of the random choice of sessions.
    pub fn seed(&self) -> u64 {
        self.seed
    }
}

/// A row of the table of options. The third type parameter is the type of the headings under which the help lists
/// options.
type Row = OptionRow<ReplayOptions, Failure, &'static str>;

const SESSIONS: &str = "Replay:";

#[rustfmt::skip]
const OPTIONS: &[&[Row]] = &[&[
    Row::switch("--as-fast-as-possible", SESSIONS,
        "send each statement as soon as the statement before it in the\n\
         session has ended, without the recorded pauses",
        |o| &mut o.is_back_to_back),
    Row::value("--copies=NUM", SESSIONS, "replay each session NUM times at the same time (default: 1)",
        |o, v| set(&mut o.copies, count_to(v, MOST_COPIES))),
    Row::value("-j, --jobs=NUM", SESSIONS, "number of threads (default: 1)",
        |o, v| set(&mut o.jobs, count_to(v, MOST_CONNECTIONS).map(|jobs| jobs as usize))),
    Row::value("--max-connections=NUM", SESSIONS,
        "greatest number of connections at the same time; further\n\
         sessions wait (default: the greatest number of sessions that\n\
         were open at the same time in the recording)",
        |o, v| set(&mut o.max_connections, count_to(v, MOST_CONNECTIONS).map(|most| most as usize))),
    Row::value("--random-seed=NUM", SESSIONS, "seed of the random choice of --sample (default: 0)",
        |o, v| set(&mut o.seed, seed(v))),
    Row::value("--sample=PERCENT", SESSIONS,
        "replay only this share of the sessions, chosen at random, such\n\
         as 25%, but at least one session (default: 100%)",
        |o, v| set(&mut o.sample, percent(v))),
    Row::value("--speed=NUM", SESSIONS, "divide the recorded times by NUM (default: 1)",
        |o, v| set(&mut o.speed, speed(v))),
    Row::value("--start-at=WHEN", SESSIONS,
        "begin the load at this time, at most 60 s from now: Unix\n\
         seconds with decimals, or monotonic:SECONDS of this machine's\n\
         monotonic clock; with \"-\" the time is read as a line from\n\
         standard input when everything is ready",
        |o, v| set(&mut o.start, StartAt::read(v.text))),
    Row::value("-T, --time=SECONDS", SESSIONS,
        "begin no transaction after this time; transactions in progress\n\
         are finished without pauses (default: replay everything)",
        |o, v| set(&mut o.time, positive_seconds(v))),

    Row::value("--events=FILE", OUTPUT,
        "write the events of the run as JSON Lines to FILE, or with \"-\"\n\
         to standard output instead of the report",
        |o, v| set(&mut o.events, Ok::<_, Failure>(Events::named(v.text)))),
    Row::switch("--hash-results", OUTPUT,
        "compute a hash of the rows that the statements of each template\n\
         return (in any order), to compare the results of two replays",
        |o| &mut o.hashes_results),
    Row::value("--examples=NUM[,NUM...]", OUTPUT,
        "print a recorded statement of each of these templates (numbers\n\
         as in the report) as a line of JSON, and replay nothing",
        |o, v| set(&mut o.examples, templates(v))),
    Row::value("--list=NUM", OUTPUT, "list NUM templates (statements without their values) in the\nreport (default: 20)",
        |o, v| set(&mut o.listed, count_to(v, MOST_LINES).map(|lines| lines as usize))),
], &connection_rows!(CONNECTION, server), &about_rows!("")];

/// Returns the description of this front end and its options, from which the help and the manual page are made.
pub fn manual() -> Manual {
    Manual {
        about: "pgtrial-engine replay runs the sessions of a capture against a server.",
        usage: &["pgtrial-engine replay [OPTION]... DIRECTORY [DBNAME]"],
        description: "\
DIRECTORY is a capture, which \"pgtrial-engine capture\" makes from the logs of a server. Each
recorded session connects at its recorded time, sends its statements in their order, and
disconnects after the last one. By default each statement starts at its recorded time, or
when the statement before it in the session has ended, if that is later.",
        options: entries(OPTIONS, |title| title),
        notes: "\
The exit status is 0 if the replay is complete, even if statements failed; 2 if the capture
could not be read to its end; 3 if an option is invalid or a file cannot be written; 130
after an interrupt."
            .to_owned(),
    }
}

/// Reads the command line (without the program's name).
pub fn parse(args: Vec<String>) -> Result<ReplayOptions, Stop<Failure>> {
    let mut options = ReplayOptions::new();
    let mut getopt = Getopt::new(OPTIONS, &[], args);
    for option in getopt.by_ref() {
        let (row, value) = option.map_err(refusal)?;
        row.apply(&mut options, &value)?;
    }
    let mut positional = getopt.into_positional().into_iter();
    let directory = positional.next().ok_or_else(|| Failure::misuse("name the directory of a capture"))?;
    options.directory = ground::text::path(&directory);
    if options.is_back_to_back && options.speed.is_some() {
        let message = "--speed cannot be combined with --as-fast-as-possible: the recorded times are not used then";
        return Err(Failure::error(message).into());
    }
    with_database(&mut options.server, positional)?;
    Ok(options)
}

/// Converts an error in the command line to a failure. If the error is an unknown option that divides or interleaves
/// the loads of other front ends (`--shard`, `--slice` and related ones), the message says why a replay does not have
/// it.
fn refusal(error: GetoptError) -> Failure {
    let written = match &error {
        GetoptError::Unrecognized(written) => written.as_str(),
        _ => "",
    };
    let option = written.split('=').next().unwrap_or_default();
    match option {
        "slice" | "slice-of" | "slice-seed" => Failure::error(format!(
            "--{option} cannot be combined with a replay: recorded times would pass during the slices of other engines"
        )),
        "shard" => Failure::error("--shard cannot be combined with a replay: one engine replays all sessions"),
        _ => error.into(),
    }
}

/// Reads a percentage above 0 and up to 100. The percent sign may be left out.
fn percent(value: &Argument<'_>) -> Result<f64, ValueError> {
    let digits = value.text.trim();
    let number = digits.strip_suffix('%').unwrap_or(digits).trim_end().parse::<f64>().ok();
    let number = number.filter(|number| *number > 0.0 && *number <= 100.0);
    number.ok_or_else(|| ValueError::unexpected(value, "a share above 0% and up to 100%"))
}

/// Reads numbers of templates (statement texts without their values), separated by commas.
fn templates(value: &Argument<'_>) -> Result<BTreeSet<u32>, ValueError> {
    let numbers: Option<_> = value.text.split(',').map(|word| word.trim().parse::<u32>().ok()).collect();
    numbers.ok_or_else(|| ValueError::unexpected(value, "numbers of templates with commas between them"))
}

fn speed(value: &Argument<'_>) -> Result<f64, ValueError> {
    let number = value.text.trim().parse::<f64>().ok();
    let number = number.filter(|number| (1.0 / HIGHEST_SPEED..=HIGHEST_SPEED).contains(number));
    number.ok_or_else(|| {
        ValueError::unexpected(value, format!("a number from {} to {HIGHEST_SPEED}", 1.0 / HIGHEST_SPEED))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::lines::{self, all_refused};

    fn parsed(line: &str) -> Result<ReplayOptions, Failure> {
        lines::parsed(line, parse)
    }

    #[test]
    fn a_directory_is_enough() {
        let options = parsed("capture").unwrap();
        assert_eq!((options.directory.to_str(), options.server.dbname.as_deref()), (Some("capture"), None));
        assert_eq!(options.timing(), ReplayTiming::Recorded { speed: 1.0 });
        assert_eq!(options.choice(), Choice { share: 1.0, seed: 0, copies: 1 });
        assert_eq!((options.max_connections, options.time, options.jobs), (None, None, 1));
    }

    #[test]
    fn options_are_read_in_any_order() {
        let options =
            parsed("--sample 25% -T 1.5 capture -j2 --copies=3 shop --speed 2 --events - --random-seed 7").unwrap();
        assert_eq!(options.choice(), Choice { share: 0.25, seed: 7, copies: 3 });
        assert_eq!(options.timing(), ReplayTiming::Recorded { speed: 2.0 });
        assert_eq!((options.time, options.jobs), (Some(Duration::from_millis(1500)), 2));
        assert_eq!((options.server.dbname.as_deref(), options.has_only_events()), (Some("shop"), true));
        assert_eq!(parsed("c --as-fast").unwrap().timing(), ReplayTiming::BackToBack);
        assert_eq!(parsed("c --sample 0.5").unwrap().sample, 0.5);
        assert_eq!(Vec::from_iter(parsed("c --examples 7,3").unwrap().examples), [3, 7]);
    }

    #[test]
    fn mistakes_are_a_sentence_each() {
        let lines = [
            ("", "name the directory of a capture; try \"pgtrial-engine replay --help\""),
            ("a b c", "too many command-line arguments (first is \"c\"); try"),
            ("a --speed 0", "invalid value \"0\" for option --speed: it must be a number from 0.000001 to 1000000"),
            ("a --speed nan", "invalid value \"nan\" for option --speed"),
            (
                "a --sample 101%",
                "invalid value \"101%\" for option --sample: it must be a share above 0% and up to 100%",
            ),
            ("a --sample 0", "invalid value \"0\" for option --sample"),
            (
                "a --examples 1,x",
                "invalid value \"1,x\" for option --examples: it must be numbers of templates with commas",
            ),
            ("a --copies 0", "invalid value \"0\" for option --copies: it must be a whole number from 1 to 10000"),
            ("a --speed 2 --as-fast-as-possible", "--speed cannot be combined with --as-fast-as-possible: "),
            ("a --slice=250ms", "--slice cannot be combined with a replay: recorded times would pass"),
            ("a --slice-of 1/2", "--slice-of cannot be combined with a replay"),
            ("a --shard=1/2", "--shard cannot be combined with a replay: one engine replays all sessions"),
            ("a --bogus", "unrecognized option '--bogus'; try \"pgtrial-engine replay --help\""),
            ("a --start-at soon", "\"soon\" is not a time to start at: give Unix seconds"),
        ];
        all_refused(REPLAY, parse, &lines);
    }
}
