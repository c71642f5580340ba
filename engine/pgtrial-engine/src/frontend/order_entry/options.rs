//! The command line: a command, options of its own, and those that pgbench has too.

use crate::frontend::pgbench::messages::Failure;
use crate::frontend::pgbench::options::fields::Options;
use crate::frontend::pgbench::options::pooling::{count, invalid};
use crate::frontend::pgbench::options::settle::{settle_benchmark, settle_database, settle_share};
use crate::frontend::pgbench::options::table::row_of;
use crate::frontend::pgbench::options::values::{integer, named_mode, seed_of_time};
use ground::getopt::Getopt;
use ground::options::{OptionRow, Stop, set};
use tables::order_entry::NAME;
use wire::statement::QueryMode;
use workload::order_entry::sizes::MOST_WAREHOUSES;
use workload::order_entry::{Mix, Style};

/// The most clients, threads or connections.
const MOST: u32 = 1_000_000;

/// How long a run takes if neither a time nor a number of transactions is given, seconds.
const DEFAULT_TIME_S: u32 = 60;

/// The seed of the rows unless another is given: two loads have the same rows.
const DEFAULT_SEED_OF_LOAD: u64 = 1;

/// What is to be done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Command {
    Load,
    #[default]
    Run,
    Check,
}

const COMMANDS: [(&str, Command); 3] = [("load", Command::Load), ("run", Command::Run), ("check", Command::Check)];

/// All options.
#[derive(Debug, Default)]
pub struct OrderEntryOptions {
    pub command: Command,
    /// Those that pgbench has too.
    pub load: Options,
    pub warehouses: Option<u32>,
    /// Percent.
    pub fillfactor: Option<u32>,
    pub foreign_keys: bool,
    /// Connections of load, threads of run.
    pub jobs: Option<usize>,
    pub seed: Option<u64>,
    pub mix: Mix,
    /// Whether transactions are calls of stored procedures.
    pub procedures: bool,
}

impl AsMut<Options> for OrderEntryOptions {
    fn as_mut(&mut self) -> &mut Options {
        &mut self.load
    }
}

impl OrderEntryOptions {
    /// The seed of the rows.
    pub fn seed_of_load(&self) -> u64 {
        self.seed.unwrap_or(DEFAULT_SEED_OF_LOAD)
    }

    /// How a run sends its transactions.
    pub fn style(&self) -> Style {
        if self.procedures { Style::Procedures } else { Style::Statements }
    }
}

/// Where the help lists an option, and the commands that take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Load,
    Run,
    LoadAndRun,
    Connection,
    About,
}

impl Section {
    fn title(self) -> &'static str {
        match self {
            Self::Load => "Options of load:",
            Self::Run => "Options of run:",
            Self::LoadAndRun => "Options of load and run:",
            Self::Connection => "Connection:",
            Self::About => "",
        }
    }

    fn is_for(self, command: Command) -> bool {
        match self {
            Self::Load => command == Command::Load,
            Self::Run => command == Command::Run,
            Self::LoadAndRun => command != Command::Check,
            Self::Connection | Self::About => true,
        }
    }

    /// The commands, as a message names them.
    fn commands(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Run => "run",
            _ => "load and run",
        }
    }
}

type Row = OptionRow<OrderEntryOptions, Failure, Section>;

fn of_pgbench(long: &str, help: &'static str) -> Row {
    row_of(long, Section::Run, help)
}

