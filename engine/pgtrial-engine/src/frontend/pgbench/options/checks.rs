//! The options together: defaults that depend on others, and pairs that contradict each other, in pgbench's order.

use super::reader::Reader;
use super::table::Id;
use super::{Command, Options};
use crate::frontend::pgbench::messages::Failure;
use crate::frontend::pgbench::scripts;
use crate::frontend::pgbench::values::reserve_files;
use crate::frontend::sharing::{check_enough, needs_seed};
use drive::plan::StartAt;
use ground::shard::{ClientShare, Shard};
use tables::PartitionMethod;

impl Reader {
    /// The command that the options and the arguments beside them make.
    pub fn finish(mut self, positional: Vec<String>) -> Result<Command, Failure> {
        if self.options.scripts.is_empty() && !self.initialize {
            self.take_script(Id::Builtin, "tpcb-like")?;
        }
        if !self.initialize {
            self.settle_part()?;
        }
        let options = &mut self.options;
        if !self.initialize && scripts::total_weight(&options.scripts) == 0 {
            return Err(Failure::error("total script weight must not be zero"));
        }
        options.jobs = options.jobs.min(options.clients);
        let mut rest = positional.into_iter();
        if options.dbname.is_none() {
            options.dbname = rest.next();
        }
        if let Some(extra) = rest.next() {
            return Err(Failure::error(format!("too many command-line arguments (first is \"{extra}\")"))
                .hint("Try \"pgbench --help\" for more information."));
        }
        let misplaced = |mode| Failure::error(format!("some of the specified options cannot be used in {mode} mode"));
        if self.initialize {
            if self.for_benchmarking {
                return Err(misplaced("initialization (-i)"));
            }
            options.load_shard = self.shard.unwrap_or(Shard::WHOLE);
            complete_initialization(options)?;
            return Ok(Command::Initialize(Box::new(self.options)));
        }
        if self.for_initialization {
            return Err(misplaced("benchmarking"));
        }
        match contradiction(options) {
            Some(message) => Err(Failure::error(message)),
            None => Ok(Command::Benchmark(Box::new(self.options))),
        }
    }

    /// What this engine has to do of the whole run.
    fn settle_part(&mut self) -> Result<(), Failure> {
        let (shard, options) = (self.shard.unwrap_or(Shard::WHOLE), &mut self.options);
        if shard.is_part() && !self.is_seeded {
            return Err(Failure::error(needs_seed("--random-seed")));
        }
        if options.start == Some(StartAt::Told) && self.reads_stdin {
            return Err(Failure::error("--start-at=- cannot be combined with --file=-: both read standard input"));
        }
        options.part = ClientShare::of_clients(shard, options.clients);
        if self.pooling.is_given() {
            self.settle_pools()?;
        } else {
            check_enough(shard, self.options.clients, "clients").map_err(Failure::error)?;
        }
        self.options.clients = self.options.part.clients();
        reserve_files(self.options.clients)
    }
}

fn complete_initialization(options: &mut Options) -> Result<(), Failure> {
    if options.partitions == 0 && options.partition_method.is_some() {
        return Err(Failure::error("--partition-method requires greater than zero --partitions"));
    }
    if options.partitions > 0 {
        options.partition_method.get_or_insert(PartitionMethod::Range);
    }
    if options.foreign_keys && !options.init_steps.contains('f') {
        options.init_steps.push('f');
    }
    if options.no_vacuum {
        options.init_steps.retain(|step| step != 'v');
    }
    if options.load_shard.is_part() && options.init_steps.trim() != "g" {
        return Err(Failure::error(
            "--shard with -i is for the client-side rows alone (-I g): make the tables once before (-I dt), vacuum them \
             and make their keys once after (-I vp)",
        ));
    }
    Ok(())
}

