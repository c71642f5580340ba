//! The entry point of the program: finds the front end that the command line names, and prints the help and the manual.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;

use crate::event;
use crate::frontend::common::messages::USER;
use crate::frontend::{capture, generate, merge, order_entry, pgbench, replay, suite, sysbench, tasks};
use ground::manual::Manual;
use ground::options::ERROR;
use ground::output::print_stdout;

const NAME: &str = "pgtrial-engine";
const ABOUT: &str = "pgtrial-engine makes a load on PostgreSQL and measures it.";
const NOTES: &str = "If the program is called by a link with the name pgbench or sysbench, it behaves as that tool.";

/// A front end (command) of the program.
struct FrontEndRow {
    name: &'static str,
    /// The arguments of the front end, as the help shows them.
    arguments: &'static str,
    summary: &'static str,
    /// True if a link with the front end's name also runs the front end. If false, the name must be the first argument.
    is_link: bool,
    /// The function that runs the front end. It is called with the arguments after the front end's name.
    main: fn(Vec<String>) -> ExitCode,
    manual: fn() -> Manual,
}

/// All front ends, in the order in which the help lists them.
#[rustfmt::skip]
const FRONT_ENDS: [FrontEndRow; 10] = [
    FrontEndRow { name: "pgbench", arguments: "[OPTION]... [DBNAME]", summary: "behave as PostgreSQL's pgbench",
        is_link: true, main: pgbench::main, manual: pgbench::manual },
    FrontEndRow { name: "sysbench", arguments: "[OPTION]... [TEST] [COMMAND]", summary: "behave as sysbench",
        is_link: true, main: sysbench::main, manual: sysbench::manual },
    FrontEndRow { name: "tasks", arguments: "[OPTION]... [DBNAME]",
        summary: "run an application's tasks on pools of connections",
        is_link: false, main: tasks::main, manual: tasks::manual },
    FrontEndRow { name: "order-entry", arguments: "[OPTION]... COMMAND [DBNAME]",
        summary: "make the tables of TPC-C, run and check its transactions",
        is_link: false, main: order_entry::main, manual: order_entry::manual },
    FrontEndRow { name: "generate", arguments: "[OPTION]... SUITE [DBNAME]",
        summary: "make the tables of a suite of queries",
        is_link: false, main: generate::main, manual: generate::manual },
    FrontEndRow { name: "replay", arguments: "[OPTION]... DIRECTORY [DBNAME]", summary: "run recorded sessions again",
        is_link: false, main: replay::main, manual: replay::manual },
    FrontEndRow { name: "suite", arguments: "[OPTION]... [DBNAME]", summary: "run queries one by one and time each",
        is_link: false, main: suite::main, manual: suite::manual },
    FrontEndRow { name: "merge", arguments: "[OPTION]... [FILE]...",
        summary: "merge the events of several machines that shared a run",
        is_link: false, main: merge::main, manual: merge::manual },
    FrontEndRow { name: "capture", arguments: "[OPTION]... LOG...",
        summary: "record a server's sessions from its logs, for replays",
        is_link: false, main: capture::main, manual: capture::manual },
    FrontEndRow { name: "null-server", arguments: "[OPTION]...", summary: "answer clients without doing any work",
        is_link: false, main: null_server::main, manual: null_server::manual },
];

/// The description of the program and all its front ends, which the hidden command `manual` prints as JSON.
#[derive(Serialize)]
struct ProgramManual {
    name: &'static str,
    about: &'static str,
    usage: Vec<String>,
    notes: &'static str,
    front_ends: Vec<FrontEndManual>,
}

/// The description of a front end with its options, as a part of [`ProgramManual`].
#[derive(Serialize)]
struct FrontEndManual {
    name: &'static str,
    summary: &'static str,
    #[serde(flatten)]
    manual: Manual,
}

