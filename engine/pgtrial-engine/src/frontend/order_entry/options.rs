//! The command line of `pgtrial-engine order-entry`: one of three commands, options that only this front end has, and
//! options that pgbench has, too.

use crate::frontend::common::arguments::{RunArguments, Seed};
use crate::frontend::common::connection::with_database;
use crate::frontend::common::failure::Failure;
use crate::frontend::common::messages::FrontEnd;
use crate::frontend::common::options::RunOptions;
use crate::frontend::common::rows;
use crate::frontend::common::values::{ValueError, count_to, integer, query_mode, seed, seed_of_time};
use ground::getopt::Getopt;
use ground::manual::{Manual, entries};
use ground::options::{OptionRow, Stop, set};
use tables::order_entry::NAME;
use wire::params::Given;
use wire::statement::QueryMode;
use workload::order_entry::sizes::MOST_WAREHOUSES;
use workload::order_entry::{TransactionMix, TransactionStyle};

/// The greatest number of clients, threads or connections that the options accept.
const MOST: u32 = 1_000_000;

/// The length of a run in seconds if the options give neither a time nor a number of transactions.
const DEFAULT_TIME_S: u32 = 60;

/// The default seed of the random values in the rows. It is the same in every run, so that making the tables again
/// gives the same rows.
const DEFAULT_SEED_OF_LOAD: u64 = 1;

/// The front end's name, with which its messages begin. A failure is printed as one sentence, and the exit status is
/// then 3.
pub const ORDER_ENTRY: FrontEnd = FrontEnd::new(NAME);

/// The command (`load`, `run` or `check`) that the command line names, with its options.
#[derive(Debug)]
pub enum OrderEntryCommand {
    Load(TableOptions),
    Run(Box<OrderEntryRun>),
    /// Checks the consistency conditions of the tables on this server.
    Check(Given),
}

/// The options of the command `load`, which makes the tables.
#[derive(Debug)]
pub struct TableOptions {
    pub server: Given,
    pub warehouses: u32,
    /// The storage parameter `fillfactor` of the tables, in percent.
    pub fillfactor: u32,
    pub foreign_keys: bool,
    /// The seed of the random values in the rows.
    pub seed: u64,
    /// The number of connections that load rows. `None` means one connection for each processor, but at most four.
    pub jobs: Option<usize>,
    /// True if the stored procedures are created, too.
    pub procedures: bool,
}

/// The options of the command `run`, which runs the load.
#[derive(Debug)]
pub struct OrderEntryRun {
    pub run: RunOptions,
    pub mix: TransactionMix,
    /// The form in which transactions are sent: as single statements, or as calls of stored procedures.
    pub style: TransactionStyle,
}

/// The names of the commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandWord {
    Load,
    Run,
    Check,
}

const COMMANDS: [(&str, CommandWord); 3] =
    [("load", CommandWord::Load), ("run", CommandWord::Run), ("check", CommandWord::Check)];

/// The options of the command line. Each value has been checked on its own, but not whether the options fit together.
#[derive(Debug, Default)]
struct Arguments {
    /// The options that this front end shares with pgbench.
    run: RunArguments,
    warehouses: Option<u32>,
    fillfactor: Option<u32>,
    foreign_keys: bool,
    jobs: Option<usize>,
    seed: Option<u64>,
    mix: TransactionMix,
    procedures: bool,
}

impl AsMut<RunArguments> for Arguments {
    fn as_mut(&mut self) -> &mut RunArguments {
        &mut self.run
    }
}

impl AsMut<Given> for Arguments {
    fn as_mut(&mut self) -> &mut Given {
        &mut self.run.server
    }
}

/// The section of the help that lists an option. It also determines which of the commands accept the option.
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

    fn is_for(self, command: CommandWord) -> bool {
        match self {
            Self::Load => command == CommandWord::Load,
            Self::Run => command == CommandWord::Run,
            Self::LoadAndRun => command != CommandWord::Check,
            Self::Connection | Self::About => true,
        }
    }

    /// Returns the commands that take the options of this section, as error messages name them.
    fn commands(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Run => "run",
            _ => "load and run",
        }
    }
}

type Row = OptionRow<Arguments, Failure, Section>;

use Section::{About, Connection, Load, LoadAndRun, Run};