#[rustfmt::skip]
fn rows() -> Vec<Row> {
    use Section::{About, Connection, Load, LoadAndRun, Run};
    vec![
        Row::value("-w, --warehouses=NUM", Load, "warehouses, about 100 MB each (default: 1)",
            |o, v| set(&mut o.warehouses, count(v, MOST_WAREHOUSES))),
        Row::value("-F, --fillfactor=NUM", Load, "fill factor of the tables, percent (default: 100)",
            |o, v| set(&mut o.fillfactor, integer(v, 10, 100))),
        Row::switch("--foreign-keys", Load, "create the foreign keys of the specification", |o| &mut o.foreign_keys),

        Row::value("-j, --jobs=NUM", LoadAndRun,
            "connections that load (default: one for each processor, at\nmost 4); threads of run (default: 1)",
            |o, v| set(&mut o.jobs, count(v, MOST).map(|jobs| jobs as usize))),
        Row::switch("--procedures", LoadAndRun,
            "make the stored procedures if they are missing; run calls one\nfor each transaction",
            |o| &mut o.procedures),
        Row::value("--random-seed=NUM", LoadAndRun, "whole number (default: 1 for load, from the time for run)",
            |o, v| {
                let seed = v.text.trim().parse::<u64>();
                set(&mut o.seed, seed.map_err(|_| invalid(v, &format!("a whole number from 0 to {}", u64::MAX))))
            }),

        Row::value("-c, --clients=NUM", Run, "clients, each with a home warehouse (default: 1)",
            |o, v| set(&mut o.load.clients, count(v, MOST).map(|clients| clients as usize))),
        Row::value("-M, --protocol=simple|extended|prepared", Run, "protocol for submitting queries (default: prepared)",
            |o, v| set(&mut o.load.mode, named_mode(v.text).ok_or_else(|| invalid(v, "simple, extended or prepared")))),
        of_pgbench("progress", "show progress every NUM seconds"),
        of_pgbench("rate", "start so many transactions per second at random moments"),
        of_pgbench("transactions", "transactions of each client, in place of --time"),
        Row::value("-T, --time=NUM", Run, "length of the measured part, seconds (default: 60)",
            |o, v| set(&mut o.load.duration, count(v, i32::MAX as u32))),
        of_pgbench("continue-on-error", "go on after any SQL error, counting the transaction as failed"),
        of_pgbench("events",
            "write what happens as JSON Lines to FILE; with \"-\" to\nstandard output, in place of the report"),
        of_pgbench("exit-on-abort", "exit when any client is aborted"),
        of_pgbench("latency-limit", "count transactions lasting more than NUM ms as late"),
        of_pgbench("max-tries",
            "tries of a transaction that fails by serialization or\ndeadlock, 0 for any number (default: 1)"),
        Row::value("--mix=NUM,NUM,NUM,NUM,NUM", Run,
            "weights of new-order, payment, order-status, delivery and\nstock-level (default: 45,43,4,4,4)",
            |o, v| set(&mut o.mix, mix(v.text).ok_or_else(|| invalid(v, "five whole numbers, such as 45,43,4,4,4")))),
        of_pgbench("shard",
            "run part I of N (from 1) of the run that the other options say,\nwhich N engines share; -j is each engine's own"),
        of_pgbench("slice",
            "take turns with other engines, in slices of this length, such\n\
             as 250ms; with --slice-of, --slice-seed and --start-at"),
        of_pgbench("slice-of", "be number I (from 1) of N engines that take turns"),
        of_pgbench("slice-seed", "draw the order of each round of turns from this seed"),
        of_pgbench("start-at",
            "begin at this time, Unix seconds with decimals or\n\
             monotonic:SECONDS of this machine's clock, at most 60 s\n\
             ahead; with \"-\" at the one that is read as a line from\n\
             standard input when all clients are connected"),
        Row::switch("--think-times", Run,
            "wait as people at terminals do before and after each\n\
             transaction (keying and think times); ten clients then make\n\
             at most 12.86 new-order transactions a minute",
            |o| &mut o.load.thinks),
        of_pgbench("verbose-errors", "print messages of all errors"),
        of_pgbench("wait-for-server",
            "clients that lose their connection make another one, and try\nto for so long; the transaction under way has failed"),
        of_pgbench("warmup", "run so long before the measured part; report it apart"),

        row_of("dbname", Connection, "database name or connection string"),
        row_of("host", Connection, "database server host or socket directory"),
        row_of("port", Connection, "database server port number"),
        row_of("username", Connection, "connect as specified database user"),

        Row::action("-V, --version", About, "output version information, then exit",
            |_| Err(Stop::Print(format!("{NAME} {}\n", env!("CARGO_PKG_VERSION"))))),
        Row::action("-?, --help", About, "show this help, then exit", |_| Err(Stop::Print(help()))),
    ]
}

fn help() -> String {
    let listed = ground::options::help(&rows(), |section| section.title());
    format!(
        "\
pgtrial-engine order-entry runs the five transactions of the TPC-C specification, revision 5.11.
Its results are not TPC-C results.

Usage:
  pgtrial-engine order-entry load [OPTION]... [DBNAME]    make the tables
  pgtrial-engine order-entry run [OPTION]... [DBNAME]     run the load and report on it
  pgtrial-engine order-entry check [OPTION]... [DBNAME]   check the consistency conditions 1 to 12
{listed}
The exit status is 0; 3 for what is refused or could not be written; 2 if clients were given up
or a condition does not hold; 130 after an interrupt.
"
    )
}

/// A failure in one sentence.
pub fn describe(failure: &Failure) -> String {
    failure.told_by(NAME)
}

/// Reads the command line (without the program's name).
pub fn parse(args: Vec<String>) -> Result<OrderEntryOptions, Stop<Failure>> {
    let load = Options { mode: QueryMode::Prepared, uses_additions: true, ..Options::new(seed_of_time()) };
    let mut options = OrderEntryOptions { load, ..OrderEntryOptions::default() };
    let rows = rows();
    let mut given = Vec::new();
    let mut getopt = Getopt::new(&rows, &[], args);
    for option in getopt.by_ref() {
        let (row, value) = option.map_err(Failure::from)?;
        given.push(row);
        row.apply(&mut options, &value)?;
    }
    let mut words = getopt.into_positional();
    options.command = command(&mut words)?;
    if let Some(row) = given.iter().find(|row| !row.group.is_for(options.command)) {
        let (name, commands) = (row.long(), row.group.commands());
        return Err(Failure::error(format!("--{name} is an option of {commands}")).into());
    }
    settle_database(&mut options.load, words)?;
    if options.command == Command::Run {
        settle_run(&mut options)?;
    }
    Ok(options)
}

