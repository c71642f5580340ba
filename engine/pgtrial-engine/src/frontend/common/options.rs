//! The complete options of a run: connection, load and output. They are derived from the arguments taken together.
//! Arguments that contradict each other are rejected, in the same order as in pgbench.

use std::time::Duration;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::arguments::{LoadArguments, LoadSettings, LogArguments, OutputOptions, RunArguments};
use super::failure::Failure;
use super::sharing::{Length, WHOLE_SECONDS, check_enough, needs_seed};
use drive::slices::Slices;
use drive::{Limit, PoolPlan};
use ground::shard::{ClientShare, Shard};
use wire::params::Given;

/// The number of transactions that each client runs when neither their number nor a time is given.
pub const DEFAULT_TRANSACTIONS: u32 = 10;

/// All options of a run.
#[derive(Debug)]
pub struct RunOptions {
    pub server: Given,
    pub load: LoadOptions,
    /// The transaction log; `None`: no log is written.
    pub log: Option<LogOptions>,
    pub output: OutputOptions,
}

/// The options of the load.
#[derive(Debug)]
pub struct LoadOptions {
    pub settings: LoadSettings,
    pub limit: Limit,
    pub seed: u64,
    pub shard: Shard,
    pub share: EngineShare,
    pub slices: Option<Slices>,
}

/// The share of this engine in the whole run.
#[derive(Debug, Clone, Copy)]
pub struct EngineShare {
    /// The part of the whole run's clients that belongs to this engine. If there are connection pools, the clients are
    /// the pools' connections.
    pub part: ClientShare,
    pub pools: Option<PoolPlan>,
    /// The number of threads, no more than the engine has clients or pools.
    pub jobs: usize,
}

/// The options of the transaction log.
#[derive(Debug)]
pub struct LogOptions {
    pub prefix: String,
    /// The share of transactions that are logged, more than 0 and at most 1.
    pub sampling_rate: f64,
    pub aggregate: Option<Duration>,
}

impl RunArguments {
    /// Checks that the options fit together, and returns the options of this engine's share of the run.
    pub fn settle(self, share: EngineShare) -> Result<RunOptions, Failure> {
        let Self { server, load, log, output } = self;
        let slices = slices(&load)?;
        if load.transactions.is_some() && load.duration.is_some() {
            return Err(Failure::error("specify either a number of transactions (-t) or a duration (-T), not both"));
        }
        let log = log.settle(load.duration)?;
        if output.progress_timestamp && output.progress.is_none() {
            return Err(Failure::error("--progress-timestamp is allowed only under --progress"));
        }
        let LoadArguments { transactions, duration, seed, shard, mut settings, .. } = load;
        let script = &mut settings.script;
        if script.tries.is_none() && script.latency_limit.is_none() && duration.is_none() {
            return Err(Failure::error(
                "an unlimited number of transaction tries can only be used with --latency-limit or a duration (-T)",
            ));
        }
        // A task that fails keeps its pool.
        script.continue_on_error |= share.pools.is_some();
        let limit = match duration {
            Some(seconds) => Limit::Time(Duration::from_secs(seconds.into())),
            None => Limit::Transactions(transactions.unwrap_or(DEFAULT_TRANSACTIONS).into()),
        };
        let load = LoadOptions { settings, limit, seed: seed.number, shard, share, slices };
        Ok(RunOptions { server, load, log, output })
    }
}

impl LoadArguments {
    /// Returns this engine's share of the clients, or of the pools if there are any. Raises the limit of open files to
    /// what its connections need.
    pub fn share(&self) -> Result<EngineShare, Failure> {
        if self.shard.is_part() && !self.seed.is_given {
            return Err(needs_seed("--random-seed").into());
        }
        let (pools, part, most_jobs) = if self.pooling.is_given() {
            let pools = self.pooling.plan(self.shard)?;
            (Some(pools), ClientShare::of_pools(self.shard, pools.apps, pools.deal.size), pools.apps)
        } else {
            check_enough(self.shard, self.clients, "clients")?;
            (None, ClientShare::of_clients(self.shard, self.clients), self.clients)
        };
        reserve_files(part.clients() as u64)?;
        Ok(EngineShare { part, pools, jobs: self.jobs.min(most_jobs).min(part.clients()) })
    }
}

impl LogArguments {
    /// Checks the options of the transaction log, and returns the log's settings. `duration` is the time limit of the
    /// run in seconds, if there is one.
    fn settle(self, duration: Option<u32>) -> Result<Option<LogOptions>, Failure> {
        let Self { is_on, prefix, sampling_rate, aggregate_interval } = self;
        let contradictions = [
            (
                sampling_rate.is_some() && !is_on,
                "log sampling (--sampling-rate) is allowed only when logging transactions (-l)",
            ),
            (
                sampling_rate.is_some() && aggregate_interval.is_some(),
                "log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be used at the same time",
            ),
            (
                aggregate_interval.is_some() && !is_on,
                "log aggregation is allowed only when actually logging transactions",
            ),
            (
                prefix.is_some() && !is_on,
                "log file prefix (--log-prefix) is allowed only when logging transactions (-l)",
            ),
        ];
        if let Some((_, message)) = contradictions.into_iter().find(|(is_one, _)| *is_one) {
            return Err(Failure::error(message));
        }
        if let (Some(duration), Some(interval)) = (duration, aggregate_interval) {
            if interval > duration {
                return Err(Failure::error(format!(
                    "number of seconds for aggregation ({interval}) must not be higher than test duration ({duration})"
                )));
            }
            if duration % interval != 0 {
                return Err(Failure::error(format!(
                    "duration ({duration}) must be a multiple of aggregation interval ({interval})"
                )));
            }
        }
        Ok(is_on.then(|| LogOptions {
            prefix: prefix.unwrap_or_else(|| "pgbench_log".to_owned()),
            sampling_rate: sampling_rate.unwrap_or(1.0),
            aggregate: aggregate_interval.map(|seconds| Duration::from_secs(seconds.into())),
        }))
    }
}

/// Returns the slices, if the options ask for some. Warm-up and measured part must be whole rounds of them.
fn slices(load: &LoadArguments) -> Result<Option<Slices>, Failure> {
    let warmup = Length { option: "--warmup", time: load.settings.warmup, unit: 1 };
    let measured = load.duration.map(|seconds| Duration::from_secs(seconds.into()));
    let measured = Length { option: "-T", time: measured.unwrap_or_default(), unit: WHOLE_SECONDS };
    Ok(load.slicing.settle(load.settings.start.is_some(), &[warmup, measured])?)
}

/// Raises the limit of open files to what this number of connections needs. The messages are pgbench's.
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
    let not_raised = |error: Errno| too_few(format!("couldn't raise the limit: {}", error.desc()));
    if soft < wanted { setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).map_err(not_raised) } else { Ok(()) }
}
