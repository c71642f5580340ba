//! Tests of pgbench's command line.

use std::time::Duration;

use super::*;
use crate::frontend::lines::parsed;
use crate::frontend::pgbench::program::PGBENCH;
use ground::shard::Shard;
use wire::statement::QueryMode;

fn parse_words(line: &str) -> Result<PgbenchCommand, Failure> {
    parsed(line, parse)
}

fn rejected(line: &str) -> String {
    PGBENCH.describe(&parse_words(line).unwrap_err())
}

fn settled(line: &str) -> (PgbenchOptions, EngineShare) {
    match parse_words(line) {
        Ok(PgbenchCommand::Benchmark(options, share)) => (*options, share),
        other => panic!("{line}: {other:?}"),
    }
}

fn benchmark(line: &str) -> PgbenchOptions {
    settled(line).0
}

fn share(line: &str) -> EngineShare {
    settled(line).1
}

fn initialization(line: &str) -> InitializationOptions {
    match parse_words(line) {
        Ok(PgbenchCommand::Initialize(options)) => options.init,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn options_combine_and_abbreviate() {
    let (options, share) = settled("-nrSl -c8 --jobs=2 --proto prepared -T 5 --warmup 1.5 --lat 2.5 --max 3 bench");
    assert!(options.no_vacuum && options.run.script.timed_commands);
    assert!(options.run.log.is_on && options.sources.needs_tables);
    assert_eq!((share.part.clients(), share.jobs, options.run.script.tries), (8, 2, Some(3)));
    assert_eq!(options.run.mode, QueryMode::Prepared);
    assert_eq!(options.run.warmup, Duration::from_millis(1500));
    assert_eq!(options.run.script.latency_limit, Some(Duration::from_micros(2500)));
    assert_eq!(options.run.server.dbname.as_deref(), Some("bench"));
}

#[test]
fn what_is_added_makes_no_abbreviation_of_pgbenchs_ambiguous() {
    let options = benchmark("--con --h elsewhere --e");
    assert!(options.run.reconnect && options.run.exit_on_abort);
    assert_eq!(options.run.server.host.as_deref(), Some("elsewhere"));
    assert!(benchmark("--cont").run.script.continue_on_error);
    assert_eq!(benchmark("--wait 2.5").run.wait_for_server, Some(Duration::from_millis(2500)));
}

#[test]
fn the_time_includes_the_connecting_unless_options_say_when_it_begins() {
    let includes = |line: &str| benchmark(line).run.time_includes_connecting();
    assert!(includes("-T 5") && includes("-T 5 --warmup 0"));
    assert!(!includes("-T 5 --time-after-connecting") && !includes("-T 5 --warmup 1") && !includes("--start-at=-"));
}

#[test]
fn a_shard_has_its_part_of_the_clients() {
    let (options, EngineShare { part, jobs, .. }) = settled("--shard 2/3 -c 5 -j 2 --random-seed 5 --start-at=-");
    assert_eq!((part.clients(), jobs, part.number(0)), (2, 2, 2));
    assert_eq!(options.run.start, Some(StartAt::StandardInput));
    assert_eq!(share("--shard 3/3 -c 5 -j 2 --random-seed 5").jobs, 1);
    let pools = share("--shard 1/2 --random-seed 5 --pool 3 --tasks 10 --apps 2").pools.unwrap();
    assert_eq!((pools.size, pools.tasks, pools.all_tasks()), (2, 7, 14));
}

#[test]
fn more_jobs_than_clients_are_cut() {
    assert_eq!(share("-c 2 -j 5").jobs, 2);
}

#[test]
fn the_last_definition_of_a_variable_counts() {
    let expected = [("b".to_owned(), "2".to_owned()), ("a".to_owned(), "x=3".to_owned())];
    assert_eq!(benchmark("-D a=1 --define b=2 -Da=x=3").sources.variables, expected);
}

#[test]
fn mistakes_are_named_as_pgbench_names_them() {
    for (line, message) in [
        ("-c 0", "-c/--client must be in range 1..2147483647"),
        ("-j x", "invalid value \"x\" for option -j/--jobs"),
        ("--wait-for-server=-1", "--wait-for-server must be in range 0..86400 seconds"),
        ("-M foo", "invalid query mode (-M): \"foo\""),
        ("-T 1 -t 2", "specify either a number of transactions (-t) or a duration (-T), not both"),
        ("-i -c 3", "some of the specified options cannot be used in initialization (-i) mode"),
        ("-F 90", "some of the specified options cannot be used in benchmarking mode"),
        ("--load-jobs 2", "some of the specified options cannot be used in benchmarking mode"),
        ("-b tpcb@x", "invalid weight specification: @x"),
        ("-b select@0", "total script weight must not be zero"),
        ("-P 4000000000", "-P/--progress must be in range 1..2147483647"),
        (
            "-i --shard 1/2",
            "--shard with -i divides only the making of rows (-I g) among engines: make the tables once \
             before (-I dt), and vacuum them and make their keys once afterwards (-I vp)",
        ),
        ("-i --partition-method hash", "--partition-method requires greater than zero --partitions"),
        ("--log-prefix x", "log file prefix (--log-prefix) is allowed only when logging transactions (-l)"),
        ("-l -T 5 --aggregate-interval 2", "duration (5) must be a multiple of aggregation interval (2)"),
        (
            "--shard 1/2",
            "--shard needs --random-seed with a number that is the same for all shards of the run, since all of \
             them derive their random values from it",
        ),
        ("--progress-timestamp", "--progress-timestamp is allowed only under --progress"),
        (
            "--slice 1s --slice-of 1/2",
            "the options --slice, --slice-of, --slice-seed and --start-at must be given together; missing: \
             --slice-seed, --start-at",
        ),
        (
            "--slice 250ms --slice-of 1/3 --slice-seed 1 --start-at 0 -T 4",
            "-T=4 does not consist of whole rounds of slices (slices per round: 3, of 0.25 s each): the nearest \
             value that does is 3",
        ),
        (
            "--slice 1s --pool 1 --tasks 1",
            "--slice cannot be combined with --pool: tasks that wait for a connection would wait during the \
             slices of other engines",
        ),
        (
            "--max-tries 0",
            "an unlimited number of transaction tries can only be used with --latency-limit or a duration (-T)",
        ),
    ] {
        let expected = format!("pgbench: error: {message}");
        assert_eq!(rejected(line), expected, "{line}");
    }
    let usage = rejected("--bogus");
    let expected =
        "pgbench: unrecognized option '--bogus'\npgbench: hint: Try \"pgbench --help\" for more information.";
    assert_eq!(usage, expected);
}

#[test]
fn a_rate_and_progress_lines_go_with_slices() {
    let (options, share) = settled("--slice 250ms --slice-of 1/2 --slice-seed 1 --start-at 0 -T 4 -P 1 -R 100");
    assert!(share.slices.is_some() && options.run.interval_ns.is_some());
}

#[test]
fn a_shard_loads_rows_and_nothing_else() {
    assert_eq!(initialization("-i -I g --shard 2/3").tables.shard, Shard { index: 1, of: 3 });
    assert_eq!(initialization("-i --shard 1/1").steps, "dtgvp");
    for line in ["-i -I gv", "-i -I dtg", "-i -I G", "-i -I g --foreign-keys", "-i -I gg"] {
        let refused = rejected(&format!("{line} --shard 1/2"));
        assert!(refused.contains("--shard with -i divides only the making of rows (-I g) among engines"), "{line}");
    }
}

#[test]
fn foreign_keys_and_no_vacuum_change_the_steps() {
    assert_eq!(initialization("-i -n --foreign-keys").steps, "dtgpf");
}

#[test]
fn partitions_are_by_range_unless_said_otherwise() {
    assert_eq!(initialization("-i --partitions 3").tables.partition_method, PartitionMethod::Range);
    let by_hash = initialization("-i --partitions 3 --partition-method HASH");
    assert_eq!(by_hash.tables.partition_method, PartitionMethod::Hash);
}

#[test]
fn slots_of_pools_take_the_place_of_clients() {
    let EngineShare { part, pools, jobs, .. } = share("-S --apps 3 --tasks 50 --pool 4 --arrival poisson:20 -j 8");
    assert_eq!((part.clients(), jobs, pools.map(|pools| pools.all_tasks())), (12, 3, Some(150)));
}

#[test]
fn what_cannot_be_combined_is_refused_in_a_sentence() {
    for (line, message) in [
        ("-S --pool 4", "tasks on pools of connections need both --tasks and --pool"),
        ("-S --arrival at-once", "tasks on pools of connections need both --tasks and --pool"),
        ("-S --pool 4 --tasks 3 -c 2", "-c/--client cannot be combined with --pool"),
        ("-S --pool 4 --tasks 3 -T 2", "-T/--time cannot be combined with --pool"),
        ("-S --pool 4 --tasks 0", "invalid value \"0\" for option --tasks"),
        ("-S --pool 4 --tasks 3 --arrival soon", "invalid value \"soon\" for option --arrival"),
        ("-i --pool 4 --tasks 3", "some of the specified options cannot be used in initialization (-i) mode"),
    ] {
        let found = rejected(line);
        assert!(found.starts_with(&format!("pgbench: error: {message}")), "{line}: {found}");
    }
}

#[test]
fn the_originals_are_all_options_but_the_added_ones() {
    for row in OPTIONS {
        let is_added = matches!(row.group, HelpSection::Added(_));
        assert_eq!(ORIGINALS.contains(&row.long()), !is_added, "{}", row.long());
        assert_eq!(row.takes_value(), row.spec.contains('='), "{}", row.spec);
    }
    assert!(ORIGINALS.iter().all(|long| OPTIONS.iter().any(|row| row.long() == *long)));
}