/// Takes the command off the words.
fn command(words: &mut Vec<String>) -> Result<Command, Failure> {
    let names = "load, run or check";
    if words.is_empty() {
        return Err(Failure::misuse(format!("a command is missing: {names}")));
    }
    let word = words.remove(0);
    let found = COMMANDS.iter().find(|(name, _)| *name == word);
    found
        .map(|(_, command)| *command)
        .ok_or_else(|| Failure::misuse(format!("unknown command \"{word}\"; write {names}")))
}

fn settle_run(options: &mut OrderEntryOptions) -> Result<(), Failure> {
    let load = &mut options.load;
    load.jobs = options.jobs.unwrap_or(1);
    load.is_seeded = options.seed.is_some();
    load.seed = options.seed.unwrap_or(load.seed);
    if load.duration.is_none() && load.transactions.is_none() {
        load.duration = Some(DEFAULT_TIME_S);
    }
    for (is_given, option, reason) in [
        (load.interval_ns.is_some(), "--rate", "a rate says when transactions start"),
        (load.slicing.length.is_some(), "--slice", "clients would wait through their slices"),
    ] {
        if load.thinks && is_given {
            return Err(Failure::error(format!("--think-times cannot be combined with {option}: {reason}")));
        }
    }
    settle_share(load, &[])?;
    settle_benchmark(load)
}

/// The five weights of a mix.
fn mix(text: &str) -> Option<Mix> {
    let weights: Vec<u32> = text
        .split(',')
        .map(|weight| weight.trim().parse().ok().filter(|weight| *weight <= 1000))
        .collect::<Option<_>>()?;
    Mix::new(weights.try_into().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Events;
    use crate::frontend::lines::parsed;

    fn options(line: &str) -> OrderEntryOptions {
        parsed(line, parse, describe).unwrap()
    }

    fn rejected(line: &str) -> String {
        parsed(line, parse, describe).unwrap_err()
    }

    #[test]
    fn options_are_read_beside_the_command_in_any_order() {
        let run = options("-c 16 run bench --jobs=2 --mix 10,10,1,1,1 --events - -T 5 --warmup 1.5 --max-tries 3");
        assert_eq!((run.command, run.load.clients, run.load.jobs), (Command::Run, 16, 2));
        assert_eq!((run.load.server.dbname.as_deref(), run.load.output.events), (Some("bench"), Some(Events::Stdout)));
        assert_eq!((run.load.mode, run.load.script.tries, run.load.duration), (QueryMode::Prepared, Some(3), Some(5)));
        assert_eq!(run.mix, Mix::new([10, 10, 1, 1, 1]).unwrap());
        let load = options("load -w 12 -j 3 --foreign-keys -F 90 -d shop");
        assert_eq!(
            (load.warehouses, load.jobs, load.foreign_keys, load.fillfactor),
            (Some(12), Some(3), true, Some(90))
        );
        assert_eq!((load.seed_of_load(), options("load --random-seed 7").seed_of_load()), (1, 7));
        assert_eq!(options("run").load.duration, Some(60));
        assert_eq!(options("check -h /tmp").command, Command::Check);
        assert_eq!(options("run --procedures").style(), Style::Procedures);
        assert_eq!((options("run").style(), options("load --procedures").procedures), (Style::Statements, true));
    }

    #[test]
    fn mistakes_are_a_sentence_each() {
        for (line, message) in [
            ("", "a command is missing: load, run or check; try \"pgtrial-engine order-entry --help\""),
            ("prepare", "unknown command \"prepare\"; write load, run or check; try"),
            ("run a b", "too many command-line arguments (first is \"b\"); try"),
            ("run --warehouses 5", "--warehouses is an option of load"),
            ("load -c 5", "--clients is an option of run"),
            ("check --jobs 5", "--jobs is an option of load and run"),
            ("check --procedures", "--procedures is an option of load and run"),
            ("load -w 0", "invalid value \"0\" for option -w/--warehouses: it takes a whole number from 1 to 10000"),
            ("load -w 10001", "invalid value \"10001\" for option -w/--warehouses"),
            ("load -F 5", "-F/--fillfactor must be in range 10..100"),
            ("run --mix 45,43,4,4", "invalid value \"45,43,4,4\" for option --mix: it takes five whole numbers"),
            ("run --mix 0,0,0,0,0", "invalid value \"0,0,0,0,0\" for option --mix"),
            ("run -M none", "invalid value \"none\" for option -M/--protocol"),
            ("run --shard 1/2", "--shard needs --random-seed with a number"),
            ("run --think-times -R 5", "--think-times cannot be combined with --rate"),
            ("run -t 5 -T 5", "specify either a number of transactions (-t) or a duration (-T), not both"),
            ("run --slice 1s", "slices need --slice, --slice-of, --slice-seed and --start-at together"),
            ("run --random-seed x", "invalid value \"x\" for option --random-seed: it takes a whole number"),
            ("run --bogus", "unrecognized option '--bogus'; try"),
        ] {
            let found = rejected(line);
            assert!(
                found.starts_with(&format!("pgtrial-engine order-entry: error: {message}")) && !found.contains('\n'),
                "{line}: {found}"
            );
        }
    }
}
