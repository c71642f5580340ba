//! The command line of the merger.

use std::path::{Path, PathBuf};

use super::NAME;
use ground::getopt;
use ground::options::{OptionRow, Stop, help_line};

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum MergeCommand {
    /// Print this text on standard output and stop.
    Print(String),
    /// Merge the lines of standard input, each with its machine's number.
    Live { machines: Vec<String> },
    /// Merge files, one for each machine.
    Files { machines: Vec<String>, paths: Vec<PathBuf> },
}

/// The values of the options.
#[derive(Default)]
struct Options {
    machines: Option<Vec<String>>,
}

type Row = OptionRow<Options, String, ()>;

#[rustfmt::skip]
const OPTIONS: &[Row] = &[
    Row::value("--machines=NAME,NAME...", (), "names of the machines (default: of the files)",
        |options, value| {
            options.machines = Some(value.text.split(',').map(str::to_owned).collect());
            Ok(())
        }),
    Row::action("-V, --version", (), "output version information, then exit",
        |_| Err(Stop::Print(format!("{NAME} {}\n", env!("CARGO_PKG_VERSION"))))),
    Row::action("-?, --help", (), "show this help, then exit", |_| Err(Stop::Print(help()))),
];

const INTRODUCTION: &str = "\
pgtrial-engine merge makes the events of one run from those of several machines.

Usage:
  pgtrial-engine merge [--machines=NAME,NAME...] FILE FILE...
  pgtrial-engine merge --machines=NAME,NAME...

Each machine ran its part of the load (--shard=I/N) and wrote events; what comes out on
standard output is what one engine with all clients would have written. Histograms and
counts add up exactly, and so do the moments; percentiles are of the sums.

With files, one of each machine, it reads them to their ends. Without, it reads lines of
standard input while the run goes on: the machine's number in the order of --machines, from
0, a tab, and an event. A line with nothing behind the tab says that the machine's events
are over.

";

const EXIT_STATUS: &str = "
A machine whose events end before the run does is lost: that is told (event \"lost\"), and
the others go on. The exit status is the highest of the engines' own; 2 if a machine was
lost; 1 for what is refused, such as parts of different runs.
";

/// The text of `--help`.
fn help() -> String {
    let rows: Vec<_> = OPTIONS.iter().map(|row| help_line(row.spec, row.help)).collect();
    format!("{INTRODUCTION}{}\n{}{EXIT_STATUS}", rows[0], rows[1..].concat())
}

/// Reads the command line (without the program's name). The error is a sentence.
pub fn parse(args: Vec<String>) -> Result<MergeCommand, String> {
    let mut options = Options::default();
    let positional = match getopt::read(OPTIONS, args, &mut options) {
        Ok(positional) => positional,
        Err(Stop::Print(text) | Stop::List(text)) => return Ok(MergeCommand::Print(text)),
        Err(Stop::Error(message)) => return Err(hinted(&message)),
    };
    let paths: Vec<_> = positional.into_iter().map(PathBuf::from).collect();
    let named = options.machines;
    let machines = match named {
        None if paths.is_empty() => {
            return Err(hinted("name the files of the machines, or with --machines=... those of standard input"));
        }
        None => names_of(&paths),
        Some(named) => named,
    };
    check_names(&machines)?;
    if paths.is_empty() {
        return Ok(MergeCommand::Live { machines });
    }
    if machines.len() != paths.len() {
        return Err(format!(
            "--machines names {}, and there are {} files: give a name for each",
            machines.len(),
            paths.len()
        ));
    }
    Ok(MergeCommand::Files { machines, paths })
}

/// Names machines after their files: without directory and extension, if the names differ without them.
fn names_of(paths: &[PathBuf]) -> Vec<String> {
    let short = |path: &Path| path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let stems: Vec<_> = paths.iter().map(|path| short(path)).collect();
    if stems.iter().enumerate().all(|(index, stem)| !stems[..index].contains(stem)) {
        return stems;
    }
    paths.iter().map(|path| path.display().to_string()).collect()
}

fn check_names(machines: &[String]) -> Result<(), String> {
    for (index, name) in machines.iter().enumerate() {
        if name.is_empty() || name.contains(char::is_control) {
            return Err(format!("the name {name:?} of a machine cannot be read; name each with letters or digits"));
        }
        if machines[..index].contains(name) {
            return Err(format!("two machines are called {name}; give each a name of its own with --machines"));
        }
    }
    Ok(())
}

fn hinted(message: &str) -> String {
    format!("{message}; try \"{NAME} --help\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<MergeCommand, String> {
        parse(line.split_whitespace().map(str::to_owned).collect())
    }

    fn names(line: &str) -> Vec<String> {
        match read(line) {
            Ok(MergeCommand::Live { machines } | MergeCommand::Files { machines, .. }) => machines,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn machines_are_called_as_the_option_or_the_files_say() {
        assert_eq!(names("--machines=a,b"), ["a", "b"]);
        assert_eq!(names("--machines a,b x.jsonl y.jsonl"), ["a", "b"]);
        assert_eq!(names("runs/x.jsonl runs/y.jsonl"), ["x", "y"]);
        assert_eq!(names("x/events.jsonl y/events.jsonl"), ["x/events.jsonl", "y/events.jsonl"]);
        assert!(matches!(read("--machines=a"), Ok(MergeCommand::Live { .. })));
        assert!(matches!(read("a"), Ok(MergeCommand::Files { .. })));
    }

    #[test]
    fn mistakes_are_a_sentence_each() {
        for (line, message) in [
            (
                "",
                "name the files of the machines, or with --machines=... those of standard input; try \"pgtrial-engine",
            ),
            ("--machines=a,,b", "the name \"\" of a machine cannot be read"),
            ("--machines=a,a", "two machines are called a; give each a name of its own"),
            ("a.x a.x", "two machines are called a.x;"),
            ("--machines=a b c", "--machines names 1, and there are 2 files: give a name for each"),
            ("--bogus", "unrecognized option '--bogus'; try \"pgtrial-engine merge --help\""),
        ] {
            let found = read(line).unwrap_err();
            assert!(found.starts_with(message) && !found.contains('\n'), "{line}: {found}");
        }
    }
}
