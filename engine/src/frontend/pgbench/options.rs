//! pgbench's command line.

use std::path::PathBuf;
use std::time::Duration;

use super::messages::Failure;
use super::values::{
    builtin_script, check_steps, client_count, count, integer, mode, random_seed, script_named, warmup,
};
use super::{PGBENCH_VERSION, help};
use crate::connection::statement::QueryMode;
use crate::frontend::getopt::{Getopt, LongOption, ShortOption};
use crate::program::pgbench::builtin::{self, Builtin};

/// What the command line asks for.
#[derive(Debug)]
pub enum Command {
    /// Print on standard output and stop.
    Print(String),
    /// Print on standard error and stop.
    List(String),
    Initialize(Box<Options>),
    Benchmark(Box<Options>),
}

/// All options; counts are in pgbench's range 1..2147483647 unless said otherwise.
#[derive(Debug, Clone)]
pub struct Options {
    pub host: Option<String>,
    pub port: Option<String>,
    pub user: Option<String>,
    pub dbname: Option<String>,
    pub scale: Option<u32>,
    pub init_steps: String,
    /// Percent, 10 to 100.
    pub fillfactor: u32,
    pub foreign_keys: bool,
    pub quiet: bool,
    pub no_vacuum: bool,
    pub vacuum_all: bool,
    pub builtins: Vec<(&'static Builtin, u64)>,
    pub clients: usize,
    pub jobs: usize,
    pub transactions: Option<u64>,
    pub duration: Option<Duration>,
    pub warmup: Duration,
    pub mode: QueryMode,
    pub reconnect: bool,
    pub report_per_command: bool,
    /// Seconds between progress lines.
    pub progress: Option<u32>,
    pub percentiles: bool,
    pub events: Option<Events>,
    pub seed: u64,
}

/// Where the JSON Lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Events {
    Stdout,
    File(PathBuf),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Id {
    Builtin,
    Client,
    Connect,
    Dbname,
    Events,
    Fillfactor,
    ForeignKeys,
    Host,
    InitSteps,
    Initialize,
    Jobs,
    NoVacuum,
    Percentiles,
    Port,
    Progress,
    Protocol,
    Quiet,
    RandomSeed,
    ReportPerCommand,
    Scale,
    SelectOnly,
    ShowScript,
    SkipSomeUpdates,
    Time,
    Transactions,
    Username,
    VacuumAll,
    Warmup,
}

const SHORTS: [ShortOption<Id>; 22] = [
    ('b', true, Id::Builtin),
    ('c', true, Id::Client),
    ('C', false, Id::Connect),
    ('d', true, Id::Dbname),
    ('F', true, Id::Fillfactor),
    ('h', true, Id::Host),
    ('I', true, Id::InitSteps),
    ('i', false, Id::Initialize),
    ('j', true, Id::Jobs),
    ('n', false, Id::NoVacuum),
    ('p', true, Id::Port),
    ('P', true, Id::Progress),
    ('M', true, Id::Protocol),
    ('q', false, Id::Quiet),
    ('r', false, Id::ReportPerCommand),
    ('s', true, Id::Scale),
    ('S', false, Id::SelectOnly),
    ('N', false, Id::SkipSomeUpdates),
    ('T', true, Id::Time),
    ('t', true, Id::Transactions),
    ('U', true, Id::Username),
    ('v', false, Id::VacuumAll),
];

/// In pgbench's order, in which an ambiguous abbreviation's possibilities are named; what pgtrial adds comes last.
const LONGS: [LongOption<Id>; 28] = [
    LongOption { name: "builtin", value: true, id: Id::Builtin },
    LongOption { name: "client", value: true, id: Id::Client },
    LongOption { name: "connect", value: false, id: Id::Connect },
    LongOption { name: "dbname", value: true, id: Id::Dbname },
    LongOption { name: "fillfactor", value: true, id: Id::Fillfactor },
    LongOption { name: "host", value: true, id: Id::Host },
    LongOption { name: "initialize", value: false, id: Id::Initialize },
    LongOption { name: "init-steps", value: true, id: Id::InitSteps },
    LongOption { name: "jobs", value: true, id: Id::Jobs },
    LongOption { name: "no-vacuum", value: false, id: Id::NoVacuum },
    LongOption { name: "port", value: true, id: Id::Port },
    LongOption { name: "progress", value: true, id: Id::Progress },
    LongOption { name: "protocol", value: true, id: Id::Protocol },
    LongOption { name: "quiet", value: false, id: Id::Quiet },
    LongOption { name: "report-per-command", value: false, id: Id::ReportPerCommand },
    LongOption { name: "scale", value: true, id: Id::Scale },
    LongOption { name: "select-only", value: false, id: Id::SelectOnly },
    LongOption { name: "skip-some-updates", value: false, id: Id::SkipSomeUpdates },
    LongOption { name: "time", value: true, id: Id::Time },
    LongOption { name: "transactions", value: true, id: Id::Transactions },
    LongOption { name: "username", value: true, id: Id::Username },
    LongOption { name: "vacuum-all", value: false, id: Id::VacuumAll },
    LongOption { name: "foreign-keys", value: false, id: Id::ForeignKeys },
    LongOption { name: "random-seed", value: true, id: Id::RandomSeed },
    LongOption { name: "show-script", value: true, id: Id::ShowScript },
    LongOption { name: "events", value: true, id: Id::Events },
    LongOption { name: "percentiles", value: false, id: Id::Percentiles },
    LongOption { name: "warmup", value: true, id: Id::Warmup },
];

impl Default for Options {
    fn default() -> Self {
        Self {
            host: None,
            port: None,
            user: None,
            dbname: None,
            scale: None,
            init_steps: "dtgvp".to_owned(),
            fillfactor: 100,
            foreign_keys: false,
            quiet: false,
            no_vacuum: false,
            vacuum_all: false,
            builtins: Vec::new(),
            clients: 1,
            jobs: 1,
            transactions: None,
            duration: None,
            warmup: Duration::ZERO,
            mode: QueryMode::Simple,
            reconnect: false,
            report_per_command: false,
            progress: None,
            percentiles: false,
            events: None,
            seed: 0,
        }
    }
}

/// Reads the command line (without the program's name). The first mistake is reported, in the order of the options.
/// Help and version are asked for by the first argument or not at all, as in pgbench.
pub fn parse(args: Vec<String>) -> Result<Command, Failure> {
    match args.first().map(String::as_str) {
        Some("--help" | "-?") => return Ok(Command::Print(help::text())),
        Some("--version" | "-V") => return Ok(Command::Print(version())),
        _ => {}
    }
    let mut reader = Reader::default();
    let seed = std::env::var("PGBENCH_RANDOM_SEED").ok();
    reader.options.seed = random_seed(seed.as_deref()).map_err(|failure| {
        failure.and("error while setting random seed from PGBENCH_RANDOM_SEED environment variable")
    })?;
    let mut getopt = Getopt::new("pgbench", args, &SHORTS, &LONGS);
    for option in getopt.by_ref() {
        let (id, value) = option.map_err(Failure::usage)?;
        if let Some(command) = reader.take(id, value.unwrap_or_default())? {
            return Ok(command);
        }
    }
    reader.finish(getopt.into_positional())
}

fn version() -> String {
    format!("pgbench (PostgreSQL) {PGBENCH_VERSION} (pgtrial {})\n", env!("CARGO_PKG_VERSION"))
}

#[derive(Default)]
struct Reader {
    options: Options,
    initialize: bool,
    for_initialization: bool,
    for_benchmarking: bool,
}

impl Reader {
    fn take(&mut self, id: Id, value: String) -> Result<Option<Command>, Failure> {
        let options = &mut self.options;
        self.for_initialization |= matches!(id, Id::Fillfactor | Id::ForeignKeys | Id::InitSteps | Id::Quiet);
        self.for_benchmarking |= is_for_benchmarking(id);
        match id {
            Id::Builtin if value == "list" => return Ok(Some(Command::List(builtin::listing()))),
            Id::Builtin => options.builtins.push(builtin_script(&value)?),
            Id::Client => options.clients = client_count(&value)?,
            Id::Connect => options.reconnect = true,
            Id::Dbname => options.dbname = Some(value),
            Id::Events if value == "-" => options.events = Some(Events::Stdout),
            Id::Events => options.events = Some(Events::File(value.into())),
            Id::Fillfactor => options.fillfactor = integer(&value, "-F/--fillfactor", 10, 100)?,
            Id::ForeignKeys => options.foreign_keys = true,
            Id::Host => options.host = Some(value),
            Id::InitSteps => options.init_steps = check_steps(value)?,
            Id::Initialize => self.initialize = true,
            Id::Jobs => options.jobs = count(&value, "-j/--jobs")? as usize,
            Id::NoVacuum => options.no_vacuum = true,
            Id::Percentiles => options.percentiles = true,
            Id::Port => options.port = Some(value),
            Id::Progress => options.progress = Some(count(&value, "-P/--progress")?),
            Id::Protocol => options.mode = mode(&value)?,
            Id::Quiet => options.quiet = true,
            Id::RandomSeed => {
                options.seed = random_seed(Some(&value))
                    .map_err(|failure| failure.and("error while setting random seed from --random-seed option"))?;
            }
            Id::ReportPerCommand => options.report_per_command = true,
            Id::Scale => options.scale = Some(count(&value, "-s/--scale")?),
            Id::SelectOnly => options.builtins.push(builtin_script("select-only")?),
            Id::ShowScript => {
                let script = script_named(&value)?;
                let text = format!("-- {}: {}\n{}\n", script.name, script.description, script.text);
                return Ok(Some(Command::List(text)));
            }
            Id::SkipSomeUpdates => options.builtins.push(builtin_script("simple-update")?),
            Id::Time => options.duration = Some(Duration::from_secs(u64::from(count(&value, "-T/--time")?))),
            Id::Transactions => options.transactions = Some(u64::from(count(&value, "-t/--transactions")?)),
            Id::Username => options.user = Some(value),
            Id::VacuumAll => options.vacuum_all = true,
            Id::Warmup => options.warmup = warmup(&value)?,
        }
        Ok(None)
    }

