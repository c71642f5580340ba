//! Makes the text of `sysbench --help`, and the text of the command `help` of a test.

use std::fmt::Write;

use super::options::table::{Group, OPTIONS, SysbenchOption};
use super::options::values::{OptionKind, show};
use ground::manual::{Manual, OptionEntry};
use workload::host;
use workload::oltp::{TESTS, TestKind};
use workload::settings::OptionSpec;

/// The groups of options in the help, each with the text that is printed before it.
#[rustfmt::skip]
const GROUPS: [(&str, Group); 7] = [
    ("\nGeneral options:\n", Group::General),
    ("\nPseudo-Random Numbers Generator options:\n", Group::Random),
    ("\nLog options:\n", Group::LogText),
    ("\n", Group::LogLatency),
    ("\nGeneral database options:\n\n", Group::Database),
    ("\n\nCompiled-in database drivers:\n  pgsql - PostgreSQL driver\n\nmysql options (accepted, without effect):\n",
        Group::Mysql),
    ("\npgsql options:\n", Group::Pgsql),
];

/// Returns the text of `sysbench --help`. Options that pgtrial adds are listed separately at the end.
pub fn text() -> String {
    let mut text = String::from(
        "Usage:\n\
           sysbench [options]... [testname] [command]\n\
         \n\
         Commands implemented by most tests: prepare run cleanup help\n\
         ",
    );
    for (heading, group) in GROUPS {
        text += heading;
        text += &general(group);
    }
    text += "\nCompiled-in tests:\n";
    for test in host::TESTS {
        let _ = writeln!(text, "  {} - {}", test.name, test.description);
    }
    // The help of sysbench 1.0 does not list the tests of sysbench 0.5, so they are left out here, too.
    for test in TESTS.iter().filter(|test| test.kind != TestKind::Legacy) {
        let _ = writeln!(text, "  {} - {}", test.name, test.description);
    }
    text += "\nSee 'sysbench <testname> help' for a list of options for each test.\n";
    text += "\nOptions of later versions of sysbench:\n";
    text += &general(Group::Later);
    text += "\nOptions that pgtrial adds:\n";
    text += &general(Group::Own);
    text + "\nThis sysbench is a part of pgtrial and is only for PostgreSQL.\n"
}

/// Returns the description of this front end and its options, from which the help and the manual page are made.
pub fn manual() -> Manual {
    let mut options = Vec::new();
    let later = [("Options of later versions of sysbench:", Group::Later), ("Options that pgtrial adds:", Group::Own)];
    // A group without a heading of its own, only an empty line, gets the heading of the group before it.
    let mut title = "";
    for (heading, group) in GROUPS.into_iter().chain(later) {
        title = heading.trim().lines().last().unwrap_or(title);
        options.extend(OPTIONS.iter().filter(|known| known.group == group).map(|known| entry(known, title)));
    }
    let mut notes = String::from("Tests:\n");
    for test in host::TESTS {
        let _ = writeln!(notes, "  {} - {}", test.name, test.description);
    }
    for test in TESTS {
        let _ = writeln!(notes, "  {} - {}", test.name, test.description);
    }
    Manual {
        about: "sysbench runs benchmarks of PostgreSQL and of the machine. This sysbench is a part of pgtrial.",
        usage: &["sysbench [options]... [testname] [command]"],
        description: "Commands implemented by most tests: prepare run cleanup help",
        options,
        notes: notes + "\nSee 'sysbench TESTNAME help' for a list of options of each test.",
    }
}

fn entry(known: &'static SysbenchOption, title: &'static str) -> OptionEntry {
    let placeholder = known.kind.placeholder();
    let default = known.default.map_or_else(String::new, |default| format!(" [{default}]"));
    OptionEntry {
        group: title,
        short: None,
        long: known.name,
        argument: Some(placeholder.trim_start_matches(['[', '=']).trim_end_matches(']')),
        argument_is_optional: placeholder.starts_with('['),
        help: format!("{}{default}", known.description),
        spec: known.name,
    }
}

