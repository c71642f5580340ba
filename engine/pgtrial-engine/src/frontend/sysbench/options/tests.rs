use std::io;

use proptest::prelude::*;

use super::command_line::{CommandLine, TEST_IS_DEPRECATED};
use super::table::Group;
use super::values::{Numbers, OptionKind};
use super::{Chosen, Declared, Unknown, check, table};
use crate::frontend::sysbench::log::SysbenchError;
use workload::settings::{OptionSpec, OptionValue, Settings};

/// The names and contents of the files that options in these tests name.
const FILES: &[(&str, &str)] = &[
    ("good", "threads = 7\ntables=3 # of ours\ndebug=off\nreport-checkpoints=4, 5\n"),
    ("unknown", "\nfoo=1\n"),
    ("password", "pgsql-password=a b\n"),
    ("nested", "config-file=good\n"),
    ("open", "pgsql-user='me\n"),
];

fn read_file(name: &str) -> io::Result<Vec<u8>> {
    let found = FILES.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| text.as_bytes().to_vec()).ok_or_else(|| io::Error::from_raw_os_error(2))
}

fn args(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn read(line: &str) -> Result<CommandLine, SysbenchError> {
    CommandLine::read(&args(line), &read_file, &mut |_| {})
}

fn checked(line: &str) -> Result<(Settings, Vec<String>), SysbenchError> {
    let mut warnings = Vec::new();
    let settings = check(&read(line)?, &mut |text| warnings.push(text.to_owned()))?;
    Ok((settings, warnings))
}

fn specs() -> Vec<OptionSpec> {
    let spec = |name: &str, default| OptionSpec { name: name.to_owned(), description: String::new(), default };
    vec![
        spec("tables", OptionValue::Int(1)),
        spec("skip_trx", OptionValue::Bool(false)),
        spec("rate", OptionValue::Double(0.5)),
        spec("jobs", OptionValue::Text(None)),
    ]
}

fn settled(line: &str, unknown: Unknown) -> Result<Chosen, SysbenchError> {
    let line = read(line)?;
    settled_by(&line, &specs(), unknown)
}

fn settled_by(line: &CommandLine, options: &[OptionSpec], unknown: Unknown) -> Result<Chosen, SysbenchError> {
    line.settle(&check(line, &mut |_| {})?, Declared { options, unknown, numbers: Numbers::Doubles })
}

fn said(refusal: SysbenchError) -> String {
    match refusal {
        SysbenchError::Error(line) => format!("error {line}"),
        SysbenchError::Plain(line) => format!("plain {line}"),
        SysbenchError::Fatal(lines) => format!("fatal {}", lines.join("|")),
    }
}

fn refused(line: &str) -> String {
    match checked(line) {
        Err(refusal) => said(refusal),
        Ok(_) => panic!("{line} is not refused"),
    }
}

fn refused_with_a_test(line: &str) -> String {
    said(settled(line, Unknown::Refused).unwrap_err())
}

#[test]
fn words_are_the_test_and_the_command() {
    let line = read("--threads=2 oltp_insert --foo run").unwrap();
    assert_eq!((line.test.as_deref(), line.command.as_deref()), (Some("oltp_insert"), Some("run")));
    assert_eq!(refused("a b c"), "error Unrecognized command line argument: c");
    let deprecated = read("--test=old.lua prepare").unwrap();
    assert_eq!((deprecated.test.as_deref(), deprecated.command.as_deref()), (Some("old.lua"), Some("prepare")));
    assert_eq!(read("--test= prepare").unwrap().test.as_deref(), Some("prepare"));
    assert_eq!(read("a --test=b c").unwrap().test.as_deref(), Some("b"));
}

#[test]
fn only_test_with_a_value_is_warned_of() {
    let warnings = |line: &str| {
        let mut count = 0;
        CommandLine::read(&args(line), &read_file, &mut |text| {
            assert_eq!(text, TEST_IS_DEPRECATED);
            count += 1;
        })
        .unwrap();
        count
    };
    assert_eq!([warnings("--test=a --test=b"), warnings("--test a"), warnings("--tests=a")], [2, 0, 0]);
}

#[test]
fn the_last_value_counts_whether_from_a_file_or_not() {
    let threads = |line| checked(line).unwrap().0.int("threads");
    assert_eq!(threads("--threads=2 --threads=3"), 3);
    assert_eq!(threads("--threads=2 --config-file=good"), 7);
    assert_eq!(threads("--config_file=good --threads=2"), 2);
}

#[test]
fn files_set_options_of_all_kinds() {
    let chosen = settled("--config-file=good", Unknown::Refused).unwrap();
    let points = OptionValue::List(vec!["4".to_owned(), "5".to_owned()]);
    assert_eq!(chosen.all.get("report_checkpoints"), Some(&points));
    assert_eq!((chosen.all.int("tables"), chosen.script.int("tables")), (3, 3));
    assert!(!chosen.all.is_on("debug"));
}

#[test]
fn wrong_files_are_refused() {
    assert_eq!(refused("--config-file=absent"), "error absent: No such file or directory");
    assert_eq!(refused("--config-file=open"), "error unexpected EOL on line 1");
    assert_eq!(refused("--config-file"), "error Invalid value for the 'config_file' option: ''");
    let nested = "error this option is allowed only on the command line: config-file=good (nested, line 1)";
    assert_eq!(refused("--config-file=nested"), nested);
    assert_eq!(refused_with_a_test("--config-file=unknown"), "error invalid option: foo=1 (unknown, line 2)");
}

#[test]
fn deprecated_names_count_when_they_say_something() {
    let (settings, warnings) = checked("--num-threads=4 --threads=8 --max_time=3 --max-requests=0 --events=5").unwrap();
    assert_eq!([settings.int("threads"), settings.int("time"), settings.int("events")], [4, 3, 5]);
    let expected =
        ["--num-threads is deprecated, use --threads instead", "--max-time is deprecated, use --time instead"];
    assert_eq!(warnings, expected);
    assert_eq!(checked("--num-threads=1 --threads=8").unwrap().0.int("threads"), 8);
    assert_eq!(checked("--tx-rate=9").unwrap().0.int("rate"), 9);
}

#[test]
fn an_endless_run_is_warned_of() {
    let (_, warnings) = checked("--time=0").unwrap();
    assert_eq!(warnings, ["Both event and time limits are disabled, running an endless test"]);
}

#[test]
fn values_out_of_range_are_refused_in_the_originals_order_and_words() {
    for (line, text) in [
        ("--threads=0 --rand-type=foo", "fatal Invalid value for --threads: 0.\n"),
        ("--threads=x", "error Invalid value for the 'threads' option: 'x'"),
        ("--time=-3", "fatal Invalid value for --time: -3.\n"),
        ("--forced-shutdown=x --rand-type=foo", "fatal Invalid value for --forced-shutdown: 'x'"),
        ("--forced-shutdown=-5", "fatal Invalid value for --forced-shutdown: '-5'"),
        ("--thread-stack-size=64Q --rand-type=foo", "fatal Invalid value for thread-stack-size: 0.\n"),
        ("--rand-type=foo --rate=x", "fatal Invalid random numbers distribution: foo."),
        ("--rand-type=", "fatal Invalid random numbers distribution: ."),
        ("--rand-zipfian-exp=-1", "fatal --rand-zipfian-exp must be >= 0"),
        ("--report-checkpoints=1,x", "fatal Invalid value for --report-checkpoints: 'x'"),
        ("--verbosity=6 --percentile=101", "plain Invalid value for verbosity: 6"),
        ("--percentile=101", "fatal Invalid value for --percentile: 101"),
        ("--percentile=0 --histogram", "fatal --histogram cannot be used with --percentile=0"),
        ("--compat=2", "fatal Invalid value for --compat: '2'"),
    ] {
        assert_eq!(refused(line), text, "{line}");
    }
    let many = (0..300).map(|point| point.to_string()).collect::<Vec<_>>().join(",");
    let expected = "fatal Too many checkpoints in --report-checkpoints (up to 256 can be defined)";
    assert_eq!(refused(&format!("--report-checkpoints={many}")), expected);
}

#[test]
fn forced_shutdown_is_off_seconds_or_a_share_of_the_time() {
    for value in ["off", "OFF", "5", "5%", ""] {
        assert!(checked(&format!("--forced-shutdown={value}")).is_ok(), "{value}");
    }
    assert!(checked("--time=0 --forced-shutdown=x").is_ok());
}

#[test]
fn debugging_makes_the_log_verbose() {
    assert_eq!(checked("--debug --verbosity=1").unwrap().0.int("verbosity"), 5);
}

#[test]
fn master_draws_uniformly_unless_told_otherwise() {
    let distribution = |line| checked(line).unwrap().0.text("rand_type").map(str::to_owned);
    assert_eq!(distribution("").as_deref(), Some("special"));
    assert_eq!(distribution("--compat=master").as_deref(), Some("uniform"));
    assert_eq!(distribution("--compat=master --rand-type=pareto").as_deref(), Some("pareto"));
}

#[test]
fn what_nobody_declares_is_refused_taken_or_ignored() {
    assert_eq!(refused_with_a_test("--foo=1"), "error invalid option: --foo=1");
    assert_eq!(refused_with_a_test("--"), "error invalid option: --");
    assert_eq!(refused_with_a_test("--test"), "error invalid option: --test");
    let taken = settled("--foo-bar=1 --baz", Unknown::Taken).unwrap();
    assert_eq!(taken.script.text("foo_bar"), Some("1"));
    assert_eq!(taken.script.get("baz"), Some(&OptionValue::Text(None)));
    assert_eq!(settled("--foo=1", Unknown::Ignored).unwrap().ignored, ["--foo=1"]);
}

#[test]
fn a_wrong_switch_is_an_invalid_option() {
    assert_eq!(refused_with_a_test("--debug=x"), "error invalid option: --debug=x");
    assert_eq!(refused_with_a_test("--debug=x --debug=on"), "error invalid option: --debug=x");
    assert_eq!(refused_with_a_test("--skip-trx=yes"), "error invalid option: --skip-trx=yes");
}

#[test]
fn passwords_are_not_shown() {
    let line = "--config-file=password";
    assert_eq!(refused_with_a_test(line), "error Invalid value for the 'pgsql_password' option: '***'");
    assert_eq!(refused_with_a_test("--pgsql-pasword=secret"), "error invalid option: --pgsql-pasword=***");
}

#[test]
fn a_tests_option_hides_another_of_the_same_name_from_the_script_alone() {
    let chosen = settled("--rate=8 --jobs=nine --tables=2", Unknown::Refused).unwrap();
    assert_eq!((chosen.all.int("rate"), chosen.script.get("rate")), (8, Some(&OptionValue::Double(8.0))));
    assert_eq!((chosen.all.int("jobs"), chosen.script.text("jobs")), (0, Some("nine")));
    assert_eq!((chosen.all.int("tables"), chosen.script.int("tables")), (2, 2));
}

#[test]
fn scripts_see_all_options_but_those_of_pgtrial() {
    let line = read("--jobs=3").unwrap();
    let chosen = settled_by(&line, &[], Unknown::Refused).unwrap();
    for known in table::OPTIONS {
        let name = known.name.replace('-', "_");
        assert!(chosen.all.get(&name).is_some(), "{name}");
        let is_hidden = known.group == Group::Own || known.kind == OptionKind::File;
        assert_eq!(chosen.script.get(&name).is_none(), is_hidden, "{name}");
    }
    assert_eq!(chosen.all.int("jobs"), 3);
}

#[test]
fn pgtrials_own_options_have_ranges() {
    let refused = |line: &str| {
        let line = read(line).unwrap();
        said(settled_by(&line, &[], Unknown::Refused).unwrap_err())
    };
    assert_eq!(refused("--jobs=0"), "fatal Invalid value for --jobs: 0.\n");
    assert_eq!(refused("--percentiles=50,101"), "fatal Invalid value for --percentiles: '101'");
    assert_eq!(refused("--percentiles=0"), "fatal Invalid value for --percentiles: '0'");
}

#[test]
fn the_published_command_of_sysbench_0_5_is_understood() {
    let published = "--test=/usr/local/share/sysbench/oltp.lua --oltp-tables-count=250 --oltp-table-size=450000 \
                     --max-requests=0 --forced-shutdown --report-interval=60 --oltp_simple_ranges=0 \
                     --oltp-distinct-ranges=0 --oltp-sum-ranges=0 --oltp-order-ranges=0 --oltp-point-selects=0 \
                     --rand-type=uniform --max-time=600 --num-threads=1000 run";
    let line = read(published).unwrap();
    let names = ["tables_count", "table_size", "simple_ranges", "distinct_ranges", "sum_ranges", "order_ranges"];
    let spec = |name: &str| OptionSpec {
        name: format!("oltp_{name}"),
        description: String::new(),
        default: OptionValue::Int(1),
    };
    let specs: Vec<_> = names.into_iter().chain(["point_selects"]).map(spec).collect();
    let chosen = settled_by(&line, &specs, Unknown::Ignored).unwrap();
    assert_eq!(chosen.ignored, [] as [String; 0]);
    assert_eq!(chosen.all.int("oltp_tables_count"), 250);
    assert_eq!(chosen.all.int("oltp_simple_ranges"), 0);
    assert_eq!([chosen.all.int("threads"), chosen.all.int("time")], [1000, 600]);
}

/// Generates words of a command line: options of sysbench, options of a test and unknown options, with valid or invalid
/// values.
fn word() -> impl Strategy<Value = String> {
    let names = table::OPTIONS.iter().map(|known| known.name).chain(["tables", "skip_trx", "foo", "test", ""]);
    let name = prop::sample::select(names.collect::<Vec<_>>());
    let value = prop_oneof!["", "=[-+0-9a-zé,%.]{0,5}", "=(on|off|good|unknown|nested|master|1e3|5%)"];
    prop_oneof![(name, value).prop_map(|(name, value)| format!("--{name}{value}")), "[-a-z]{0,5}"]
}

proptest! {
    #[test]
    fn any_command_line_is_understood_or_refused(args in prop::collection::vec(word(), 0..8)) {
        if let Ok(line) = CommandLine::read(&args, &read_file, &mut |_| {})
            && let Ok(settings) = check(&line, &mut |_| {})
        {
            prop_assert!(settings.int("threads") > 0 && settings.int("time") >= 0);
            for unknown in [Unknown::Refused, Unknown::Taken, Unknown::Ignored] {
                let _ = line.settle(&settings, Declared { options: &specs(), unknown, numbers: Numbers::Sizes });
            }
        }
    }

    #[test]
    fn dashes_and_underscores_are_the_same(args in prop::collection::vec(word(), 0..8)) {
        let fold = |arg: &String| match arg.strip_prefix("--").map(|option| option.split_once('=')) {
            Some(Some((name, value))) => format!("--{}={value}", name.replace('-', "_")),
            _ => arg.clone(),
        };
        let folded: Vec<_> = args.iter().map(fold).collect();
        let checked = |args: &[String]| {
            let line = CommandLine::read(args, &read_file, &mut |_| {}).ok()?;
            settled_by(&line, &specs(), Unknown::Taken).ok()
        };
        prop_assert_eq!(checked(&args), checked(&folded));
    }
}
