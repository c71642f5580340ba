//! The command line of the tasks front end.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use super::table::{Shape, Steps};
use super::{NAME, help};
use crate::frontend::events::Events;
use crate::frontend::pooling;
use crate::frontend::pooling::Pooling;
use crate::frontend::{open_files, sharing};
use drive::plan::{PoolPlan, StartAt};
use ground::getopt_by_id::{Getopt, LongOption, ShortOption};
use ground::shard::{ClientShare, Shard};
use wire::statement::QueryMode;

/// The published application's numbers: three applications of 5000 tasks, and the pool that its driver had unless told
/// otherwise.
const APPS: usize = 3;
const TASKS: u32 = 5000;
const POOL: usize = 100;

/// The most rows of a thread in the table, and the most threads.
const MOST_ROWS: u32 = 100_000_000;
const MOST_THREADS: u32 = 10_000;

/// What the command line asks for.
#[derive(Debug)]
pub enum Command {
    /// Print on standard output and stop.
    Print(String),
    Run(Box<Options>),
}

/// All options.
#[derive(Debug)]
pub struct Options {
    pub host: Option<String>,
    pub port: Option<String>,
    pub user: Option<String>,
    pub dbname: Option<String>,
    /// Whether the table is made, and whether the tasks are run.
    pub initializes: bool,
    pub runs: bool,
    pub init_steps: Steps,
    pub threads_in_table: Option<u32>,
    pub rows: Option<u32>,
    pub pools: PoolPlan,
    /// Which of the whole run's connections those of the pools are; whose rows of the table are made.
    pub part: ClientShare,
    pub start: Option<StartAt>,
    pub jobs: usize,
    pub mode: QueryMode,
    pub seed: u64,
    /// Where the lines of the tasks go, if not to standard output.
    pub log: Option<PathBuf>,
    /// Whether there are no lines on standard output.
    pub quiet: bool,
    pub csv: Option<PathBuf>,
    pub events: Option<Events>,
}

