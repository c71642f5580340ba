//! Checks what clients do: the order of commands, conditions, pipelines, and the storing of results.

use std::time::Duration;

use super::*;
use wire::ResultSet;
use wire::Rows;

const EXTENDED: QueryMode = QueryMode::Extended;

fn run(text: &str, mode: QueryMode) -> Vec<String> {
    transcript(client(text, &environment(mode)).as_mut())
}

fn timed(text: &str) -> Vec<String> {
    transcript(client(text, &ScriptEnvironment { timed: true, ..environment(QueryMode::Simple) }).as_mut())
}

fn result(columns: &[&str], rows: u64, last: &[Option<&str>]) -> ResultSet {
    ResultSet {
        columns: columns.iter().map(|name| name.as_bytes().to_vec()).collect(),
        rows,
        last: last.iter().map(|value| value.map(|value| value.as_bytes().to_vec())).collect(),
    }
}

#[test]
fn built_in_scripts_are_scripts() {
    for builtin in &builtin::BUILTINS {
        let parsed = parse(builtin.description, 1, builtin.text.as_bytes()).unwrap();
        let scripts = Arc::new(Scripts::link(vec![parsed], &environment(EXTENDED)).unwrap());
        let lines: Vec<_> = scripts.scripts()[0].commands.iter().map(|command| command.line.clone()).collect();
        assert_eq!(lines, builtin.text.lines().collect::<Vec<_>>());
    }
}

#[test]
fn commands_are_announced_before_they_do_something_but_not_those_that_conditions_skip() {
    let announced = |script: &str| {
        transcript(client(script, &ScriptEnvironment { announced: true, ..environment(QueryMode::Simple) }).as_mut())
    };
    assert_eq!(
        announced("\\set x 1\n\\if :x = 2\n\\set x 3\n\\endif\nSELECT :x;\n\\set y 1 / 0"),
        [
            "announce 0",
            "announce 1",
            "announce 4",
            "> SELECT 1;",
            "announce 5",
            "error: division by zero",
            "error: client 0 aborted in command 5 (set) of script 0; evaluation of meta-command failed",
        ]
    );
}

#[test]
fn local_commands_are_reported_when_timed_but_not_those_that_conditions_skip() {
    let script = "\\if :scale = 1\n\\set a 1\n\\elif true\n\\set a 2\n\\else\n\\set a 3\n\\endif\n\\set b 1\n";
    assert_eq!(timed(script), ["local 0", "local 1", "local 2", "local 7"]);
    let script = "\\if false\n\\set a 1\n\\elif true\n\\set a 2\n\\else\n\\set a 3\n\\endif\n\\set b 1\n";
    assert_eq!(timed(script), ["local 0", "local 2", "local 3", "local 4", "local 7"]);
    let script = "\\if false\n\\set a 1\n\\elif false\n\\set a 2\n\\else\n\\set a 3\n\\endif\n";
    assert_eq!(timed(script), ["local 0", "local 2", "local 5", "local 6"]);
    assert_eq!(timed("\\if false\n\\if true\n\\endif\n\\endif\nSELECT 1;"), ["local 0", "> SELECT 1;"]);
}

#[test]
fn a_retry_draws_the_same_again_and_keeps_variables() {
    let script = "\\set a random(1, 1000000)\n\\set n :n + 1\nSELECT :a, :n;";
    let mut given = environment(QueryMode::Simple);
    given.variables.push(("n".to_owned(), Value::Int(0)));
    let mut client = client(script, &given);
    let first = transcript(client.as_mut());
    client.retry();
    let second = transcript(client.as_mut());
    assert_eq!(first[0].replace(", 1;", ", 2;"), second[0]);
    client.begin(&mut Random::seeded(1));
    assert_ne!(transcript(client.as_mut())[0].split(',').next(), first[0].split(',').next());
}

#[test]
fn a_retry_starts_outside_of_pipelines() {
    let mut client = client("\\startpipeline\nSELECT 1;\n\\endpipeline\n", &environment(EXTENDED));
    assert!(matches!(client.next_action(), Action::Request(_)));
    client.retry();
    assert_eq!(transcript(client.as_mut()), ["start 1", "> SELECT 1;", "end"]);
}

