//! Checks whether pgbench's options fit together: sets defaults that depend on other options, and rejects options that
//! contradict each other, in the same order as pgbench.

use super::arguments::{Arguments, Benchmark, InitArguments, Initialization, PgbenchCommand};
use super::sections::OptionMode;
use super::table::{OPTIONS, PgbenchOption};
use crate::frontend::common::connection::with_database;
use crate::frontend::common::failure::Failure;
use crate::frontend::pgbench::scripts;
use drive::start_at::StartAt;
use ground::options::Argument;
use tables::{InitOptions, PartitionMethod};

/// The options that cannot be combined with connection pools (`--pool`), each with the reason.
const EXCLUDED: [(&str, &str); 10] = [
    ("client", "the size of the pools determines the number of connections"),
    ("connect", "a pool keeps its connections"),
    ("transactions", "--tasks sets the number of transactions"),
    ("time", "the run ends when all --tasks have run"),
    ("rate", "--arrival determines when tasks start"),
    ("warmup", "all tasks are measured"),
    ("slice", "tasks that wait for a connection would wait during the slices of other engines"),
    ("log", "a log of tasks is written by \"pgtrial-engine tasks --csv\""),
    ("exit-on-abort", "no client is aborted when a task fails"),
    ("wait-for-server", "a pool replaces broken connections, and tasks wait for them up to --pool-timeout"),
];

/// Returns the work that the arguments ask pgbench to do, or an error if they contradict each other. `given` are the
/// options that the command line contains, and `positional` are its other arguments.
pub fn settle(
    arguments: Arguments,
    given: &[&PgbenchOption],
    positional: Vec<String>,
) -> Result<PgbenchCommand, Failure> {
    if arguments.init.is_asked_for {
        initialization(arguments, given, positional)
            .map(|initialization| PgbenchCommand::Initialize(Box::new(initialization)))
    } else {
        benchmark(arguments, given, positional).map(|benchmark| PgbenchCommand::Benchmark(Box::new(benchmark)))
    }
}

fn benchmark(
    mut arguments: Arguments,
    given: &[&PgbenchOption],
    positional: Vec<String>,
) -> Result<Benchmark, Failure> {
    if arguments.sources.scripts.is_empty() {
        scripts::add_builtin(&mut arguments, "tpcb-like")?;
    }
    let Arguments { mut run, scale, no_vacuum, vacuum_all, sources, needs_tables, lists_commands, .. } = arguments;
    let Arguments { reads_stdin, uses_additions, time_after_connecting, .. } = arguments;
    if run.load.settings.start == Some(StartAt::StandardInput) && reads_stdin {
        return Err(Failure::error("--start-at=- cannot be combined with --file=-: both read standard input"));
    }
    if run.load.pooling.is_given() {
        check_excluded(given)?;
    }
    let share = run.load.share()?;
    if sources.scripts.iter().all(|script| script.weight == 0) {
        return Err(Failure::error("total script weight must not be zero"));
    }
    run.server = with_database(run.server, positional)?;
    check_mode(given, OptionMode::Benchmarking, "benchmarking")?;
    // With a warm-up or a planned start, the measured time begins after the warm-up or at the planned start, so it
    // cannot include the time for connecting. Slices of time also have a planned start.
    let settings = &mut run.load.settings;
    settings.time_includes_connecting = !time_after_connecting && settings.warmup.is_zero() && settings.start.is_none();
    let run = run.settle(share)?;
    Ok(Benchmark { run, sources, needs_tables, lists_commands, scale, no_vacuum, vacuum_all, uses_additions })
}

/// Rejects options that cannot be combined with connection pools.
fn check_excluded(given: &[&PgbenchOption]) -> Result<(), Failure> {
    for (long, reason) in EXCLUDED {
        if let Some(row) = given.iter().find(|row| row.long() == long) {
            let option = Argument::new(row.spec, "").option();
            return Err(Failure::error(format!("{option} cannot be combined with --pool: {reason}")));
        }
    }
    Ok(())
}

/// Rejects options that are not valid in this mode. `called` is the mode's name in pgbench's error message.
fn check_mode(given: &[&PgbenchOption], mode: OptionMode, called: &str) -> Result<(), Failure> {
    let is_for =
        |option: &PgbenchOption| OPTIONS.iter().any(|row| row.long() == option.long() && row.group.is_for(mode));
    if given.iter().all(|row| is_for(row)) {
        return Ok(());
    }
    Err(Failure::error(format!("some of the specified options cannot be used in {called} mode")))
}