#[rustfmt::skip]
const OPTIONS: &[Row] = &[
    Row::value("-w, --warehouses=NUM", Load, "number of warehouses, about 100 MB each (default: 1)",
        |o, v| set(&mut o.warehouses, count_to(v, MOST_WAREHOUSES))),
    Row::value("-F, --fillfactor=NUM", Load, "fill factor of the tables, in percent (default: 100)",
        |o, v| set(&mut o.fillfactor, integer(v, 10, 100))),
    Row::switch("--foreign-keys", Load, "create the foreign keys of the specification", |o| &mut o.foreign_keys),

    Row::value("-j, --jobs=NUM", LoadAndRun,
        "for load: number of connections that load rows (default: one\n\
         for each processor, at most 4); for run: number of threads\n\
         (default: 1)",
        |o, v| set(&mut o.jobs, count_to(v, MOST).map(|jobs| jobs as usize))),
    Row::switch("--procedures", LoadAndRun,
        "create the stored procedures if they are missing; run then\ncalls a procedure for each transaction",
        |o| &mut o.procedures),
    Row::value("--random-seed=NUM", LoadAndRun,
        "random seed, a whole number (default: 1 for load, the current\ntime for run)",
        |o, v| set(&mut o.seed, seed(v))),

    Row::value("-c, --clients=NUM", Run, "number of clients, each with a home warehouse (default: 1)",
        |o, v| set(&mut o.run.load.clients, count_to(v, MOST).map(|clients| clients as usize))),
    Row::value("-M, --protocol=simple|extended|prepared", Run, "protocol for submitting queries (default: prepared)",
        |o, v| set(&mut o.run.load.settings.mode, query_mode(v))),
    Row::part(&rows::PROGRESS, Run, "show progress every NUM seconds"),
    Row::part(&rows::RATE, Run, "start NUM transactions per second on average, at random times"),
    Row::part(&rows::TRANSACTIONS, Run, "number of transactions of each client, instead of --time"),
    Row::value("-T, --time=NUM", Run, "length of the measured part, in seconds (default: 60)",
        |o, v| set(&mut o.run.load.duration, count_to(v, i32::MAX as u32))),
    Row::part(&rows::CONTINUE_ON_ERROR, Run, "go on after any SQL error; the transaction counts as failed"),
    Row::part(&rows::EVENTS, Run,
        "write the events of the run as JSON Lines to FILE, or with \"-\"\nto standard output instead of the report"),
    Row::part(&rows::LIST_STATEMENTS, Run,
        "write the statements that clients send to FILE as JSON Lines,\n\
         each with the values of its first six executions"),
    Row::part(&rows::EXIT_ON_ABORT, Run, "exit when any client is aborted"),
    Row::part(&rows::LATENCY_LIMIT, Run, "count transactions lasting more than NUM ms as late"),
    Row::part(&rows::MAX_TRIES, Run,
        "how often a transaction is tried if it fails because of a\n\
         serialization failure or a deadlock; 0: no limit (default: 1)"),
    Row::value("--mix=NUM,NUM,NUM,NUM,NUM", Run,
        "weights of new-order, payment, order-status, delivery and\nstock-level (default: 45,43,4,4,4)",
        |o, v| set(&mut o.mix, mix(v.text).ok_or_else(|| ValueError::unexpected(v, "five whole numbers, such as 45,43,4,4,4")))),
    Row::part(&rows::SHARD, Run,
        "run only shard I (from 1 to N) of the load that the other\n\
         options describe and that N engines share; -j is the number of\n\
         threads of this engine alone"),
    Row::part(&rows::SLICE, Run,
        "take turns with other engines in slices of this length, such\n\
         as 250ms; needs --slice-of, --slice-seed and --start-at"),
    Row::part(&rows::SLICE_OF, Run, "number I (from 1 to N) of this engine among the N engines that\ntake turns"),
    Row::part(&rows::SLICE_SEED, Run,
        "seed of the random order in which engines take turns; must be\nthe same for all of them"),
    Row::part(&rows::START_AT, Run,
        "begin the load at this time, at most 60 s from now: Unix\n\
         seconds with decimals, or monotonic:SECONDS of this machine's\n\
         monotonic clock; with \"-\" the time is read as a line from\n\
         standard input when all clients are connected"),
    Row::switch("--think-times", Run,
        "wait as people at terminals do before and after each\n\
         transaction (keying and think times); ten clients then make\n\
         at most 12.86 new-order transactions a minute",
        |o| &mut o.run.load.settings.thinks),
    Row::part(&rows::VERBOSE_ERRORS, Run, "print messages of all errors"),
    Row::part(&rows::WAIT_FOR_SERVER, Run,
        "a client that loses its connection tries to connect again for\n\
         this time; its current transaction counts as failed"),
    Row::part(&rows::WARMUP, Run,
        "run the load for this time before the measured part; the\nwarm-up is reported separately"),

    Row::part(&rows::DBNAME, Connection, "database name or connection string"),
    Row::part(&rows::HOST, Connection, "database server host or socket directory"),
    Row::part(&rows::PORT, Connection, "database server port number"),
    Row::part(&rows::USERNAME, Connection, "connect as specified database user"),

    Row::action("-V, --version", About, "output version information, then exit",
        |_| Err(Stop::Print(format!("{NAME} {}\n", env!("CARGO_PKG_VERSION"))))),
    Row::action("-?, --help", About, "show this help, then exit", |_| Err(Stop::Print(manual().help()))),
];

