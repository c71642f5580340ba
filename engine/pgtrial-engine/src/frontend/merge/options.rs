//! The command line of the front end `merge`.

use std::path::{Path, PathBuf};

use crate::frontend::common::failure::Failure;
use crate::frontend::common::messages::FrontEnd;
use ground::getopt;
use ground::manual::{Manual, entries};
use ground::options::{OptionRow, Stop};

const NAME: &str = "pgtrial-engine merge";

/// The name of this front end in messages, and the form of its messages.
pub const MERGE: FrontEnd = FrontEnd::new(NAME);

/// The names of the machines, and the files with their events.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    pub machines: Vec<String>,
    /// The file of each machine. Empty if the events of all machines are read from standard input, where each line
    /// begins with the number of its machine.
    pub files: Vec<PathBuf>,
}

type Row = OptionRow<Inputs, Failure, ()>;

#[rustfmt::skip]
const OPTIONS: &[Row] = &[
    Row::value("--machines=NAME,NAME...", (), "names of the machines (default: of the files)",
        |inputs, value| {
            inputs.machines = value.text.split(',').map(str::to_owned).collect();
            Ok(())
        }),
    Row::action("-V, --version", (), "output version information, then exit",
        |_| Err(Stop::Print(format!("{NAME} {}\n", env!("CARGO_PKG_VERSION"))))),
    Row::action("-?, --help", (), "show this help, then exit", |_| Err(Stop::Print(manual().help()))),
];

/// Returns the description of the front end and its options.
pub fn manual() -> Manual {
    Manual {
        about: "pgtrial-engine merge makes the events of one run from those of several machines.",
        usage: &[
            "pgtrial-engine merge [--machines=NAME,NAME...] FILE FILE...",
            "pgtrial-engine merge --machines=NAME,NAME...",
        ],
        description: "\
Each machine ran its part of the load (--shard=I/N) and wrote events; what comes out on
standard output is what one engine with all clients would have written. Histograms and
counts add up exactly, and so do the moments; percentiles are of the sums.

With files, one of each machine, it reads them to their ends. Without, it reads lines of
standard input while the run goes on: the machine's number in the order of --machines, from
0, a tab, and an event. A line with nothing behind the tab says that the machine's events
are over.",
        options: entries(OPTIONS, |()| "Options:"),
        notes: "\
A machine whose events end before the run does is lost: that is told (event \"lost\"), and
the others go on. The exit status is the highest of the engines' own; 2 if a machine was
lost; 3 for what is refused, such as parts of different runs."
            .to_owned(),
    }
}

/// Reads the command line (without the program's name).
pub fn parse(args: Vec<String>) -> Result<Inputs, Stop<Failure>> {
    let mut inputs = Inputs::default();
    let positional = getopt::read(OPTIONS, args, &mut inputs)?;
    inputs.files = positional.iter().map(|name| ground::text::path(name)).collect();
    let (machines, files) = (&mut inputs.machines, &inputs.files);
    if machines.is_empty() && files.is_empty() {
        let message = "name the files of the machines, or with --machines=... those of standard input";
        return Err(Failure::misuse(message).into());
    }
    if machines.is_empty() {
        *machines = names_of(files);
    }
    check_names(machines)?;
    if !files.is_empty() && machines.len() != files.len() {
        let (names, files) = (machines.len(), files.len());
        let message = format!("--machines names {names}, and there are {files} files: give a name for each");
        return Err(Failure::error(message).into());
    }
    Ok(inputs)
}

/// Returns names for the machines, made from the names of their files. Directory and extension are left out if the
/// names still differ without them.
fn names_of(paths: &[PathBuf]) -> Vec<String> {
    let short = |path: &Path| path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let stems: Vec<_> = paths.iter().map(|path| short(path)).collect();
    if stems.iter().enumerate().all(|(index, stem)| !stems[..index].contains(stem)) {
        return stems;
    }
    paths.iter().map(|path| path.display().to_string()).collect()
}

fn check_names(machines: &[String]) -> Result<(), Failure> {
    for (index, name) in machines.iter().enumerate() {
        if name.is_empty() || name.contains(char::is_control) {
            let message = format!("the name {name:?} of a machine cannot be read; name each with letters or digits");
            return Err(Failure::error(message));
        }
        if machines[..index].contains(name) {
            let message = format!("two machines are called {name}; give each a name of its own with --machines");
            return Err(Failure::error(message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Inputs, Stop<Failure>> {
        parse(line.split_whitespace().map(str::to_owned).collect())
    }

    fn names(line: &str) -> Vec<String> {
        read(line).unwrap().machines
    }

    #[test]
    fn machines_are_called_as_the_option_or_the_files_say() {
        assert_eq!(names("--machines=a,b"), ["a", "b"]);
        assert_eq!(names("--machines a,b x.jsonl y.jsonl"), ["a", "b"]);
        assert_eq!(names("runs/x.jsonl runs/y.jsonl"), ["x", "y"]);
        assert_eq!(names("x/events.jsonl y/events.jsonl"), ["x/events.jsonl", "y/events.jsonl"]);
        assert!(read("--machines=a").unwrap().files.is_empty());
        assert_eq!(read("a").unwrap().files, [PathBuf::from("a")]);
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
            let Err(Stop::Error(failure)) = read(line) else { panic!("{line} is accepted") };
            let found = MERGE.describe(&failure);
            let expected = format!("{NAME}: error: {message}");
            assert!(found.starts_with(&expected) && !found.contains('\n'), "{line}: {found}");
        }
    }
}
