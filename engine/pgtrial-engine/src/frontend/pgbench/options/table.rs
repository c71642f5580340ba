//! The names of pgbench's options, short and long, and to which of its two modes each belongs.

use ground::getopt_by_id::{LongOption, ShortOption};

/// What an option means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Id {
    AggregateInterval,
    Apps,
    Arrival,
    Builtin,
    Client,
    Connect,
    ContinueOnError,
    Dbname,
    Debug,
    Define,
    Events,
    ExitOnAbort,
    FailuresDetailed,
    File,
    Fillfactor,
    ForeignKeys,
    Histogram,
    Host,
    IndexTablespace,
    InitSteps,
    Initialize,
    Jobs,
    LatencyLimit,
    LoadJobs,
    Log,
    LogPrefix,
    MaxTries,
    NoVacuum,
    PartitionMethod,
    Partitions,
    Percentiles,
    Pool,
    PoolLifetime,
    PoolTimeout,
    Port,
    Progress,
    ProgressTimestamp,
    Protocol,
    Quiet,
    RandomSeed,
    Rate,
    ReportPerCommand,
    SamplingRate,
    Scale,
    SelectOnly,
    Shard,
    ShowScript,
    SkipSomeUpdates,
    StartAt,
    Tablespace,
    Tasks,
    Time,
    Transactions,
    UnloggedTables,
    Username,
    VacuumAll,
    VerboseErrors,
    WaitForServer,
    Warmup,
}

/// The mode that an option is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Initialization,
    Benchmarking,
    Both,
}

impl Id {
    /// The mode that the option is for; in the other one pgbench refuses it.
    pub fn mode(self) -> Mode {
        match self {
            Id::Fillfactor
            | Id::ForeignKeys
            | Id::IndexTablespace
            | Id::InitSteps
            | Id::LoadJobs
            | Id::PartitionMethod
            | Id::Partitions
            | Id::Quiet
            | Id::Tablespace
            | Id::UnloggedTables => Mode::Initialization,
            Id::Dbname
            | Id::Debug
            | Id::Host
            | Id::Initialize
            | Id::NoVacuum
            | Id::Port
            | Id::Scale
            | Id::Shard
            | Id::ShowScript
            | Id::Username => Mode::Both,
            _ => Mode::Benchmarking,
        }
    }
}

/// All short options.
pub const SHORTS: [ShortOption<Id>; 27] = [
    ('b', true, Id::Builtin),
    ('c', true, Id::Client),
    ('C', false, Id::Connect),
    ('d', true, Id::Dbname),
    ('D', true, Id::Define),
    ('f', true, Id::File),
    ('F', true, Id::Fillfactor),
    ('h', true, Id::Host),
    ('i', false, Id::Initialize),
    ('I', true, Id::InitSteps),
    ('j', true, Id::Jobs),
    ('l', false, Id::Log),
    ('L', true, Id::LatencyLimit),
    ('M', true, Id::Protocol),
    ('n', false, Id::NoVacuum),
    ('N', false, Id::SkipSomeUpdates),
    ('p', true, Id::Port),
    ('P', true, Id::Progress),
    ('q', false, Id::Quiet),
    ('r', false, Id::ReportPerCommand),
    ('R', true, Id::Rate),
    ('s', true, Id::Scale),
    ('S', false, Id::SelectOnly),
    ('t', true, Id::Transactions),
    ('T', true, Id::Time),
    ('U', true, Id::Username),
    ('v', false, Id::VacuumAll),
];

const fn flag(name: &'static str, id: Id) -> LongOption<Id> {
    LongOption { name, value: false, id, addition: false }
}

const fn with_value(name: &'static str, id: Id) -> LongOption<Id> {
    LongOption { name, value: true, id, addition: false }
}

const fn added(option: LongOption<Id>) -> LongOption<Id> {
    LongOption { addition: true, ..option }
}

/// All long options in pgbench's order, in which an ambiguous abbreviation's possibilities are named; what pgtrial adds
/// comes last.
pub const LONGS: [LongOption<Id>; 59] = [
    with_value("builtin", Id::Builtin),
    with_value("client", Id::Client),
    flag("connect", Id::Connect),
    with_value("dbname", Id::Dbname),
    with_value("define", Id::Define),
    with_value("file", Id::File),
    with_value("fillfactor", Id::Fillfactor),
    with_value("host", Id::Host),
    flag("initialize", Id::Initialize),
    with_value("init-steps", Id::InitSteps),
    with_value("jobs", Id::Jobs),
    flag("log", Id::Log),
    with_value("latency-limit", Id::LatencyLimit),
    flag("no-vacuum", Id::NoVacuum),
    with_value("port", Id::Port),
    with_value("progress", Id::Progress),
    with_value("protocol", Id::Protocol),
    flag("quiet", Id::Quiet),
    flag("report-per-command", Id::ReportPerCommand),
    with_value("rate", Id::Rate),
    with_value("scale", Id::Scale),
    flag("select-only", Id::SelectOnly),
    flag("skip-some-updates", Id::SkipSomeUpdates),
    with_value("time", Id::Time),
    with_value("transactions", Id::Transactions),
    with_value("username", Id::Username),
    flag("vacuum-all", Id::VacuumAll),
    flag("unlogged-tables", Id::UnloggedTables),
    with_value("tablespace", Id::Tablespace),
    with_value("index-tablespace", Id::IndexTablespace),
    with_value("sampling-rate", Id::SamplingRate),
    with_value("aggregate-interval", Id::AggregateInterval),
    flag("progress-timestamp", Id::ProgressTimestamp),
    with_value("log-prefix", Id::LogPrefix),
    flag("foreign-keys", Id::ForeignKeys),
    with_value("random-seed", Id::RandomSeed),
    with_value("show-script", Id::ShowScript),
    with_value("partitions", Id::Partitions),
    with_value("partition-method", Id::PartitionMethod),
    flag("failures-detailed", Id::FailuresDetailed),
    with_value("max-tries", Id::MaxTries),
    flag("verbose-errors", Id::VerboseErrors),
    flag("exit-on-abort", Id::ExitOnAbort),
    flag("debug", Id::Debug),
    added(with_value("apps", Id::Apps)),
    added(with_value("arrival", Id::Arrival)),
    added(flag("continue-on-error", Id::ContinueOnError)),
    added(with_value("events", Id::Events)),
    added(with_value("histogram", Id::Histogram)),
    added(with_value("load-jobs", Id::LoadJobs)),
    added(flag("percentiles", Id::Percentiles)),
    added(with_value("pool", Id::Pool)),
    added(with_value("pool-lifetime", Id::PoolLifetime)),
    added(with_value("pool-timeout", Id::PoolTimeout)),
    added(with_value("shard", Id::Shard)),
    added(with_value("start-at", Id::StartAt)),
    added(with_value("tasks", Id::Tasks)),
    added(with_value("wait-for-server", Id::WaitForServer)),
    added(with_value("warmup", Id::Warmup)),
];
