//! The command line of `pgtrial-engine merge`: its options, and the check that they fit together.

use std::path::{Path, PathBuf};

use crate::frontend::common::failure::Failure;
use crate::frontend::common::messages::FrontEnd;
use crate::frontend::common::rows::about_rows;
use ground::getopt;
use ground::manual::{Manual, entries};
use ground::options::{OptionRow, Stop};

const NAME: &str = "pgtrial-engine merge";

/// The front end's name, with which its messages begin. A failure is printed as one sentence, and the exit status is
/// then 3.
pub const MERGE: FrontEnd = FrontEnd::new(NAME);

/// The input of `merge`: the names of the machines that shared a run, and the files with their events.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    pub machines: Vec<String>,
    /// The file of each machine. Empty if the events of all machines are read from standard input, where each line
    /// begins with the number of its machine.
    pub files: Vec<PathBuf>,
}

type Row = OptionRow<Inputs, Failure, ()>;

#[rustfmt::skip]
const OPTIONS: &[&[Row]] = &[&[
    Row::value("--machines=NAME,NAME...", (),
        "names of the machines, in the order of the files (default: made\nfrom the names of the files)",
        |inputs, value| {
            inputs.machines = value.text.split(',').map(str::to_owned).collect();
            Ok(())
        }),
], &about_rows!(())];

/// Returns the description of this front end and its options, from which the help and the manual page are made.
pub fn manual() -> Manual {
    Manual {
        about: "pgtrial-engine merge merges the events of several machines into the events of one run.",
        usage: &[
            "pgtrial-engine merge [--machines=NAME,NAME...] FILE FILE...",
            "pgtrial-engine merge --machines=NAME,NAME...",
        ],
        description: "\
Each machine ran one shard of a load (--shard=I/N) and wrote its events. This program writes to
standard output the events that a single engine with all clients would have written. Counts,
histograms, means and standard deviations are exact. Percentiles are those of the merged
histograms.

If files are given, one for each machine, they are read to their ends. Without files, lines are
read from standard input while the run is in progress. Each line has the number of a machine,
which is its position in --machines counted from 0, then a tab, and then an event. A line with
nothing after the tab says that the machine sends no more events.",
        options: entries(OPTIONS, |()| "Options:"),
        notes: "\
If the events of a machine end before the run does, the machine is lost: an event \"lost\" is
written, and the events of the other machines are still merged. The exit status is the highest
exit status of the engines, 2 if a machine was lost, or 3 after an error, such as shards of
different runs."
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
        let message =
            "name the file of each machine, or name the machines whose events are on standard input with --machines";
        return Err(Failure::misuse(message).into());
    }
    if machines.is_empty() {
        *machines = names_of(files);
    }
    check_names(machines)?;
    if !files.is_empty() && machines.len() != files.len() {
        let (names, files) = (machines.len(), files.len());
        let message = format!(
            "the number of names in --machines is {names}, but there are {files} files: give one name for each file"
        );
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
            let message =
                format!("{name:?} cannot be the name of a machine, since it is empty or has control characters");
            return Err(Failure::error(message));
        }
        if machines[..index].contains(name) {
            let message = format!("two machines are called {name}; give each machine a different name with --machines");
            return Err(Failure::error(message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::lines::{all_refused, parsed};

    fn read(line: &str) -> Inputs {
        parsed(line, parse).unwrap()
    }

    fn names(line: &str) -> Vec<String> {
        read(line).machines
    }

    #[test]
    fn machines_are_called_as_the_option_or_the_files_say() {
        assert_eq!(names("--machines=a,b"), ["a", "b"]);
        assert_eq!(names("--machines a,b x.jsonl y.jsonl"), ["a", "b"]);
        assert_eq!(names("runs/x.jsonl runs/y.jsonl"), ["x", "y"]);
        assert_eq!(names("x/events.jsonl y/events.jsonl"), ["x/events.jsonl", "y/events.jsonl"]);
        assert!(read("--machines=a").files.is_empty());
        assert_eq!(read("a").files, [PathBuf::from("a")]);
    }

    #[test]
    fn mistakes_are_a_sentence_each() {
        let lines = [
            (
                "",
                "name the file of each machine, or name the machines whose events are on standard input with \
                 --machines; try \"pgtrial-engine",
            ),
            ("--machines=a,,b", "\"\" cannot be the name of a machine, since it is empty"),
            ("--machines=a,a", "two machines are called a; give each machine a different name"),
            ("a.x a.x", "two machines are called a.x;"),
            (
                "--machines=a b c",
                "the number of names in --machines is 1, but there are 2 files: give one name for each file",
            ),
            ("--bogus", "unrecognized option '--bogus'; try \"pgtrial-engine merge --help\""),
        ];
        all_refused(MERGE, parse, &lines);
    }
}