fn initialization(
    arguments: Arguments,
    given: &[&PgbenchOption],
    positional: Vec<String>,
) -> Result<Initialization, Failure> {
    let Arguments { run, scale, no_vacuum, init, .. } = arguments;
    let server = with_database(run.server, positional)?;
    check_mode(given, OptionMode::Initialization, "initialization (-i)")?;
    let InitArguments { steps, foreign_keys, partition_method, tables, .. } = init;
    if tables.partitions == 0 && partition_method.is_some() {
        return Err(Failure::error("--partition-method requires greater than zero --partitions"));
    }
    let shard = run.load.shard;
    let last = if foreign_keys && !steps.contains('f') { "f" } else { "" };
    let steps = (steps + last).replace(|step| no_vacuum && step == 'v', "");
    if shard.is_part() && steps.trim() != "g" {
        return Err(Failure::error(
            "--shard with -i divides only the making of rows (-I g) among engines: make the tables once before \
             (-I dt), and vacuum them and make their keys once afterwards (-I vp)",
        ));
    }
    let partition_method = partition_method.unwrap_or(PartitionMethod::Range);
    Ok(Initialization {
        server,
        steps,
        tables: InitOptions { scale: scale.unwrap_or(1), shard, partition_method, ..tables },
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::reader::parse;
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

    fn benchmark(line: &str) -> Benchmark {
        match parse_words(line) {
            Ok(PgbenchCommand::Benchmark(benchmark)) => *benchmark,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn initialization(line: &str) -> Initialization {
        match parse_words(line) {
            Ok(PgbenchCommand::Initialize(initialization)) => *initialization,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn options_combine_and_abbreviate() {
        let options = benchmark("-nrSl -c8 --jobs=2 --proto prepared -T 5 --warmup 1.5 --lat 2.5 --max 3 bench");
        assert!(
            options.no_vacuum
                && options.run.load.settings.script.timed_commands
                && options.run.log.is_some()
                && options.needs_tables
        );
        assert_eq!(
            (
                options.run.load.share.part.clients(),
                options.run.load.share.jobs,
                options.run.load.settings.script.tries
            ),
            (8, 2, Some(3))
        );
        assert_eq!(options.run.load.settings.mode, QueryMode::Prepared);
        assert_eq!(options.run.load.settings.warmup, Duration::from_millis(1500));
        assert_eq!(options.run.load.settings.script.latency_limit, Some(Duration::from_micros(2500)));
        assert_eq!(options.run.server.dbname.as_deref(), Some("bench"));
    }

    #[test]
    fn what_is_added_makes_no_abbreviation_of_pgbenchs_ambiguous() {
        let options = benchmark("--con --h elsewhere --e");
        assert!(options.run.load.settings.reconnect && options.run.load.settings.exit_on_abort);
        assert_eq!(options.run.server.host.as_deref(), Some("elsewhere"));
        assert!(benchmark("--cont").run.load.settings.script.continue_on_error);
        assert_eq!(benchmark("--wait 2.5").run.load.settings.wait_for_server, Some(Duration::from_millis(2500)));
    }

    #[test]
    fn the_time_includes_the_connecting_unless_options_say_when_it_begins() {
        let includes = |line: &str| benchmark(line).run.load.settings.time_includes_connecting;
        assert!(includes("-T 5") && includes("-T 5 --warmup 0"));
        assert!(!includes("-T 5 --time-after-connecting") && !includes("-T 5 --warmup 1") && !includes("--start-at=-"));
    }

    #[test]
    fn a_shard_has_its_part_of_the_clients() {
        let options = benchmark("--shard 2/3 -c 5 -j 2 --random-seed 5 --start-at=-");
        assert_eq!(
            (options.run.load.share.part.clients(), options.run.load.share.jobs, options.run.load.share.part.number(0)),
            (2, 2, 2)
        );
        assert_eq!(options.run.load.settings.start, Some(StartAt::StandardInput));
        assert_eq!(benchmark("--shard 3/3 -c 5 -j 2 --random-seed 5").run.load.share.jobs, 1);
        let pools = benchmark("--shard 1/2 --random-seed 5 --pool 3 --tasks 10 --apps 2").run.load.share.pools.unwrap();
        assert_eq!((pools.size, pools.tasks, pools.all_tasks()), (2, 7, 14));
    }

    #[test]
    fn more_jobs_than_clients_are_cut() {
        assert_eq!(benchmark("-c 2 -j 5").run.load.share.jobs, 2);
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
        let options = benchmark("--slice 250ms --slice-of 1/2 --slice-seed 1 --start-at 0 -T 4 -P 1 -R 100");
        assert!(options.run.load.slices.is_some() && options.run.load.settings.interval_ns.is_some());
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
        let options = benchmark("-S --apps 3 --tasks 50 --pool 4 --arrival poisson:20 -j 8");
        assert_eq!(
            (
                options.run.load.share.part.clients(),
                options.run.load.share.jobs,
                options.run.load.settings.script.continue_on_error
            ),
            (12, 3, true)
        );
        assert_eq!(options.run.load.share.pools.map(|pools| pools.all_tasks()), Some(150));
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
}
