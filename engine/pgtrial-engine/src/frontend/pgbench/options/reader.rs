//! Options one after another, in the order of the command line: the first wrong value is refused at once.

use super::table::{Id, Mode};
use super::{Command, Options};
use crate::frontend::events::Events;
use crate::frontend::pgbench::messages::Failure;
use crate::frontend::pgbench::scripts;
use crate::frontend::pgbench::values;
use crate::frontend::pooling::Pooling;
use crate::frontend::sharing;
use drive::plan::StartAt;
use ground::shard::Shard;
use workload::pgbench::builtin;

/// The options read so far.
#[derive(Default)]
pub struct Reader {
    pub options: Options,
    /// Those of pools, and all that were given.
    pub pooling: Pooling,
    pub given: Vec<Id>,
    pub shard: Option<Shard>,
    /// Whether the seed is a number that was given.
    pub is_seeded: bool,
    /// Whether a script is read from standard input.
    pub reads_stdin: bool,
    pub initialize: bool,
    pub for_initialization: bool,
    pub for_benchmarking: bool,
}

impl Reader {
    /// Takes one option; a command if it is complete with that.
    pub fn take(&mut self, id: Id, value: String) -> Result<Option<Command>, Failure> {
        let mode = id.mode();
        self.given.push(id);
        self.for_initialization |= mode == Mode::Initialization;
        self.for_benchmarking |= mode == Mode::Benchmarking;
        match id {
            Id::Builtin if value == "list" => return Ok(Some(Command::List(builtin::listing()))),
            Id::ShowScript => {
                let script = scripts::named(&value)?;
                let text = format!("-- {}: {}\n{}\n", script.name, script.description, script.text);
                return Ok(Some(Command::List(text)));
            }
            Id::Initialize => self.initialize = true,
            Id::Builtin | Id::SelectOnly | Id::SkipSomeUpdates | Id::File => self.take_script(id, &value)?,
            Id::Apps | Id::Arrival | Id::Pool | Id::PoolLifetime | Id::PoolTimeout | Id::Tasks => {
                self.take_for_pools(id, &value)?;
            }
            _ if mode == Mode::Initialization => self.take_for_initialization(id, value)?,
            _ => self.take_other(id, value)?,
        }
        Ok(None)
    }

    /// Adds a built-in script or a file.
    pub fn take_script(&mut self, id: Id, value: &str) -> Result<(), Failure> {
        let script = match id {
            Id::File => {
                self.reads_stdin |= value.split('@').next() == Some("-");
                scripts::file(value)?
            }
            Id::SelectOnly => scripts::builtin("select-only")?,
            Id::SkipSomeUpdates => scripts::builtin("simple-update")?,
            _ => scripts::builtin(value)?,
        };
        scripts::add(&mut self.options.scripts, script)?;
        self.options.needs_tables |= id != Id::File;
        Ok(())
    }

    fn take_for_initialization(&mut self, id: Id, value: String) -> Result<(), Failure> {
        let options = &mut self.options;
        match id {
            Id::Fillfactor => options.fillfactor = values::integer(&value, "-F/--fillfactor", 10, 100)?,
            Id::ForeignKeys => options.foreign_keys = true,
            Id::IndexTablespace => options.index_tablespace = Some(value),
            Id::InitSteps => options.init_steps = values::check_steps(value)?,
            Id::LoadJobs => options.load_jobs = Some(values::integer(&value, "--load-jobs", 1, 1000)? as usize),
            Id::PartitionMethod => options.partition_method = Some(values::partition_method(&value)?),
            Id::Partitions => options.partitions = values::integer(&value, "--partitions", 0, i32::MAX as u32)?,
            Id::Quiet => options.quiet = true,
            Id::Tablespace => options.tablespace = Some(value),
            _ => options.unlogged_tables = true,
        }
        Ok(())
    }

    fn take_other(&mut self, id: Id, value: String) -> Result<(), Failure> {
        let options = &mut self.options;
        match id {
            Id::AggregateInterval => {
                options.aggregate_interval = Some(values::count(&value, "--aggregate-interval")?);
            }
            Id::Client => options.clients = values::count(&value, "-c/--client")? as usize,
            Id::Connect => options.reconnect = true,
            Id::ContinueOnError => options.continue_on_error = true,
            Id::Dbname => options.dbname = Some(value),
            Id::Debug => options.debug = true,
            Id::Define => {
                let (name, value) = values::definition(&value)?;
                options.variables.retain(|(known, _)| *known != name);
                options.variables.push((name, value));
            }
            Id::Events => options.events = Some(Events::named(&value)),
            Id::ExitOnAbort => options.exit_on_abort = true,
            Id::FailuresDetailed => options.failures_detailed = true,
            Id::Histogram => options.histogram = Some(value.into()),
            Id::Host => options.host = Some(value),
            Id::Jobs => options.jobs = values::count(&value, "-j/--jobs")? as usize,
            Id::LatencyLimit => options.latency_limit = values::latency_limit(&value)?,
            Id::Log => options.log = true,
            Id::LogPrefix => options.log_prefix = Some(value),
            Id::MaxTries => options.tries = values::max_tries(&value)?,
            Id::NoVacuum => options.no_vacuum = true,
            Id::Percentiles => options.percentiles = true,
            Id::Port => options.port = Some(value),
            Id::Progress => options.progress = Some(values::count(&value, "-P/--progress")?),
            Id::ProgressTimestamp => options.progress_timestamp = true,
            Id::Protocol => options.mode = values::mode(&value)?,
            Id::RandomSeed => {
                options.seed = values::random_seed(Some(&value))
                    .map_err(|failure| failure.and("error while setting random seed from --random-seed option"))?;
                self.is_seeded = values::is_number(&value);
            }
            Id::Rate => options.interval = Some(values::rate(&value)?),
            Id::ReportPerCommand => options.report_per_command = true,
            Id::SamplingRate => options.sampling_rate = Some(values::sampling_rate(&value)?),
            Id::Scale => options.scale = Some(values::count(&value, "-s/--scale")?),
            Id::Shard => self.shard = Some(sharing::shard(&value).map_err(Failure::error)?),
            Id::StartAt => options.start = Some(StartAt::read(&value).map_err(Failure::error)?),
            Id::Time => options.duration = Some(values::count(&value, "-T/--time")?),
            Id::Transactions => options.transactions = Some(values::count(&value, "-t/--transactions")?),
            Id::Username => options.user = Some(value),
            Id::VacuumAll => options.vacuum_all = true,
            Id::VerboseErrors => options.verbose_errors = true,
            Id::WaitForServer => options.wait_for_server = Some(values::seconds(&value, "--wait-for-server")?),
            Id::Warmup => options.warmup = values::seconds(&value, "--warmup")?,
            // The rest is taken before.
            _ => {}
        }
        Ok(())
    }
}