impl Options {
    /// The table as the options have it.
    pub fn shape(&self) -> Shape {
        let published = Shape::PUBLISHED;
        Shape { threads: self.threads_in_table.unwrap_or(published.threads), rows: self.rows.unwrap_or(published.rows) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Id {
    Apps,
    Arrival,
    Csv,
    Dbname,
    Events,
    Help,
    Host,
    InitSteps,
    Initialize,
    InitializeOnly,
    Jobs,
    Log,
    Pool,
    PoolLifetime,
    PoolTimeout,
    Port,
    Protocol,
    Quiet,
    RandomSeed,
    Rows,
    Shard,
    StartAt,
    Tasks,
    ThreadsInTable,
    Username,
    Version,
}

const SHORTS: [ShortOption<Id>; 11] = [
    ('d', true, Id::Dbname),
    ('h', true, Id::Host),
    ('i', false, Id::Initialize),
    ('I', false, Id::InitializeOnly),
    ('j', true, Id::Jobs),
    ('M', true, Id::Protocol),
    ('p', true, Id::Port),
    ('q', false, Id::Quiet),
    ('U', true, Id::Username),
    ('V', false, Id::Version),
    ('?', false, Id::Help),
];

const fn long(name: &'static str, value: bool, id: Id) -> LongOption<Id> {
    LongOption { name, value, id, addition: false }
}

const LONGS: [LongOption<Id>; 26] = [
    long("apps", true, Id::Apps),
    long("arrival", true, Id::Arrival),
    long("csv", true, Id::Csv),
    long("dbname", true, Id::Dbname),
    long("events", true, Id::Events),
    long("help", false, Id::Help),
    long("host", true, Id::Host),
    long("init-steps", true, Id::InitSteps),
    long("initialize", false, Id::Initialize),
    long("initialize-only", false, Id::InitializeOnly),
    long("jobs", true, Id::Jobs),
    long("log", true, Id::Log),
    long("pool", true, Id::Pool),
    long("pool-lifetime", true, Id::PoolLifetime),
    long("pool-timeout", true, Id::PoolTimeout),
    long("port", true, Id::Port),
    long("protocol", true, Id::Protocol),
    long("quiet", false, Id::Quiet),
    long("random-seed", true, Id::RandomSeed),
    long("rows", true, Id::Rows),
    long("shard", true, Id::Shard),
    long("start-at", true, Id::StartAt),
    long("tasks", true, Id::Tasks),
    long("threads-in-table", true, Id::ThreadsInTable),
    long("username", true, Id::Username),
    long("version", false, Id::Version),
];

/// Reads the command line (without the program's name); the error is a whole sentence.
pub fn parse(args: Vec<String>) -> Result<Command, String> {
    let nothing = Pooling::default().plan(Shard::WHOLE, APPS, TASKS, POOL)?;
    let mut options = Options {
        host: None,
        port: None,
        user: None,
        dbname: None,
        initializes: false,
        runs: true,
        init_steps: Steps::ALL,
        threads_in_table: None,
        rows: None,
        pools: nothing,
        part: ClientShare::of_pools(Shard::WHOLE, APPS, POOL),
        start: None,
        jobs: 1,
        mode: QueryMode::Simple,
        seed: seed_of_time(),
        log: None,
        quiet: false,
        csv: None,
        events: None,
    };
    let (mut pooling, mut shard, mut is_seeded) = (Pooling::default(), Shard::WHOLE, false);
    let mut getopt = Getopt::new(NAME, args, &SHORTS, &LONGS);
    for option in getopt.by_ref() {
        let (id, value) = option.map_err(|error| hinted(&shorten(&error.to_string())))?;
        match id {
            Id::Help => return Ok(Command::Print(help::TEXT.to_owned())),
            Id::Version => return Ok(Command::Print(format!("{NAME} {}\n", env!("CARGO_PKG_VERSION")))),
            Id::Shard => shard = sharing::shard(&value.unwrap_or_default())?,
            _ => take(&mut options, &mut pooling, id, value.unwrap_or_default())?,
        }
        is_seeded |= id == Id::RandomSeed;
    }
    let mut rest = getopt.into_positional().into_iter();
    if options.dbname.is_none() {
        options.dbname = rest.next();
    }
    if let Some(extra) = rest.next() {
        return Err(hinted(&format!("too many command-line arguments (first is \"{extra}\")")));
    }
    let (apps, size) = (pooling.apps.unwrap_or(APPS), pooling.size.unwrap_or(POOL));
    let share_of_run = if options.runs { shard } else { Shard::WHOLE };
    options.pools = pooling.plan(share_of_run, apps, pooling.tasks.unwrap_or(TASKS), size)?;
    options.part = ClientShare::of_pools(shard, apps, size);
    check_steps(&options)?;
    check_sharing(&options, is_seeded)?;
    options.jobs = options.jobs.min(options.pools.apps);
    let connections = (options.pools.apps * options.pools.size) as u64;
    open_files::reserve(connections).map_err(|error| error.message)?;
    Ok(Command::Run(Box::new(options)))
}

/// Refuses to run on a table that this very command leaves unfinished, or to make a step of nothing.
fn check_steps(options: &Options) -> Result<(), String> {
    if options.init_steps == Steps::ALL || options.initializes && !options.runs {
        return Ok(());
    }
    Err("--init-steps is for --initialize-only".to_owned())
}

/// Refuses what several engines cannot share.
fn check_sharing(options: &Options, is_seeded: bool) -> Result<(), String> {
    let shard = options.part.shard;
    if !shard.is_part() {
        return Ok(());
    }
    if options.initializes && options.runs {
        let advice = "make the table before, with --initialize-only, and then run the tasks";
        return Err(format!("--shard cannot be combined with --initialize: {advice}"));
    }
    if options.initializes && options.init_steps != Steps::ROWS {
        return Err(
            "--shard with --initialize-only is for the rows alone (--init-steps=g): make the table once before \
                    (--init-steps=t) and finish it once after (--init-steps=v)"
                .to_owned(),
        );
    }
    if options.initializes {
        return sharing::check_enough(
            shard,
            options.shape().threads as usize,
            "values of thread_id (--threads-in-table)",
        );
    }
    if is_seeded { Ok(()) } else { Err(sharing::needs_seed("--random-seed")) }
}

fn take(options: &mut Options, pooling: &mut Pooling, id: Id, value: String) -> Result<(), String> {
    match id {
        Id::Apps => pooling.apps = Some(pooling::number(&value, "--apps")?),
        Id::Arrival => pooling.arrival = Some(pooling::arrival(&value)?),
        Id::Csv => options.csv = Some(value.into()),
        Id::Dbname => options.dbname = Some(value),
        Id::Events => options.events = Some(Events::named(&value)),
        Id::Host => options.host = Some(value),
        Id::InitSteps => options.init_steps = steps(&value)?,
        Id::Initialize => options.initializes = true,
        Id::InitializeOnly => (options.initializes, options.runs) = (true, false),
        Id::Jobs => options.jobs = pooling::number(&value, "-j/--jobs")?,
        Id::Log => options.log = Some(value.into()),
        Id::Pool => pooling.size = Some(pooling::number(&value, "--pool")?),
        Id::PoolLifetime => pooling.lifetime = Some(pooling::seconds(&value, "--pool-lifetime")?),
        Id::PoolTimeout => pooling.timeout = Some(pooling::seconds(&value, "--pool-timeout")?),
        Id::Port => options.port = Some(value),
        Id::Protocol => options.mode = mode(&value)?,
        Id::Quiet => options.quiet = true,
        Id::RandomSeed => options.seed = seed(&value)?,
        Id::Rows => options.rows = Some(pooling::count(&value, "--rows", MOST_ROWS)?),
        Id::StartAt => options.start = Some(StartAt::read(&value)?),
        Id::Tasks => pooling.tasks = Some(pooling::tasks(&value)?),
        Id::ThreadsInTable => {
            options.threads_in_table = Some(pooling::count(&value, "--threads-in-table", MOST_THREADS)?);
        }
        Id::Username => options.user = Some(value),
        // Taken before.
        Id::Help | Id::Shard | Id::Version => {}
    }
    Ok(())
}

fn mode(text: &str) -> Result<QueryMode, String> {
    let modes = [QueryMode::Simple, QueryMode::Extended, QueryMode::Prepared];
    modes.into_iter().find(|mode| mode.name() == text).ok_or_else(|| {
        format!("invalid value \"{text}\" for option -M/--protocol: it takes simple, extended or prepared")
    })
}

fn steps(text: &str) -> Result<Steps, String> {
    Steps::read(text).ok_or_else(|| {
        format!(
            "invalid value \"{text}\" for option --init-steps: it takes letters of tgv, each once and in this order"
        )
    })
}

fn seed(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| {
        format!("invalid value \"{text}\" for option --random-seed: it takes a whole number from 0 to {}", u64::MAX)
    })
}

fn seed_of_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// A mistake in glibc's words, without the program's name that its sentences begin with.
fn shorten(message: &str) -> String {
    message.strip_prefix(NAME).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(message).to_owned()
}

fn hinted(message: &str) -> String {
    format!("{message}; try \"{NAME} --help\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use drive::plan::Arrival;

    fn read(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(str::to_owned).collect())
    }

    fn options(line: &str) -> Options {
        match read(line) {
            Ok(Command::Run(options)) => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn without_options_it_is_the_published_application() {
        let options = options("");
        let PoolPlan { apps, tasks, arrival, size, timeout, lifetime, .. } = options.pools;
        assert_eq!((apps, tasks, arrival, size), (3, 5000, Arrival::AtOnce, 100));
        assert_eq!((timeout.as_secs(), lifetime), (15, None));
        assert_eq!((options.shape(), options.initializes, options.runs), (Shape::PUBLISHED, false, true));
    }

    #[test]
    fn options_are_read_in_any_order() {
        let options = options("--tasks 7 bench -I --arrival=poisson:5 -j9 --apps 2 --rows 10 --events - -M prepared");
        assert_eq!((options.pools.all_tasks(), options.jobs), (14, 2));
        assert_eq!((options.initializes, options.runs, options.shape().rows), (true, false, 10));
        assert_eq!((options.events, options.dbname.as_deref()), (Some(Events::Stdout), Some("bench")));
    }

    #[test]
    fn a_shard_has_a_part_of_each_pool_and_of_its_tasks() {
        let options = options("--shard 2/3 --random-seed 5 --tasks 10 --pool 4 --apps 2");
        let PoolPlan { apps, tasks, size, deal, .. } = options.pools;
        assert_eq!((apps, tasks, size), (2, 3, 1));
        assert_eq!((deal.tasks, deal.size, options.part.clients()), (10, 4, 2));
    }

    #[test]
    fn rows_of_the_table_are_shared_out_among_more_engines_than_a_pool_has_connections() {
        let options = options("-I --init-steps=g --shard 200/300 --threads-in-table 1000");
        assert_eq!((options.init_steps, options.part.shard.of), (Steps::ROWS, 300));
    }

    #[test]
    fn mistakes_are_a_sentence_each() {
        for (line, message) in [
            ("--tasks 0", "invalid value \"0\" for option --tasks: it takes a whole number from 1 to 10000000"),
            ("--pool none", "invalid value \"none\" for option --pool"),
            ("--arrival poisson:", "invalid value \"poisson:\" for option --arrival"),
            ("--shard 3/2", "invalid value \"3/2\" for option --shard: it takes I/N"),
            ("--shard 1/2", "--shard needs --random-seed with a number"),
            ("--shard 1/2 --random-seed 1 -i", "--shard cannot be combined with --initialize"),
            ("--shard 1/2 -I", "--shard with --initialize-only is for the rows alone (--init-steps=g)"),
            ("--shard 1/2 -I --init-steps=tg", "--shard with --initialize-only is for the rows alone"),
            (
                "--shard 1/11 -I --init-steps=g",
                "--shard=1/11: 10 values of thread_id (--threads-in-table) cannot be shared out among 11 shards",
            ),
            ("-I --init-steps=vt", "invalid value \"vt\" for option --init-steps: it takes letters of tgv"),
            ("-i --init-steps=t", "--init-steps is for --initialize-only"),
            ("--init-steps=t", "--init-steps is for --initialize-only"),
            (
                "--shard 1/3 --random-seed 1 --pool 2",
                "--shard=1/3: 2 connections of a pool (--pool) cannot be shared out",
            ),
            ("--start-at soon", "\"soon\" is no time to start at: it takes Unix seconds"),
            ("--bogus", "unrecognized option '--bogus'; try \"pgtrial-engine tasks --help\""),
            ("a b", "too many command-line arguments (first is \"b\")"),
            ("-M none", "invalid value \"none\" for option -M/--protocol"),
            ("--apps 50000 --pool 50000", "all pools together (--apps x --pool) may have at most 100000 connections"),
        ] {
            let found = read(line).unwrap_err();
            assert!(found.starts_with(message) && !found.contains('\n'), "{line}: {found}");
        }
    }
}