    fn finish(mut self, positional: Vec<String>) -> Result<Command, Failure> {
        let options = &mut self.options;
        if options.builtins.is_empty() {
            options.builtins.push(builtin_script("tpcb-like")?);
        }
        if !self.initialize && options.builtins.iter().all(|(_, weight)| *weight == 0) {
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
            if options.foreign_keys && !options.init_steps.contains('f') {
                options.init_steps.push('f');
            }
            if options.no_vacuum {
                options.init_steps.retain(|step| step != 'v');
            }
            return Ok(Command::Initialize(Box::new(self.options)));
        }
        if self.for_initialization {
            return Err(misplaced("benchmarking"));
        }
        if options.transactions.is_some() && options.duration.is_some() {
            let message = "specify either a number of transactions (-t) or a duration (-T), not both";
            return Err(Failure::error(message));
        }
        Ok(Command::Benchmark(Box::new(self.options)))
    }
}

fn is_for_benchmarking(id: Id) -> bool {
    !matches!(
        id,
        Id::Fillfactor
            | Id::ForeignKeys
            | Id::InitSteps
            | Id::Quiet
            | Id::Initialize
            | Id::NoVacuum
            | Id::Scale
            | Id::Dbname
            | Id::Host
            | Id::Port
            | Id::Username
            | Id::ShowScript
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(line: &str) -> Result<Command, Failure> {
        parse(line.split_whitespace().map(str::to_owned).collect())
    }

    fn benchmark(line: &str) -> Options {
        match parse_words(line) {
            Ok(Command::Benchmark(options)) => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn options_combine_and_abbreviate() {
        let options = benchmark("-nrS -c8 --jobs=2 --proto prepared -T 5 --warmup 1.5 bench");
        assert!(options.no_vacuum && options.report_per_command);
        assert_eq!((options.clients, options.jobs), (8, 2));
        assert_eq!(options.mode, QueryMode::Prepared);
        assert_eq!(options.warmup, Duration::from_millis(1500));
        assert_eq!(options.dbname.as_deref(), Some("bench"));
        assert_eq!(options.builtins[0].0.name, "select-only");
    }

    #[test]
    fn more_jobs_than_clients_are_cut() {
        assert_eq!(benchmark("-c 2 -j 5").jobs, 2);
    }

    #[test]
    fn mistakes_are_named_as_pgbench_names_them() {
        for (line, message) in [
            ("-c 0", "pgbench: error: -c/--client must be in range 1..2147483647"),
            ("-j x", "pgbench: error: invalid value \"x\" for option -j/--jobs"),
            ("-M foo", "pgbench: error: invalid query mode (-M): \"foo\""),
            ("-T 1 -t 2", "pgbench: error: specify either a number of transactions (-t) or a duration (-T), not both"),
            ("-i -c 3", "pgbench: error: some of the specified options cannot be used in initialization (-i) mode"),
            ("-F 90", "pgbench: error: some of the specified options cannot be used in benchmarking mode"),
            ("-b tpcb@x", "pgbench: error: invalid weight specification: @x"),
            ("-b select@0", "pgbench: error: total script weight must not be zero"),
            ("-P 4000000000", "pgbench: error: -P/--progress must be in range 1..2147483647"),
        ] {
            assert_eq!(parse_words(line).unwrap_err().to_string(), message, "{line}");
        }
        let usage = parse_words("--bogus").unwrap_err().to_string();
        let expected =
            "pgbench: unrecognized option '--bogus'\npgbench: hint: Try \"pgbench --help\" for more information.";
        assert_eq!(usage, expected);
    }

    #[test]
    fn foreign_keys_and_no_vacuum_change_the_steps() {
        let Ok(Command::Initialize(options)) = parse_words("-i -n --foreign-keys") else { panic!() };
        assert_eq!(options.init_steps, "dtgpf");
    }
}
