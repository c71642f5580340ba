//! The options together: defaults that depend on others, and options that contradict each other, in pgbench's order.

use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::fields::{Initialization, Options};
use super::sections::Mode;
use super::table::{OPTIONS, Row};
use crate::frontend::pgbench::messages::Failure;
use crate::frontend::pgbench::scripts;
use crate::frontend::sharing::{Length, WHOLE_SECONDS, check_enough, needs_seed};
use drive::start_at::StartAt;
use ground::options::Argument;
use ground::shard::ClientShare;
use tables::PartitionMethod;

/// Options that have no meaning where tasks share pools, and why.
const EXCLUDED: [(&str, &str); 10] = [
    ("client", "the pools say how many connections there are"),
    ("connect", "a pool keeps its connections"),
    ("transactions", "--tasks says how many there are"),
    ("time", "--tasks says how many there are"),
    ("rate", "--arrival says when they start"),
    ("warmup", "all tasks count"),
    ("slice", "tasks that wait for a connection wait through others' slices"),
    ("log", "a log of tasks is written by \"pgtrial-engine tasks --csv\""),
    ("exit-on-abort", "a task that fails gives no client up"),
    ("wait-for-server", "a pool replaces what breaks, and tasks wait as --pool-timeout says"),
];

/// Checks and completes the options of pgbench, of which `given` are those of the command line.
pub fn settle(options: &mut Options, given: &[&Row], positional: Vec<String>) -> Result<(), Failure> {
    let is_initialization = options.init.is_asked_for;
    if !is_initialization {
        if options.scripts.is_empty() {
            scripts::add_builtin(options, "tpcb-like")?;
        }
        settle_share(options, given)?;
        if options.scripts.iter().all(|script| script.weight == 0) {
            return Err(Failure::error("total script weight must not be zero"));
        }
    }
    settle_database(options, positional)?;
    let mode = if is_initialization { Mode::Initialization } else { Mode::Benchmarking };
    if !given.iter().all(|row| is_for(row, mode)) {
        let mode = if is_initialization { "initialization (-i)" } else { "benchmarking" };
        return Err(Failure::error(format!("some of the specified options cannot be used in {mode} mode")));
    }
    if is_initialization {
        options.init.tables.scale = options.scale.unwrap_or(1);
        options.init.tables.shard = options.shard;
        settle_initialization(&mut options.init, options.no_vacuum)
    } else {
        settle_benchmark(options)
    }
}

/// What follows from the options of a benchmark taken together, and what contradicts.
pub fn settle_benchmark(options: &mut Options) -> Result<(), Failure> {
    settle_slices(options)?;
    contradiction(options).map_or(Ok(()), |message| Err(Failure::error(message)))
}

/// Whether pgbench takes an option in this mode.
fn is_for(option: &Row, mode: Mode) -> bool {
    OPTIONS.iter().any(|row| row.long() == option.long() && row.group.is_for(mode))
}

/// The database may be named by an argument beside the options; no other argument is allowed.
pub fn settle_database(options: &mut Options, positional: Vec<String>) -> Result<(), Failure> {
    let mut rest = positional.into_iter();
    if options.server.dbname.is_none() {
        options.server.dbname = rest.next();
    }
    match rest.next() {
        Some(extra) => Err(Failure::misuse(format!("too many command-line arguments (first is \"{extra}\")"))),
        None => Ok(()),
    }
}

/// What this engine does of the whole run: its clients, or its part of the pools.
pub fn settle_share(options: &mut Options, given: &[&Row]) -> Result<(), Failure> {
    if options.shard.is_part() && !options.is_seeded {
        return Err(Failure::error(needs_seed("--random-seed")));
    }
    if options.start == Some(StartAt::Told) && options.reads_stdin {
        return Err(Failure::error("--start-at=- cannot be combined with --file=-: both read standard input"));
    }
    if options.pooling.is_given() {
        settle_pools(options, given)?;
    } else {
        check_enough(options.shard, options.clients, "clients")?;
        options.part = ClientShare::of_clients(options.shard, options.clients);
    }
    options.jobs = options.jobs.min(options.part.clients());
    reserve_files(options.part.clients() as u64)
}

