//! The command line of the tasks front end.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use super::table::Shape;
use super::{NAME, help};
use crate::connection::statement::QueryMode;
use crate::frontend::getopt::{Getopt, LongOption, ShortOption};
use crate::frontend::open_files;
use crate::frontend::pooling::{self, Pooling};
use crate::plan::PoolPlan;

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
    pub threads_in_table: Option<u32>,
    pub rows: Option<u32>,
    pub pools: PoolPlan,
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

/// Where the JSON Lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Events {
    Stdout,
    File(PathBuf),
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

const LONGS: [LongOption<Id>; 23] = [
    long("apps", true, Id::Apps),
    long("arrival", true, Id::Arrival),
    long("csv", true, Id::Csv),
    long("dbname", true, Id::Dbname),
    long("events", true, Id::Events),
    long("help", false, Id::Help),
    long("host", true, Id::Host),
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
    long("tasks", true, Id::Tasks),
    long("threads-in-table", true, Id::ThreadsInTable),
    long("username", true, Id::Username),
    long("version", false, Id::Version),
];

/// Reads the command line (without the program's name); the error is a whole sentence.
pub fn parse(args: Vec<String>) -> Result<Command, String> {
    let nothing = Pooling::default().plan(APPS, TASKS, POOL)?;
    let mut options = Options {
        host: None,
        port: None,
        user: None,
        dbname: None,
        initializes: false,
        runs: true,
        threads_in_table: None,
        rows: None,
        pools: nothing,
        jobs: 1,
        mode: QueryMode::Simple,
        seed: seed_of_time(),
        log: None,
        quiet: false,
        csv: None,
        events: None,
    };
    let mut pooling = Pooling::default();
    let mut getopt = Getopt::new(NAME, args, &SHORTS, &LONGS);
    for option in getopt.by_ref() {
        let (id, value) = option.map_err(|error| hinted(&shorten(&error.to_string())))?;
        match id {
            Id::Help => return Ok(Command::Print(help::TEXT.to_owned())),
            Id::Version => return Ok(Command::Print(format!("{NAME} {}\n", env!("CARGO_PKG_VERSION")))),
            _ => take(&mut options, &mut pooling, id, value.unwrap_or_default())?,
        }
    }
    let mut rest = getopt.into_positional().into_iter();
    if options.dbname.is_none() {
        options.dbname = rest.next();
    }
    if let Some(extra) = rest.next() {
        return Err(hinted(&format!("too many command-line arguments (first is \"{extra}\")")));
    }
    options.pools =
        pooling.plan(pooling.apps.unwrap_or(APPS), pooling.tasks.unwrap_or(TASKS), pooling.size.unwrap_or(POOL))?;
    options.jobs = options.jobs.min(options.pools.apps);
    let connections = (options.pools.apps * options.pools.size) as u64;
    open_files::reserve(connections).map_err(|error| error.message)?;
    Ok(Command::Run(Box::new(options)))
}

fn take(options: &mut Options, pooling: &mut Pooling, id: Id, value: String) -> Result<(), String> {
    match id {
        Id::Apps => pooling.apps = Some(pooling::number(&value, "--apps")?),
        Id::Arrival => pooling.arrival = Some(pooling::arrival(&value)?),
        Id::Csv => options.csv = Some(value.into()),
        Id::Dbname => options.dbname = Some(value),
        Id::Events if value == "-" => options.events = Some(Events::Stdout),
        Id::Events => options.events = Some(Events::File(value.into())),
        Id::Host => options.host = Some(value),
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
        Id::Tasks => pooling.tasks = Some(pooling::tasks(&value)?),
        Id::ThreadsInTable => {
            options.threads_in_table = Some(pooling::count(&value, "--threads-in-table", MOST_THREADS)?);
        }
        Id::Username => options.user = Some(value),
        // Taken before.
        Id::Help | Id::Version => {}
    }
    Ok(())
}

fn mode(text: &str) -> Result<QueryMode, String> {
    let modes = [QueryMode::Simple, QueryMode::Extended, QueryMode::Prepared];
    modes.into_iter().find(|mode| mode.name() == text).ok_or_else(|| {
        format!("invalid value \"{text}\" for option -M/--protocol: it takes simple, extended or prepared")
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
    use crate::plan::Arrival;

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
        let PoolPlan { apps, tasks, arrival, size, timeout, lifetime } = options.pools;
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
    fn mistakes_are_a_sentence_each() {
        for (line, message) in [
            ("--tasks 0", "invalid value \"0\" for option --tasks: it takes a whole number from 1 to 10000000"),
            ("--pool none", "invalid value \"none\" for option --pool"),
            ("--arrival poisson:", "invalid value \"poisson:\" for option --arrival"),
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