/// Runs the program with the arguments of the process. The front end is named by the link by which the program was
/// called, or by the first argument.
pub fn main() -> ExitCode {
    let mut args = std::env::args_os().map(|arg| ground::text::of(arg.as_bytes()));
    let program = args.next().unwrap_or_default();
    let link = Path::new(&program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if let Some(row) = FRONT_ENDS.iter().find(|row| row.is_link && row.name == link) {
        return (row.main)(args.collect());
    }
    let Some(command) = args.next() else {
        (USER.show)(&help());
        return ExitCode::from(ERROR);
    };
    if let Some(row) = FRONT_ENDS.iter().find(|row| row.name == command) {
        return (row.main)(args.collect());
    }
    match command.as_str() {
        "--help" | "-?" | "-h" => print_stdout(help()),
        "--version" | "-V" => {
            let version = env!("CARGO_PKG_VERSION");
            print_stdout(format_args!("{NAME} {version} (events protocol {})\n", event::PROTOCOL));
        }
        // This command is for the scripts that make manual pages and shell completions. The help does not list it.
        "manual" => print_stdout(format_args!("{}\n", manual())),
        _ => {
            let names = FRONT_ENDS.map(|row| row.name).join(", ");
            (USER.tell)(&format!("{NAME}: unknown command \"{command}\"; the commands are: {names}"));
            return ExitCode::from(ERROR);
        }
    }
    ExitCode::SUCCESS
}

/// Returns the lines of the help that show, for each front end, how to call it and what it does.
fn usage() -> Vec<String> {
    let of_front_end = |row: &FrontEndRow| {
        let FrontEndRow { name, arguments, summary, is_link, .. } = row;
        let help = if *is_link { format!("{NAME} {name} --help") } else { "its --help".to_owned() };
        format!("{:<45} {summary}; see {help}", format!("{NAME} {name} {arguments}"))
    };
    let options = ["--version", "--help"].map(|option| format!("{NAME} {option}"));
    FRONT_ENDS.iter().map(of_front_end).chain(options).collect()
}

fn help() -> String {
    let mut text = format!("{ABOUT}\n\nUsage:\n");
    for line in usage() {
        // Writing to a string cannot fail, so the result is ignored.
        let _ = writeln!(text, "  {line}");
    }
    text + "\n" + NOTES + "\n"
}

/// Returns the description of the program, its front ends, and their options, as JSON.
fn manual() -> String {
    let front_ends = FRONT_ENDS
        .iter()
        .map(|row| FrontEndManual { name: row.name, summary: row.summary, manual: (row.manual)() })
        .collect();
    let program = ProgramManual { name: NAME, about: ABOUT, usage: usage(), notes: NOTES, front_ends };
    serde_json::to_string(&program).expect("texts and characters are JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_has_a_line_for_each_front_end() {
        let help = help();
        let lines: Vec<_> = help.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            lines[3],
            "pgtrial-engine pgbench [OPTION]... [DBNAME] behave as PostgreSQL's pgbench; see pgtrial-engine pgbench \
             --help"
        );
        assert_eq!(
            lines[12],
            "pgtrial-engine null-server [OPTION]... answer clients without doing any work; see its --help"
        );
    }

    #[test]
    fn the_manual_has_every_option_of_every_front_end() {
        let manual: serde_json::Value = serde_json::from_str(&manual()).unwrap();
        let front_ends = manual["front_ends"].as_array().unwrap();
        assert_eq!(front_ends.len(), FRONT_ENDS.len());
        let clients = &front_ends[0]["options"].as_array().unwrap().iter().find(|option| option["long"] == "client");
        let expected = serde_json::json!({
            "group": "Benchmarking options:", "short": "c", "long": "client", "argument": "NUM",
            "argument_is_optional": false, "help": "number of concurrent database clients (default: 1)",
        });
        assert_eq!(**clients.as_ref().unwrap(), expected);
        for (front_end, row) in front_ends.iter().zip(&FRONT_ENDS) {
            let listed = front_end["options"].as_array().unwrap();
            assert_eq!(listed.len(), (row.manual)().options.len(), "{}", row.name);
            assert!(listed.iter().all(|option| !option["help"].as_str().unwrap().is_empty()), "{}", row.name);
        }
    }
}