/// Warm-up and measured part are whole rounds of slices.
fn settle_slices(options: &mut Options) -> Result<(), Failure> {
    let warmup = Length { option: "--warmup", time: options.warmup, unit: 1 };
    let measured = options.duration.map(|seconds| Duration::from_secs(seconds.into()));
    let measured = Length { option: "-T", time: measured.unwrap_or_default(), unit: WHOLE_SECONDS };
    options.slices = options.slicing.settle(options.start.is_some(), &[warmup, measured])?;
    Ok(())
}

/// The pools take the place of clients.
fn settle_pools(options: &mut Options, given: &[&Row]) -> Result<(), Failure> {
    let (Some(tasks), Some(size)) = (options.pooling.tasks, options.pooling.size) else {
        return Err(Failure::error("tasks on pools of connections need both --tasks and --pool"));
    };
    for (long, reason) in EXCLUDED {
        if let Some(row) = given.iter().find(|row| row.long() == long) {
            let option = Argument::new(row.spec, "").option();
            return Err(Failure::error(format!("{option} cannot be combined with --pool: {reason}")));
        }
    }
    let apps = options.pooling.apps.unwrap_or(1);
    options.pools = Some(options.pooling.plan(options.shard, apps, tasks, size)?);
    options.part = ClientShare::of_pools(options.shard, apps, size);
    options.jobs = options.jobs.min(apps);
    options.script.continue_on_error = true;
    Ok(())
}

/// Raises the limit of open files to what so many connections need. The messages are pgbench's.
pub fn reserve_files(connections: u64) -> Result<(), Failure> {
    const ADVICE: &str = "Reduce number of clients, or use limit/ulimit to increase the system limit.";
    let needed = connections + 3;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)
        .map_err(|error| Failure::error(format!("getrlimit failed: {}", error.desc())))?;
    let too_few = |reason| Failure::error(format!("need at least {needed} open files, but {reason}")).hint(ADVICE);
    if hard < needed {
        return Err(too_few(format!("system limit is {hard}")));
    }
    // Threads need a few files more than pgbench counts.
    let wanted = (needed + 2 * connections).min(hard);
    if soft < wanted {
        setrlimit(Resource::RLIMIT_NOFILE, wanted, hard)
            .map_err(|error| too_few(format!("couldn't raise the limit: {}", error.desc())))?;
    }
    Ok(())
}

fn settle_initialization(init: &mut Initialization, no_vacuum: bool) -> Result<(), Failure> {
    if init.tables.partitions == 0 && init.partition_method.is_some() {
        return Err(Failure::error("--partition-method requires greater than zero --partitions"));
    }
    init.tables.partition_method = init.partition_method.unwrap_or(PartitionMethod::Range);
    if init.foreign_keys && !init.steps.contains('f') {
        init.steps.push('f');
    }
    if no_vacuum {
        init.steps.retain(|step| step != 'v');
    }
    if init.tables.shard.is_part() && init.steps.trim() != "g" {
        return Err(Failure::error(
            "--shard with -i is for the client-side rows alone (-I g): make the tables once before (-I dt), vacuum them \
             and make their keys once after (-I vp)",
        ));
    }
    Ok(())
}

