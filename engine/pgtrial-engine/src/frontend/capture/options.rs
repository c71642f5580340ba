//! The command line of `pgtrial-engine capture`: its options, and the check that they fit together.

use std::path::PathBuf;

use crate::frontend::common::failure::Failure;
use crate::frontend::common::messages::FrontEnd;
use crate::frontend::common::rows::about_rows;
use capture::log::{COMMON, Prefix};
use capture::make::CaptureOrder;
use capture::mix::{Mix, QUERIES};
use capture::selection::{GivenMoment, Selection};
use capture::time::{Micros, Timestamp};
use capture::zones::Zones;
use ground::getopt;
use ground::manual::{Manual, entries};
use ground::options::{Argument, OptionRow, Stop, set};

const NAME: &str = "pgtrial-engine capture";

/// The front end's name, with which its messages begin. A failure is printed as one sentence, and the exit status is
/// then 3.
pub const CAPTURE: FrontEnd = FrontEnd::new(NAME);

/// The options of a capture, a recording of sessions that is made from logs: which sessions and statements are
/// recorded, and in which directory.
#[derive(Debug, Default)]
pub struct CaptureOptions {
    pub order: CaptureOrder,
    /// The settings of a synthetic mix: a capture that is not made from logs, but from the counts of statements in
    /// pg_stat_statements. Used only if the command line names files with these counts.
    pub mix: Mix,
    pub directory: PathBuf,
    /// True if the summary is printed as JSON in the form of `capture.json`. If false, it is printed as text.
    pub json: bool,
    pub quiet: bool,
}

type Row = OptionRow<CaptureOptions, Failure, ()>;

#[rustfmt::skip]
const OPTIONS: &[&[Row]] = &[&[
    Row::value("-o, --output=DIRECTORY", (), "write the capture to this new or empty directory",
        |options, value| {
            options.directory = ground::text::path(value.text);
            Ok(())
        }),
    Row::value("--prefix=FORMAT", (),
        "log_line_prefix of the server, for logs in the format stderr\n(default: guessed from the first lines)",
        |options, value| set(&mut options.order.prefix, Prefix::parse(value.text).map_err(Failure::error))),
    Row::value("--database=NAME", (), "capture only sessions of this database",
        |options, value| set(&mut options.order.selection.database, Ok::<_, Failure>(value.text.to_owned()))),
    Row::value("--application=NAME", (),
        "capture only statements with this application_name; may be given\nseveral times",
        |options, value| {
            options.order.selection.applications.push(value.text.to_owned());
            Ok(())
        }),
    Row::value("--exclude-application=NAME", (),
        "leave out statements with this application_name, such as\npg_dump; may be given several times",
        |options, value| {
            options.order.selection.excluded_applications.push(value.text.to_owned());
            Ok(())
        }),
    Row::value("--from=TIME", (),
        "capture only statements logged at this time or later, such as\n\
         '2026-11-23 08:00:00' in the time zone of the log, or\n\
         '2026-11-23 08:00:00 UTC' in another time zone",
        |options, value| set(&mut options.order.selection.from, moment(value))),
    Row::value("--to=TIME", (), "capture only statements logged before this time",
        |options, value| set(&mut options.order.selection.to, moment(value))),
    Row::value("--timezone=ZONE", (),
        "log_timezone of the server, such as Asia/Kolkata or +05:30;\n\
         needed if the logs have an abbreviation that several time zones\n\
         share",
        |options, value| set(&mut options.order.zones, Zones::of(value.text).map_err(Failure::error))),
    Row::value("--statements=FILE", (),
        "instead of reading logs, make a synthetic mix of statements from\n\
         these counts of pg_stat_statements; needs --columns and\n\
         --counted",
        |options, value| set(&mut options.mix.statements, Ok::<_, Failure>(value.text.to_owned()))),
    Row::value("--columns=FILE", (), "statistics of the columns from pg_stats, from which the mix\ndraws its values",
        |options, value| set(&mut options.mix.columns, Ok::<_, Failure>(value.text.to_owned()))),
    Row::value("--counted=SECONDS", (), "how long pg_stat_statements had counted calls, in seconds",
        |options, value| set(&mut options.mix.counted, span(value))),
    Row::value("--length=SECONDS", (),
        "length of the mix; with half the time of --counted, it has half\nof the calls (default: the time of --counted)",
        |options, value| set(&mut options.mix.length, span(value))),
    Row::value("--sessions=NUM", (), "number of sessions of the mix (default: 10)",
        |options, value| set(&mut options.mix.sessions, number(value, 1, MOST_SESSIONS).map(|number| number as u32))),
    Row::value("--random-seed=NUM", (), "seed for the random numbers of the mix (default: 0)",
        |options, value| set(&mut options.mix.seed, number(value, 0, u64::MAX))),
    Row::action("--queries", (),
        "print the psql commands that write the files statements.csv\n\
         (for --statements) and columns.csv (for --columns), then exit",
        |_| Err(Stop::Print(QUERIES.to_owned()))),
    Row::switch("--anonymize", (),
        "replace the values in statements by tokens of the same length\nthat sort in the same order",
        |options| &mut options.order.anonymize),
    Row::switch("--json", (), "print the summary as JSON", |options| &mut options.json),
    Row::switch("-q, --quiet", (), "print no progress on standard error", |options| &mut options.quiet),
], &about_rows!(())];