/// What is wrong with the options of a benchmark taken together.
fn contradiction(options: &Options) -> Option<String> {
    if options.transactions.is_some() && options.duration.is_some() {
        return Some("specify either a number of transactions (-t) or a duration (-T), not both".to_owned());
    }
    let rules = [
        (
            options.sampling_rate.is_some() && !options.log,
            "log sampling (--sampling-rate) is allowed only when logging transactions (-l)",
        ),
        (
            options.sampling_rate.is_some() && options.aggregate_interval.is_some(),
            "log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be used at the same time",
        ),
        (
            options.aggregate_interval.is_some() && !options.log,
            "log aggregation is allowed only when actually logging transactions",
        ),
        (
            options.log_prefix.is_some() && !options.log,
            "log file prefix (--log-prefix) is allowed only when logging transactions (-l)",
        ),
    ];
    if let Some((_, message)) = rules.into_iter().find(|(broken, _)| *broken) {
        return Some(message.to_owned());
    }
    if let (Some(duration), Some(interval)) = (options.duration, options.aggregate_interval) {
        if interval > duration {
            return Some(format!(
                "number of seconds for aggregation ({interval}) must not be higher than test duration ({duration})"
            ));
        }
        if duration % interval != 0 {
            return Some(format!("duration ({duration}) must be a multiple of aggregation interval ({interval})"));
        }
    }
    if options.progress_timestamp && options.progress.is_none() {
        return Some("--progress-timestamp is allowed only under --progress".to_owned());
    }
    if options.tries.is_none() && options.latency_limit.is_none() && options.duration.is_none() {
        let message =
            "an unlimited number of transaction tries can only be used with --latency-limit or a duration (-T)";
        return Some(message.to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::parse;
    use super::*;
    use wire::statement::QueryMode;

    fn parse_words(line: &str) -> Result<Command, Failure> {
        parse(line.split_whitespace().map(str::to_owned).collect())
    }

    fn benchmark(line: &str) -> Options {
        match parse_words(line) {
            Ok(Command::Benchmark(options)) => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn initialization(line: &str) -> Options {
        match parse_words(line) {
            Ok(Command::Initialize(options)) => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn options_combine_and_abbreviate() {
        let options = benchmark("-nrSl -c8 --jobs=2 --proto prepared -T 5 --warmup 1.5 --lat 2.5 --max 3 bench");
        assert!(options.no_vacuum && options.report_per_command && options.log && options.needs_tables);
        assert_eq!((options.clients, options.jobs, options.tries), (8, 2, Some(3)));
        assert_eq!(options.mode, QueryMode::Prepared);
        assert_eq!(options.warmup, Duration::from_millis(1500));
        assert_eq!(options.latency_limit, Some(Duration::from_micros(2500)));
        assert_eq!(options.dbname.as_deref(), Some("bench"));
    }

    #[test]
    fn what_is_added_makes_no_abbreviation_of_pgbenchs_ambiguous() {
        let options = benchmark("--con --h elsewhere --e");
        assert!(options.reconnect && options.exit_on_abort);
        assert_eq!(options.host.as_deref(), Some("elsewhere"));
        assert!(benchmark("--cont").continue_on_error);
        assert_eq!(benchmark("--wait 2.5").wait_for_server, Some(Duration::from_millis(2500)));
    }

    #[test]
    fn a_shard_has_its_part_of_the_clients() {
        let options = benchmark("--shard 2/3 -c 5 -j 2 --random-seed 5 --start-at=-");
        assert_eq!((options.clients, options.jobs, options.part.number(0)), (2, 2, 2));
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
    fn a_shard_loads_rows_and_nothing_else() {
        assert_eq!(initialization("-i -I g --shard 2/3").load_shard, Shard { index: 1, of: 3 });
        assert_eq!(initialization("-i --shard 1/1").init_steps, "dtgvp");
        for line in ["-i -I gv", "-i -I dtg", "-i -I G", "-i -I g --foreign-keys", "-i -I gg"] {
            let refused = parse_words(&format!("{line} --shard 1/2")).unwrap_err().to_string();
            assert!(refused.contains("--shard with -i is for the client-side rows alone (-I g)"), "{line}");
        }
    }

    #[test]
    fn foreign_keys_and_no_vacuum_change_the_steps() {
        assert_eq!(initialization("-i -n --foreign-keys").init_steps, "dtgpf");
    }

    #[test]
    fn partitions_are_by_range_unless_said_otherwise() {
        assert_eq!(initialization("-i --partitions 3").partition_method, Some(PartitionMethod::Range));
        let by_hash = initialization("-i --partitions 3 --partition-method HASH");
        assert_eq!(by_hash.partition_method, Some(PartitionMethod::Hash));
        assert_eq!(initialization("-i").partition_method, None);
    }
}