/// Returns the description of this front end and its options, from which the help and the manual page are made.
pub fn manual() -> Manual {
    Manual {
        about: "\
pgtrial-engine order-entry runs the five transactions of the TPC-C specification, revision 5.11.
Its results are not TPC-C results.",
        usage: &[
            "pgtrial-engine order-entry load [OPTION]... [DBNAME]    make the tables",
            "pgtrial-engine order-entry run [OPTION]... [DBNAME]     run the load and report on it",
            "pgtrial-engine order-entry check [OPTION]... [DBNAME]   check the consistency conditions 1 to 12",
        ],
        description: "",
        options: entries(OPTIONS, |section| section.title()),
        notes: "\
The exit status is 0 after success, 2 if clients were aborted or a condition does not hold, 3
after any other error, and 130 after an interrupt."
            .to_owned(),
    }
}

/// Reads the command line (without the program's name).
pub fn parse(args: Vec<String>) -> Result<OrderEntryCommand, Stop<Failure>> {
    let mut arguments = Arguments { run: RunArguments::new(seed_of_time()), ..Arguments::default() };
    arguments.run.load.settings.mode = QueryMode::Prepared;
    let mut given = Vec::new();
    let mut getopt = Getopt::new(OPTIONS, &[], args);
    for option in getopt.by_ref() {
        let (row, value) = option.map_err(Failure::from)?;
        given.push(row);
        row.apply(&mut arguments, &value)?;
    }
    let mut words = getopt.into_positional();
    let command = command(&mut words)?;
    if let Some(row) = given.iter().find(|row| !row.group.is_for(command)) {
        let (name, commands) = (row.long(), row.group.commands());
        return Err(Failure::error(format!(
            "--{name} cannot be used with this command, since it is an option of {commands}"
        ))
        .into());
    }
    arguments.run.server = with_database(arguments.run.server, words)?;
    Ok(match command {
        CommandWord::Load => OrderEntryCommand::Load(arguments.tables()),
        CommandWord::Run => OrderEntryCommand::Run(Box::new(arguments.load()?)),
        CommandWord::Check => OrderEntryCommand::Check(arguments.run.server),
    })
}

/// Removes the first word that is not an option, and returns the command that it names. Fails if no command has this
/// name.
fn command(words: &mut Vec<String>) -> Result<CommandWord, Failure> {
    let names = "load, run or check";
    if words.is_empty() {
        return Err(Failure::misuse(format!("name a command: {names}")));
    }
    let word = words.remove(0);
    let found = COMMANDS.iter().find(|(name, _)| *name == word);
    found
        .map(|(_, command)| *command)
        .ok_or_else(|| Failure::misuse(format!("unknown command \"{word}\"; write {names}")))
}

impl Arguments {
    fn tables(self) -> TableOptions {
        TableOptions {
            server: self.run.server,
            warehouses: self.warehouses.unwrap_or(1),
            fillfactor: self.fillfactor.unwrap_or(100),
            foreign_keys: self.foreign_keys,
            seed: self.seed.unwrap_or(DEFAULT_SEED_OF_LOAD),
            jobs: self.jobs,
            procedures: self.procedures,
        }
    }

    fn load(self) -> Result<OrderEntryRun, Failure> {
        let Self { mut run, jobs, seed, mix, procedures, .. } = self;
        let load = &mut run.load;
        load.jobs = jobs.unwrap_or(1);
        load.seed = seed.map_or(load.seed, |number| Seed { number, is_given: true });
        if load.duration.is_none() && load.transactions.is_none() {
            load.duration = Some(DEFAULT_TIME_S);
        }
        for (is_given, option, reason) in [
            (load.settings.interval_ns.is_some(), "--rate", "the rate already determines when transactions start"),
            (load.slicing.length.is_some(), "--slice", "clients would spend their slices waiting"),
        ] {
            if load.settings.thinks && is_given {
                return Err(Failure::error(format!("--think-times cannot be combined with {option}: {reason}")));
            }
        }
        let share = load.share()?;
        let style = if procedures { TransactionStyle::Procedures } else { TransactionStyle::Statements };
        Ok(OrderEntryRun { run: run.settle(share)?, mix, style })
    }
}