/// The greatest number of sessions that a synthetic mix (made from pg_stat_statements instead of logs) may have.
const MOST_SESSIONS: u64 = 100_000;

/// Returns the description of this front end and its options, from which the help and the manual page are made.
pub fn manual() -> Manual {
    let prefixes: Vec<_> = COMMON.iter().map(|prefix| format!("  '{prefix}'")).collect();
    Manual {
        about: "\
pgtrial-engine capture makes a capture from a server's logs: which statements its sessions ran,
and when. The capture can be run again with \"pgtrial-engine replay\".",
        usage: &[
            "pgtrial-engine capture [OPTION]... -o DIRECTORY LOG...",
            "pgtrial-engine capture [OPTION]... -o DIRECTORY --statements=FILE --columns=FILE --counted=SECONDS",
        ],
        description: "\
The logs are read in the given order; - stands for standard input. The formats stderr, csvlog
and jsonlog can be read, and also the logs of Amazon RDS and JSON exports of Google Cloud SQL,
Azure and CloudWatch. The server must have logged all statements (log_statement = 'all' or
log_min_duration_statement = 0), with messages in English (lc_messages = 'C').",
        options: entries(OPTIONS, |()| "Options:"),
        notes: format!(
            "Without --prefix, the lines of logs must begin with one of these prefixes:\n{}",
            prefixes.join("\n")
        ),
    }
}

/// Reads the command line (without the program's name).
pub fn parse(args: Vec<String>) -> Result<CaptureOptions, Stop<Failure>> {
    let mut options = CaptureOptions { mix: Mix { sessions: 10, ..Mix::default() }, ..CaptureOptions::default() };
    options.order.logs = getopt::read(OPTIONS, args, &mut options).map_err(|stop| {
        // Whatever is wrong with an option, the message advises to read `--help`.
        stop.map(|failure| Failure { is_misuse: true, ..failure })
    })?;
    options.order.made_by = format!("pgtrial-engine {}", env!("CARGO_PKG_VERSION"));
    let is_mix = !options.mix.statements.is_empty() || !options.mix.columns.is_empty();
    if is_mix {
        options.order.mix = Some(settled(&options)?);
    } else if options.order.logs.is_empty() {
        return Err(Stop::Error(Failure::misuse("name the log files to be read, or - for standard input")));
    }
    if options.directory.as_os_str().is_empty() {
        return Err(Stop::Error(Failure::misuse("name the directory for the capture with -o DIRECTORY")));
    }
    Ok(options)
}

/// Returns the settings of a synthetic mix (made from pg_stat_statements instead of logs). Fails if options for logs
/// are given, too, or if one of the three options that a mix needs is missing.
fn settled(options: &CaptureOptions) -> Result<Mix, Stop<Failure>> {
    let CaptureOptions { mix, order, .. } = options;
    let wrong = if !order.logs.is_empty() || order.prefix.is_some() || order.selection != Selection::default() {
        "a mix (--statements, --columns) is not made from logs: leave out the names of logs, --prefix, and the options \
         that select sessions or statements of logs"
    } else if mix.statements.is_empty() || mix.columns.is_empty() || mix.counted == 0 {
        "a mix, which is made from pg_stat_statements instead of logs, needs all three of --statements, --columns and \
         --counted: add the missing options"
    } else {
        return Ok(mix.clone());
    };
    Err(Stop::Error(Failure::misuse(wrong)))
}

/// Reads a whole number from `least` to `most`.
fn number(value: &Argument<'_>, least: u64, most: u64) -> Result<u64, Failure> {
    let found = value.text.parse().ok().filter(|number| (least..=most).contains(number));
    found.ok_or_else(|| {
        Failure::error(format!("{} \"{}\" is not a number from {least} to {most}", value.option(), value.text))
    })
}