#[test]
fn a_pipeline_knows_its_statements_up_to_its_end() {
    let script = "SELECT 0;\\startpipeline\nSELECT 1;\\syncpipeline\nSELECT 2;\\endpipeline\nSELECT 3;";
    let expected = ["> SELECT 0;", "start 2", "> SELECT 1;", "sync", "> SELECT 2;", "end", "> SELECT 3;"];
    assert_eq!(run(script, QueryMode::Prepared), expected);
    let mut client = client(script, &environment(QueryMode::Prepared));
    client.next_action();
    let Action::Request(StartPipeline { statements, .. }) = client.next_action() else { panic!("no pipeline") };
    assert_eq!(statements.iter().map(|statement| statement.id).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn pipelines_are_refused_where_they_are_out_of_place() {
    let aborted = |command: usize, word: &str, reason: &str| {
        format!("error: client 0 aborted in command {command} ({word}) of script 0; {reason}")
    };
    for (script, expected) in [
        ("\\startpipeline\n\\startpipeline\n", aborted(1, "startpipeline", "already in pipeline mode")),
        ("\\endpipeline\n", aborted(0, "endpipeline", "not in pipeline mode")),
        ("\\syncpipeline\n", aborted(0, "syncpipeline", "not in pipeline mode")),
        ("\\startpipeline\nSELECT 1 \\gset\n", aborted(1, "gset", "\\gset is not allowed in pipeline mode")),
        ("\\startpipeline\nSELECT 1 \\aset\n", aborted(1, "aset", "\\aset is not allowed in pipeline mode")),
        ("\\startpipeline\n", "error: client 0 aborted: end of script reached with pipeline open".to_owned()),
    ] {
        assert_eq!(run(script, EXTENDED).last(), Some(&expected), "{script}");
    }
    let refused = aborted(0, "startpipeline", "cannot use pipeline mode with the simple query protocol");
    assert_eq!(run("\\startpipeline\n", QueryMode::Simple), [refused]);
}

#[test]
fn gset_takes_the_only_row_of_the_last_query() {
    let mut client = client("SELECT 1 \\gset p_\nSELECT :p_a, :p_b, :a;", &environment(QueryMode::Simple));
    assert!(matches!(client.next_action(), Action::Query { rows: Rows::Kept, .. }));
    client
        .store(&[result(&["a"], 7, &[Some("9")]), result(&["a", "b", "c"], 1, &[Some("x"), None, Some("y")])])
        .unwrap();
    assert_eq!(transcript(client.as_mut()), ["> SELECT x, , :a;"]);
}

#[test]
fn gset_wants_exactly_one_row() {
    let mut client = client("SELECT 1 \\gset\nSELECT :a;", &environment(QueryMode::Simple));
    client.next_action();
    let rows = |query, count: u64| {
        Err(AbortReason::Rows { command: 0, query, reason: format!("expected one row, got {count}"), detail: None })
    };
    assert_eq!(client.store(&[result(&[], 0, &[])]), rows(0, 0));
    assert_eq!(client.store(&[result(&[], 0, &[]), result(&["a"], 2, &[Some("1")])]), rows(1, 2));
    let name = client.store(&[result(&["?column?"], 1, &[Some("1")])]);
    let Err(AbortReason::Rows { reason, detail, .. }) = name else { panic!("the name is no variable's") };
    assert_eq!(reason, "error storing into variable ?column?");
    assert_eq!(detail.as_deref(), Some("gset: invalid variable name: \"?column?\""));
}

#[test]
fn aset_takes_the_last_row_of_each_query_that_has_one() {
    let mut client = client("SELECT 1 \\aset\nSELECT :a, :b, :c;", &environment(QueryMode::Simple));
    client.next_action();
    let results = [result(&["a"], 3, &[Some("1")]), result(&["b"], 0, &[]), result(&["c"], 1, &[Some("3")])];
    client.store(&results).unwrap();
    assert_eq!(transcript(client.as_mut()), ["> SELECT 1, :b, 3;"]);
}

#[test]
fn what_a_row_gave_is_typed_when_it_is_used() {
    let mut client = client("SELECT 1 \\gset\n\\set b :a * 2\nSELECT :b;", &environment(QueryMode::Simple));
    client.next_action();
    client.store(&[result(&["a"], 1, &[Some("1.5")])]).unwrap();
    assert_eq!(transcript(client.as_mut()), ["> SELECT 3;"]);
}

#[test]
fn sleeping_has_units_and_wraps_as_in_pgbench() {
    for (words, micros) in [
        ("2", 2_000_000),
        ("3 us", 3),
        ("4ms", 4_000),
        (":scale MS", 1_000),
        ("-1 s", 0),
        ("+1us", 1),
        ("3000 s", 0),
        ("5000 s", 705_032_704),
    ] {
        let mut client = client(&format!("\\sleep {words}\n"), &environment(QueryMode::Simple));
        let Action::Sleep { command: 0, time } = client.next_action() else { panic!("no sleep: {words}") };
        assert_eq!(time, Duration::from_micros(micros), "{words}");
    }
}

#[test]
fn shell_results_become_variables() {
    assert_eq!(said("\\setshell a echo :scale\nSELECT :a;"), "> SELECT 1;");
    let refused = said("\\setshell 1a echo 1\n");
    assert_eq!(
        refused,
        "error: setshell: invalid variable name: \"1a\"\n\
         error: client 0 aborted in command 0 (setshell) of script 0; execution of meta-command failed"
    );
}

#[test]
fn given_variables_come_before_automatic_ones() {
    let mut given = environment(QueryMode::Simple);
    given.variables.push(("client_id".to_owned(), Value::Text((*b"77").into())));
    given.variables.push(("default_seed".to_owned(), Value::Int(3)));
    let mut client = client("SELECT :client_id, :default_seed, :random_seed;", &given);
    assert_eq!(transcript(client.as_mut()), ["> SELECT 77, 3, 5;"]);
}

#[test]
fn each_client_has_its_number() {
    let scripts = link("SELECT :client_id;", &environment(QueryMode::Simple)).unwrap();
    let mut client = scripts.client(12, Random::seeded(1));
    client.begin(&mut Random::seeded(1));
    assert_eq!(transcript(client.as_mut()), ["> SELECT 12;"]);
}

#[test]
fn assigned_variables_are_not_taken_for_constants() {
    assert_eq!(said("\\set scale 5\n\\set a :scale * 2\nSELECT :a;"), "> SELECT 10;");
    assert_eq!(said("\\setshell scale echo 6\n\\set a :scale * 2\nSELECT :a;"), "> SELECT 12;");
    let mut client =
        client("SELECT 7 AS scale \\gset\n\\set a :scale * 2\nSELECT :a;", &environment(QueryMode::Simple));
    client.next_action();
    client.store(&[result(&["scale"], 1, &[Some("7")])]).unwrap();
    assert_eq!(transcript(client.as_mut()), ["> SELECT 14;"]);
}

#[test]
fn scripts_are_chosen_by_weight() {
    let parsed = |weight| parse("s", weight, b"SELECT 1;").unwrap();
    let scripts = Scripts::link(vec![parsed(1), parsed(0), parsed(3)], &environment(EXTENDED)).unwrap();
    let mut random = Random::seeded(3);
    let mut counts = [0; 3];
    (0..4000).for_each(|_| counts[scripts.choose(&mut random)] += 1);
    assert_eq!(counts[1], 0);
    assert!((800..1200).contains(&counts[0]), "{counts:?}");
}

#[test]
fn statements_are_numbered_through_all_scripts() {
    let parsed = || parse("s", 1, b"SELECT 1; SELECT 2;").unwrap();
    let scripts = Scripts::link(vec![parsed(), parsed()], &environment(EXTENDED)).unwrap();
    let ids = scripts.scripts.iter().flat_map(|script| script.statements.iter().map(|statement| statement.id));
    assert_eq!(ids.collect::<Vec<_>>(), [0, 1, 2, 3]);
}