/// Reads the five weights of a mix of transactions, separated by commas. Returns `None` if the text is invalid.
fn mix(text: &str) -> Option<TransactionMix> {
    let weights: Vec<u32> = text
        .split(',')
        .map(|weight| weight.trim().parse().ok().filter(|weight| *weight <= 1000))
        .collect::<Option<_>>()?;
    TransactionMix::new(weights.try_into().ok()?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::event::Events;
    use crate::frontend::lines::parsed;
    use drive::Limit;

    fn options(line: &str) -> OrderEntryCommand {
        parsed(line, parse).unwrap()
    }

    fn rejected(line: &str) -> String {
        ORDER_ENTRY.describe(&parsed(line, parse).unwrap_err())
    }

    fn run(line: &str) -> OrderEntryRun {
        match options(line) {
            OrderEntryCommand::Run(run) => *run,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn load(line: &str) -> TableOptions {
        match options(line) {
            OrderEntryCommand::Load(load) => load,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn options_are_read_beside_the_command_in_any_order() {
        let OrderEntryRun { run: options, mix, .. } =
            run("-c 16 run bench --jobs=2 --mix 10,10,1,1,1 --events - -T 5 --warmup 1.5 --max-tries 3");
        assert_eq!((options.load.share.part.clients(), options.load.share.jobs), (16, 2));
        assert_eq!((options.server.dbname.as_deref(), options.output.events), (Some("bench"), Some(Events::Stdout)));
        let settings = options.load.settings;
        assert_eq!((settings.mode, settings.script.tries), (QueryMode::Prepared, Some(3)));
        assert_eq!(options.load.limit, Limit::Time(Duration::from_secs(5)));
        assert_eq!(mix, TransactionMix::new([10, 10, 1, 1, 1]).unwrap());
        let tables = load("load -w 12 -j 3 --foreign-keys -F 90 -d shop");
        assert_eq!((tables.warehouses, tables.jobs, tables.foreign_keys, tables.fillfactor), (12, Some(3), true, 90));
        assert_eq!((tables.seed, load("load --random-seed 7").seed), (1, 7));
        assert_eq!(run("run").run.load.limit, Limit::Time(Duration::from_secs(60)));
        assert!(
            matches!(self::options("check -h /tmp"), OrderEntryCommand::Check(server) if server.host.as_deref() == Some("/tmp"))
        );
        assert_eq!(run("run --procedures").style, TransactionStyle::Procedures);
        assert_eq!((run("run").style, load("load --procedures").procedures), (TransactionStyle::Statements, true));
    }

    #[test]
    fn mistakes_are_a_sentence_each() {
        for (line, message) in [
            ("", "name a command: load, run or check; try \"pgtrial-engine order-entry --help\""),
            ("prepare", "unknown command \"prepare\"; write load, run or check; try"),
            ("run a b", "too many command-line arguments (first is \"b\"); try"),
            ("run --warehouses 5", "--warehouses cannot be used with this command, since it is an option of load"),
            ("load -c 5", "--clients cannot be used with this command, since it is an option of run"),
            ("check --jobs 5", "--jobs cannot be used with this command, since it is an option of load and run"),
            (
                "check --procedures",
                "--procedures cannot be used with this command, since it is an option of load and run",
            ),
            ("load -w 0", "invalid value \"0\" for option -w/--warehouses: it must be a whole number from 1 to 10000"),
            ("load -w 10001", "invalid value \"10001\" for option -w/--warehouses"),
            ("load -F 5", "-F/--fillfactor must be in range 10..100"),
            ("run --mix 45,43,4,4", "invalid value \"45,43,4,4\" for option --mix: it must be five whole numbers"),
            ("run --mix 0,0,0,0,0", "invalid value \"0,0,0,0,0\" for option --mix"),
            ("run -M none", "invalid value \"none\" for option -M/--protocol"),
            ("run --shard 1/2", "--shard needs --random-seed with a number"),
            ("run --think-times -R 5", "--think-times cannot be combined with --rate"),
            ("run -t 5 -T 5", "specify either a number of transactions (-t) or a duration (-T), not both"),
            ("run --slice 1s", "the options --slice, --slice-of, --slice-seed and --start-at must be given together"),
            ("run --random-seed x", "invalid value \"x\" for option --random-seed: it must be a whole number"),
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