/// Reads a whole number of seconds, at most ten years, and converts it to microseconds.
fn span(value: &Argument<'_>) -> Result<Micros, Failure> {
    number(value, 1, 315_360_000).map(|seconds| seconds * 1_000_000)
}

/// Reads the value of `--from` or `--to`: a date and a time of day, with or without a time zone. The seconds may be
/// left out, and so may the time of day, which is then midnight.
fn moment(value: &Argument<'_>) -> Result<GivenMoment, Failure> {
    let (option, text) = (value.option(), value.text);
    let wrong = || Failure::error(format!("{option} \"{text}\" is not a time such as '2026-11-23 08:00:00'"));
    let padded = match value.text.split_at_checked(16) {
        None if value.text.len() == 10 => format!("{} 00:00:00", value.text),
        // The text ends with the minute, so the seconds are added.
        Some((minute, rest)) if !rest.starts_with(':') => format!("{minute}:00{rest}"),
        _ => value.text.to_owned(),
    };
    let (mut time, rest, has_zone) = Timestamp::take(&padded).ok_or_else(wrong)?;
    Zones::default().exact().place_alone(&mut time).map_err(|zone| {
        Failure::error(format!(
            "{option} \"{text}\" is in {zone}. Write an offset from UTC instead, such as '08:00:00 +02'"
        ))
    })?;
    match (rest, has_zone) {
        ("", true) => Ok(GivenMoment::Utc(time.utc)),
        ("", false) => Ok(GivenMoment::Wall(time.wall)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<CaptureOptions, Stop<Failure>> {
        parse(args.iter().map(|arg| (*arg).to_owned()).collect())
    }

    #[test]
    fn options_say_what_is_captured() {
        let options =
            read(&["a.log", "-", "-o", "out", "--prefix=%t [%p]: ", "--database=shop", "--anonymize"]).unwrap();
        assert_eq!(options.order.logs, ["a.log", "-"]);
        assert_eq!(options.directory, PathBuf::from("out"));
        assert_eq!(options.order.prefix.unwrap().text(), "%t [%p]: ");
        assert_eq!(options.order.selection.database.as_deref(), Some("shop"));
        assert!(options.order.anonymize && !options.json);
    }

    #[test]
    fn times_are_the_logs_own_unless_they_have_a_zone() {
        const EIGHT: u64 = 1_795_420_800_000_000;
        for (text, moment) in [
            ("2026-11-23 08:00:00", GivenMoment::Wall(EIGHT)),
            ("2026-11-23 08:00", GivenMoment::Wall(EIGHT)),
            ("2026-11-23", GivenMoment::Wall(EIGHT - 8 * 3_600_000_000)),
            ("2026-11-23 09:00:00 CET", GivenMoment::Utc(EIGHT)),
            ("2026-11-23 09:00 CET", GivenMoment::Utc(EIGHT)),
            ("2026-11-23T08:00:00.5Z", GivenMoment::Utc(EIGHT + 500_000)),
        ] {
            let options = read(&["a", "-o", "b", "--from", text]).unwrap();
            assert_eq!(options.order.selection.from, Some(moment), "{text}");
        }
    }

    #[test]
    fn mistakes_are_a_sentence_each() {
        for (args, message) in [
            (&["-o", "out"][..], "name the log files to be read, or - for standard input; try \"pgtrial-engine"),
            (&["a.log"], "name the directory for the capture with -o DIRECTORY; try"),
            (&["a", "-o", "b", "--to=noon"], "--to \"noon\" is not a time such as '2026-11-23 08:00:00'"),
            (
                &["a", "-o", "b", "--from=2026-11-23 08:00:00 IST"],
                "--from \"2026-11-23 08:00:00 IST\" is in IST, which is +02 in Asia/Jerusalem or +05:30 in \
                 Asia/Kolkata. Write an offset",
            ),
            (
                &["a", "-o", "b", "--to=2026-11-23 08:00:00 XYZ"],
                "--to \"2026-11-23 08:00:00 XYZ\" is in XYZ, which no time zone has",
            ),
            (&["a", "-o", "b", "--timezone=Mars"], "\"Mars\" is not a time zone. Give a name such as Europe/Berlin"),
            (&["a", "-o", "b", "--prefix=%m"], "the prefix \"%m\" does not say which session"),
            (&["--bogus"], "unrecognized option '--bogus'; try \"pgtrial-engine capture --help\""),
        ] {
            let Err(Stop::Error(failure)) = read(args) else { panic!("{args:?} is accepted") };
            let found = CAPTURE.describe(&failure);
            assert!(found.starts_with(&format!("{NAME}: error: {message}")) && !found.contains('\n'), "{found}");
        }
    }
}
