//! The command line of `pgtrial-engine order-entry`: one of three commands, options that only this front end has, and
//! options that pgbench has, too.

use crate::frontend::common::connection::with_database;
use crate::frontend::common::failure::Failure;
use crate::frontend::common::messages::FrontEnd;
use crate::frontend::common::options::{self, EngineShare, RunOptions, Seed};
use crate::frontend::common::rows::{about_rows, connection_rows};
use crate::frontend::common::values::{ValueError, count_to, integer, query_mode, seed, seed_of_time};
use ground::getopt::Getopt;
use ground::manual::{Manual, entries};
use ground::options::{OptionRow, Stop, set};
use tables::order_entry::{Made, NAME};
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

/// The command (`load`, `run` or `check`) that the command line names.
#[derive(Debug)]
pub enum OrderEntryCommand {
    /// Makes the tables.
    Load(Box<OrderEntryOptions>),
    /// Runs this engine's share of the load.
    Run(Box<OrderEntryOptions>, EngineShare),
    /// Checks the consistency conditions of the tables on this server.
    Check(Given),
}

/// The options of the command line.
#[derive(Debug, Default)]
pub struct OrderEntryOptions {
    pub run: RunOptions,
    pub warehouses: Option<u32>,
    /// The storage parameter `fillfactor` of the tables, in percent.
    pub fillfactor: Option<u32>,
    pub foreign_keys: bool,
    /// For `load`: the number of connections that load rows. `None` means one connection for each processor, but at most
    /// four. For `run`: the number of threads.
    pub jobs: Option<usize>,
    /// The seed of the random values in the rows, or of those of the load.
    pub seed: Option<u64>,
    pub mix: TransactionMix,
    /// True if the stored procedures are created. The load then calls them.
    pub procedures: bool,
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

impl AsMut<RunOptions> for OrderEntryOptions {
    fn as_mut(&mut self) -> &mut RunOptions {
        &mut self.run
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

type Row = OptionRow<OrderEntryOptions, Failure, Section>;

use Section::{About, Connection, Load, LoadAndRun, Run};

#[rustfmt::skip]
const OPTIONS: &[&[Row]] = &[&[
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
        |o, v| set(&mut o.run.clients, count_to(v, MOST).map(|clients| clients as usize))),
    Row::value("-M, --protocol=simple|extended|prepared", Run, "protocol for submitting queries (default: prepared)",
        |o, v| set(&mut o.run.mode, query_mode(v))),
    Row::part(&options::PROGRESS, Run, "show progress every NUM seconds"),
    Row::part(&options::RATE, Run, "start NUM transactions per second on average, at random times"),
    Row::part(&options::TRANSACTIONS, Run, "number of transactions of each client, instead of --time"),
    Row::value("-T, --time=NUM", Run, "length of the measured part, in seconds (default: 60)",
        |o, v| set(&mut o.run.duration, count_to(v, i32::MAX as u32))),
    Row::part(&options::CONTINUE_ON_ERROR, Run, "go on after any SQL error; the transaction counts as failed"),
    Row::part(&options::EVENTS, Run,
        "write the events of the run as JSON Lines to FILE, or with \"-\"\nto standard output instead of the report"),
    Row::part(&options::LIST_STATEMENTS, Run,
        "write the statements that clients send to FILE as JSON Lines,\n\
         each with the values of its first six executions"),
    Row::part(&options::EXIT_ON_ABORT, Run, "exit when any client is aborted"),
    Row::part(&options::LATENCY_LIMIT, Run, "count transactions lasting more than NUM ms as late"),
    Row::part(&options::MAX_TRIES, Run,
        "how often a transaction is tried if it fails because of a\n\
         serialization failure or a deadlock; 0: no limit (default: 1)"),
    Row::value("--mix=NUM,NUM,NUM,NUM,NUM", Run,
        "weights of new-order, payment, order-status, delivery and\nstock-level (default: 45,43,4,4,4)",
        |o, v| set(&mut o.mix, mix(v.text).ok_or_else(|| ValueError::unexpected(v, "five whole numbers, such as 45,43,4,4,4")))),
    Row::part(&options::SHARD, Run,
        "run only shard I (from 1 to N) of the load that the other\n\
         options describe and that N engines share; -j is the number of\n\
         threads of this engine alone"),
    Row::part(&options::SLICE, Run,
        "take turns with other engines in slices of this length, such\n\
         as 250ms; needs --slice-of, --slice-seed and --start-at"),
    Row::part(&options::SLICE_OF, Run, "number I (from 1 to N) of this engine among the N engines that\ntake turns"),
    Row::part(&options::SLICE_SEED, Run,
        "seed of the random order in which engines take turns; must be\nthe same for all of them"),
    Row::part(&options::START_AT, Run,
        "begin the load at this time, at most 60 s from now: Unix\n\
         seconds with decimals, or monotonic:SECONDS of this machine's\n\
         monotonic clock; with \"-\" the time is read as a line from\n\
         standard input when all clients are connected"),
    Row::switch("--think-times", Run,
        "wait as people at terminals do before and after each\n\
         transaction (keying and think times); ten clients then make\n\
         at most 12.86 new-order transactions a minute",
        |o| &mut o.run.thinks),
    Row::part(&options::VERBOSE_ERRORS, Run, "print messages of all errors"),
    Row::part(&options::WAIT_FOR_SERVER, Run,
        "a client that loses its connection tries to connect again for\n\
         this time; its current transaction counts as failed"),
    Row::part(&options::WARMUP, Run,
        "run the load for this time before the measured part; the\nwarm-up is reported separately"),
], &connection_rows!(Connection, run.server), &about_rows!(About)];

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
    let run = RunOptions { mode: QueryMode::Prepared, time_after_connecting: true, ..RunOptions::new(seed_of_time()) };
    let mut options = Box::new(OrderEntryOptions { run, ..OrderEntryOptions::default() });
    let mut given = Vec::new();
    let mut getopt = Getopt::new(OPTIONS, &[], args);
    for option in getopt.by_ref() {
        let (row, value) = option.map_err(Failure::from)?;
        given.push(row);
        row.apply(&mut options, &value)?;
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
    with_database(&mut options.run.server, words)?;
    Ok(match command {
        CommandWord::Load => OrderEntryCommand::Load(options),
        CommandWord::Run => {
            let share = options.settle()?;
            OrderEntryCommand::Run(options, share)
        }
        CommandWord::Check => OrderEntryCommand::Check(options.run.server),
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

impl OrderEntryOptions {
    /// Returns the tables that the command `load` makes.
    pub fn tables(&self) -> Made {
        Made {
            warehouses: self.warehouses.unwrap_or(1),
            seed: self.seed.unwrap_or(DEFAULT_SEED_OF_LOAD),
            fillfactor: self.fillfactor.unwrap_or(100),
            foreign_keys: self.foreign_keys,
        }
    }

    /// Returns the form in which transactions are sent: as single statements, or as calls of stored procedures.
    pub fn style(&self) -> TransactionStyle {
        if self.procedures { TransactionStyle::Procedures } else { TransactionStyle::Statements }
    }

    /// Sets the defaults of the command `run`, and rejects options that do not fit together. Returns the share that this
    /// engine has of the run.
    fn settle(&mut self) -> Result<EngineShare, Failure> {
        let run = &mut self.run;
        run.jobs = self.jobs.unwrap_or(1);
        run.seed = self.seed.map_or(run.seed, Seed::given);
        if run.duration.is_none() && run.transactions.is_none() {
            run.duration = Some(DEFAULT_TIME_S);
        }
        for (is_given, option, reason) in [
            (run.interval_ns.is_some(), "--rate", "the rate already determines when transactions start"),
            (run.slicing.length.is_some(), "--slice", "clients would spend their slices waiting"),
        ] {
            if run.thinks && is_given {
                return Err(Failure::error(format!("--think-times cannot be combined with {option}: {reason}")));
            }
        }
        let share = run.share()?;
        run.check()?;
        Ok(share)
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
    use crate::frontend::lines::{all_refused, parsed};
    use drive::plan::Limit;

    fn options(line: &str) -> OrderEntryCommand {
        parsed(line, parse).unwrap()
    }

    fn run(line: &str) -> (OrderEntryOptions, EngineShare) {
        match options(line) {
            OrderEntryCommand::Run(options, share) => (*options, share),
            other => panic!("{line}: {other:?}"),
        }
    }

    fn load(line: &str) -> OrderEntryOptions {
        match options(line) {
            OrderEntryCommand::Load(options) => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn options_are_read_beside_the_command_in_any_order() {
        let (OrderEntryOptions { run: options, mix, .. }, share) =
            run("-c 16 run bench --jobs=2 --mix 10,10,1,1,1 --events - -T 5 --warmup 1.5 --max-tries 3");
        assert_eq!((share.part.clients(), share.jobs), (16, 2));
        assert_eq!((options.server.dbname.as_deref(), &options.output.events), (Some("bench"), &Some(Events::Stdout)));
        assert_eq!((options.mode, options.script.tries), (QueryMode::Prepared, Some(3)));
        assert_eq!(options.limit(), Limit::Time(Duration::from_secs(5)));
        assert_eq!(mix, TransactionMix::new([10, 10, 1, 1, 1]).unwrap());
        let options = load("load -w 12 -j 3 --foreign-keys -F 90 -d shop");
        let Made { warehouses, seed, fillfactor, foreign_keys } = options.tables();
        assert_eq!((warehouses, options.jobs, foreign_keys, fillfactor), (12, Some(3), true, 90));
        assert_eq!((seed, load("load --random-seed 7").tables().seed), (1, 7));
        assert_eq!(run("run").0.run.limit(), Limit::Time(Duration::from_secs(60)));
        assert!(
            matches!(self::options("check -h /tmp"), OrderEntryCommand::Check(server) if server.host.as_deref() == Some("/tmp"))
        );
        let styles = ["run", "run --procedures"].map(|line| run(line).0.style());
        assert_eq!(styles, [TransactionStyle::Statements, TransactionStyle::Procedures]);
        assert!(load("load --procedures").procedures);
    }

    #[test]
    fn mistakes_are_a_sentence_each() {
        let lines = [
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
        ];
        all_refused(ORDER_ENTRY, parse, &lines);
    }
}