/// What is wrong with the options of a benchmark taken together.
fn contradiction(options: &Options) -> Option<String> {
    let Options { log, output, script, transactions, duration, .. } = options;
    let rules = [
        (
            transactions.is_some() && duration.is_some(),
            "specify either a number of transactions (-t) or a duration (-T), not both",
        ),
        (
            log.sampling_rate.is_some() && !log.is_on,
            "log sampling (--sampling-rate) is allowed only when logging transactions (-l)",
        ),
        (
            log.sampling_rate.is_some() && log.aggregate_interval.is_some(),
            "log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be used at the same time",
        ),
        (
            log.aggregate_interval.is_some() && !log.is_on,
            "log aggregation is allowed only when actually logging transactions",
        ),
        (
            log.prefix.is_some() && !log.is_on,
            "log file prefix (--log-prefix) is allowed only when logging transactions (-l)",
        ),
    ];
    if let Some((_, message)) = rules.into_iter().find(|(is_broken, _)| *is_broken) {
        return Some(message.to_owned());
    }
    if let (Some(duration), Some(interval)) = (*duration, log.aggregate_interval) {
        if interval > duration {
            return Some(format!(
                "number of seconds for aggregation ({interval}) must not be higher than test duration ({duration})"
            ));
        }
        if duration % interval != 0 {
            return Some(format!("duration ({duration}) must be a multiple of aggregation interval ({interval})"));
        }
    }
    if output.progress_timestamp && output.progress.is_none() {
        return Some("--progress-timestamp is allowed only under --progress".to_owned());
    }
    let is_endless = script.tries.is_none() && script.latency_limit.is_none() && duration.is_none();
    is_endless.then(|| {
        "an unlimited number of transaction tries can only be used with --latency-limit or a duration (-T)".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::super::reader::parse;
    use super::*;
    use ground::options::Stop;
    use ground::shard::Shard;
    use wire::statement::QueryMode;

    fn parse_words(line: &str) -> Result<Box<Options>, Failure> {
        match parse(line.split_whitespace().map(str::to_owned).collect()) {
            Ok(options) => Ok(options),
            Err(Stop::Error(failure)) => Err(failure),
            Err(Stop::Print(text) | Stop::List(text)) => panic!("{line}: {text}"),
        }
    }

    fn benchmark(line: &str) -> Options {
        match parse_words(line) {
            Ok(options) if !options.init.is_asked_for => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn initialization(line: &str) -> Options {
        match parse_words(line) {
            Ok(options) if options.init.is_asked_for => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn options_combine_and_abbreviate() {
        let options = benchmark("-nrSl -c8 --jobs=2 --proto prepared -T 5 --warmup 1.5 --lat 2.5 --max 3 bench");
        assert!(options.no_vacuum && options.script.timed_commands && options.log.is_on && options.needs_tables);
        assert_eq!((options.clients, options.jobs, options.script.tries), (8, 2, Some(3)));
        assert_eq!(options.mode, QueryMode::Prepared);
        assert_eq!(options.warmup, Duration::from_millis(1500));
        assert_eq!(options.script.latency_limit, Some(Duration::from_micros(2500)));
        assert_eq!(options.server.dbname.as_deref(), Some("bench"));
    }

    #[test]
    fn what_is_added_makes_no_abbreviation_of_pgbenchs_ambiguous() {
        let options = benchmark("--con --h elsewhere --e");
        assert!(options.reconnect && options.exit_on_abort);
        assert_eq!(options.server.host.as_deref(), Some("elsewhere"));
        assert!(benchmark("--cont").script.continue_on_error);
        assert_eq!(benchmark("--wait 2.5").wait_for_server, Some(Duration::from_millis(2500)));
    }

    #[test]
    fn a_shard_has_its_part_of_the_clients() {
        let options = benchmark("--shard 2/3 -c 5 -j 2 --random-seed 5 --start-at=-");
        assert_eq!((options.part.clients(), options.jobs, options.part.number(0)), (2, 2, 2));
        assert_eq!(options.start, Some(StartAt::Told));
        assert_eq!(benchmark("--shard 3/3 -c 5 -j 2 --random-seed 5").jobs, 1);
        let pools = benchmark("--shard 1/2 --random-seed 5 --pool 3 --tasks 10 --apps 2").pools.unwrap();
        assert_eq!((pools.size, pools.tasks, pools.all_tasks()), (2, 7, 14));
    }

    #[test]
    fn more_jobs_than_clients_are_cut() {
        assert_eq!(benchmark("-c 2 -j 5").jobs, 2);
    }

    #[test]
    fn the_last_definition_of_a_variable_counts() {
        let expected = [("b".to_owned(), "2".to_owned()), ("a".to_owned(), "x=3".to_owned())];
        assert_eq!(benchmark("-D a=1 --define b=2 -Da=x=3").variables, expected);
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
                "--shard with -i is for the client-side rows alone (-I g): make the tables once before (-I dt), vacuum \
                 them and make their keys once after (-I vp)",
            ),
            ("-i --partition-method hash", "--partition-method requires greater than zero --partitions"),
            ("--log-prefix x", "log file prefix (--log-prefix) is allowed only when logging transactions (-l)"),
            ("-l -T 5 --aggregate-interval 2", "duration (5) must be a multiple of aggregation interval (2)"),
            (
                "--shard 1/2",
                "--shard needs --random-seed with a number, the same for all shards of the run: they draw from one seed",
            ),
            ("--progress-timestamp", "--progress-timestamp is allowed only under --progress"),
            (
                "--slice 1s --slice-of 1/2",
                "slices need --slice, --slice-of, --slice-seed and --start-at together: --slice-seed, --start-at missing",
            ),
            (
                "--slice 250ms --slice-of 1/3 --slice-seed 1 --start-at 0 -T 4",
                "-T=4 is not a whole number of rounds, each 3 slices of 0.25 s: the nearest is 3",
            ),
            (
                "--slice 1s --pool 1 --tasks 1",
                "--slice cannot be combined with --pool: tasks that wait for a connection wait through others' slices",
            ),
            (
                "--max-tries 0",
                "an unlimited number of transaction tries can only be used with --latency-limit or a duration (-T)",
            ),
        ] {
            let expected = format!("pgbench: error: {message}");
            assert_eq!(parse_words(line).unwrap_err().to_string(), expected, "{line}");
        }
        let usage = parse_words("--bogus").unwrap_err().to_string();
        let expected =
            "pgbench: unrecognized option '--bogus'\npgbench: hint: Try \"pgbench --help\" for more information.";
        assert_eq!(usage, expected);
    }

    #[test]
    fn a_rate_and_progress_lines_go_with_slices() {
        let options = benchmark("--slice 250ms --slice-of 1/2 --slice-seed 1 --start-at 0 -T 4 -P 1 -R 100");
        assert!(options.slices.is_some() && options.interval_ns.is_some());
    }

    #[test]
    fn a_shard_loads_rows_and_nothing_else() {
        assert_eq!(initialization("-i -I g --shard 2/3").init.tables.shard, Shard { index: 1, of: 3 });
        assert_eq!(initialization("-i --shard 1/1").init.steps, "dtgvp");
        for line in ["-i -I gv", "-i -I dtg", "-i -I G", "-i -I g --foreign-keys", "-i -I gg"] {
            let refused = parse_words(&format!("{line} --shard 1/2")).unwrap_err().to_string();
            assert!(refused.contains("--shard with -i is for the client-side rows alone (-I g)"), "{line}");
        }
    }

    #[test]
    fn foreign_keys_and_no_vacuum_change_the_steps() {
        assert_eq!(initialization("-i -n --foreign-keys").init.steps, "dtgpf");
    }

    #[test]
    fn partitions_are_by_range_unless_said_otherwise() {
        assert_eq!(initialization("-i --partitions 3").init.tables.partition_method, PartitionMethod::Range);
        let by_hash = initialization("-i --partitions 3 --partition-method HASH");
        assert_eq!(by_hash.init.tables.partition_method, PartitionMethod::Hash);
        assert_eq!(initialization("-i").init.partition_method, None);
    }

    #[test]
    fn slots_of_pools_take_the_place_of_clients() {
        let options = benchmark("-S --apps 3 --tasks 50 --pool 4 --arrival poisson:20 -j 8");
        assert_eq!((options.part.clients(), options.jobs, options.script.continue_on_error), (12, 3, true));
        assert_eq!(options.pools.map(|pools| pools.all_tasks()), Some(150));
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
            let found = parse_words(line).unwrap_err().to_string();
            assert!(found.starts_with(&format!("pgbench: error: {message}")), "{line}: {found}");
        }
    }
}