/// Returns the text of a test's command `help`, which lists the options of the test.
pub fn test_options(test: &str, specs: &[OptionSpec]) -> String {
    let lines = specs.iter().map(|spec| HelpLine {
        name: &spec.name,
        kind: OptionKind::of(&spec.default),
        description: &spec.description,
        default: show(&spec.default),
    });
    format!("{test} options:\n{}\n", table(&lines.collect::<Vec<_>>()))
}

fn general(group: Group) -> String {
    let line = |known: &'static SysbenchOption| HelpLine {
        name: known.name,
        kind: known.kind,
        description: known.description,
        default: known.default.map(str::to_owned),
    };
    let lines = OPTIONS.iter().filter(|known| known.group == group).map(line);
    table(&lines.collect::<Vec<_>>())
}

/// A line of the table of options.
struct HelpLine<'a> {
    name: &'a str,
    kind: OptionKind,
    description: &'a str,
    default: Option<String>,
}

/// Returns the table of options: one option on each line, with the descriptions aligned in one column.
fn table(lines: &[HelpLine<'_>]) -> String {
    let width = |line: &HelpLine<'_>| line.name.len() + line.kind.placeholder().len();
    let widest = lines.iter().map(width).max().unwrap_or(0);
    let mut text = String::new();
    for line in lines {
        let padding = " ".repeat(widest - width(line) + 1);
        let _ = write!(text, "  --{}{}{padding}{}", line.name, line.kind.placeholder(), line.description);
        if let Some(default) = &line.default {
            let _ = write!(text, " [{default}]");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::settings::OptionValue;

    #[test]
    fn a_tests_options_stand_below_each_other() {
        let specs = [
            OptionSpec::new("items", "Some items", OptionValue::List(vec!["a".to_owned(), "b".to_owned()])),
            OptionSpec::new("share", "How much", OptionValue::Double(5.0)),
            OptionSpec::new("skip", "Skip it", OptionValue::Bool(false)),
            OptionSpec::new("tables", "Number of tables", OptionValue::Int(1)),
            OptionSpec::new("total-size", "How large", OptionValue::Size("1K".to_owned())),
            OptionSpec::new("variant", "Which", OptionValue::Text(None)),
        ];
        let expected = "\
foo.lua options:
  --items=[LIST,...] Some items [a,b]
  --share=N          How much [5]
  --skip[=on|off]    Skip it [off]
  --tables=N         Number of tables [1]
  --total-size=SIZE  How large [1K]
  --variant=STRING   Which

";
        assert_eq!(test_options("foo.lua", &specs), expected);
    }

    #[test]
    fn every_option_is_explained_once() {
        let text = text();
        for known in OPTIONS {
            let start = format!("\n  --{}{}", known.name, known.kind.placeholder());
            assert_eq!(text.matches(&start).count(), 1, "{}", known.name);
        }
    }

    #[test]
    fn the_manual_has_every_option_once_below_a_heading() {
        let options = manual().options;
        for known in OPTIONS {
            let found: Vec<_> = options.iter().filter(|entry| entry.long == known.name).collect();
            assert!(found.len() == 1 && found[0].group.ends_with(':'), "{}: {found:?}", known.name);
        }
        let debug = options.iter().find(|entry| entry.long == "debug").unwrap();
        assert_eq!((debug.argument, debug.argument_is_optional), (Some("on|off"), true));
        let checkpoints = options.iter().find(|entry| entry.long == "report-checkpoints").unwrap();
        assert_eq!((checkpoints.argument, checkpoints.argument_is_optional), (Some("LIST,..."), false));
    }

    #[test]
    fn the_tests_of_sysbench_1_are_listed() {
        let text = text();
        for test in TESTS {
            let is_listed = text.contains(&format!("\n  {} - {}\n", test.name, test.description));
            assert_eq!(is_listed, test.name != "oltp", "{}", test.name);
        }
        for test in host::TESTS {
            assert!(text.contains(&format!("\n  {} - {}\n", test.name, test.description)), "{}", test.name);
        }
    }
}
