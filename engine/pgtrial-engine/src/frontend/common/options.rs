//! Checks that the arguments of a command line fit together, and makes the complete options of a run from them:
//! connection, load and output. Arguments that contradict each other are rejected, in the same order as in pgbench.

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

/// The number of transactions that each client runs if the command line gives neither a number of transactions nor a
/// time.
pub const DEFAULT_TRANSACTIONS: u32 = 10;

/// All options of a run.
#[derive(Debug)]
pub struct RunOptions {
    pub server: Given,
    pub load: LoadOptions,
    /// The options of the transaction log; `None` if no log is written.
    pub log: Option<LogOptions>,
    pub output: OutputOptions,
}

/// The complete options of the load.
#[derive(Debug)]
pub struct LoadOptions {
    pub settings: LoadSettings,
    pub limit: Limit,
    pub seed: u64,
    pub shard: Shard,
    pub share: EngineShare,
    pub slices: Option<Slices>,
}

/// The part of the run that this engine (a process of pgtrial-engine) carries out. Several engines, on one or more
/// machines, may share a run.
#[derive(Debug, Clone, Copy)]
pub struct EngineShare {
    /// The clients of the whole run that belong to this engine. If there are connection pools, each connection of a
    /// pool is a client.
    pub part: ClientShare,
    pub pools: Option<PoolPlan>,
    /// The number of threads. It is at most the number of the engine's clients and, if there are pools, at most the
    /// number of pools.
    pub jobs: usize,
}

/// The complete options of the transaction log.
#[derive(Debug)]
pub struct LogOptions {
    pub prefix: String,
    /// The fraction of transactions that are logged, more than 0 and at most 1.
    pub sampling_rate: f64,
    pub aggregate: Option<Duration>,
}

impl RunArguments {
    /// Checks that the options fit together, and returns the complete options. `share` is the share of this engine in
    /// the run.
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
        // With pools, a failed task must not abort a client, since the connection of the pool is needed for further
        // tasks.
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
    /// Returns this engine's share of the clients or, if there are pools, of the pools. Raises the process's limit of
    /// open files, so that all connections of the share can be opened.
    pub fn share(&self) -> Result<EngineShare, Failure> {
        if self.shard.is_part() && !self.seed.is_given {
            return Err(needs_seed("--random-seed").into());
        }
        let (pools, part, most_jobs) = if self.pooling.is_given() {
            let pools = self.pooling.plan(self.shard)?;
            (Some(pools), ClientShare::of_pools(self.shard, pools.apps, pools.task_share.size), pools.apps)
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

/// Returns the slices of time in which this engine runs its load while other engines pause, if the options request
/// slices. Both the warm-up and the measured part must consist of whole rounds, in which each engine has one slice.
fn slices(load: &LoadArguments) -> Result<Option<Slices>, Failure> {
    let warmup = Length { option: "--warmup", time: load.settings.warmup, unit: 1 };
    let measured = load.duration.map(|seconds| Duration::from_secs(seconds.into()));
    let measured = Length { option: "-T", time: measured.unwrap_or_default(), unit: WHOLE_SECONDS };
    Ok(load.slicing.settle(load.settings.start.is_some(), &[warmup, measured])?)
}

/// Raises the process's limit of open files, so that this number of connections can be opened. The error messages are
/// the same as in pgbench. The run raises the limit further for the files of its threads.
pub fn reserve_files(connections: u64) -> Result<(), Failure> {
    const ADVICE: &str = "Reduce number of clients, or use limit/ulimit to increase the system limit.";
    let needed = connections + 3;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)
        .map_err(|error| Failure::error(format!("getrlimit failed: {}", error.desc())))?;
    let too_few = |reason| Failure::error(format!("need at least {needed} open files, but {reason}")).hint(ADVICE);
    if hard < needed {
        return Err(too_few(format!("system limit is {hard}")));
    }
    let not_raised = |error: Errno| too_few(format!("couldn't raise the limit: {}", error.desc()));
    if soft < needed { setrlimit(Resource::RLIMIT_NOFILE, needed, hard).map_err(not_raised) } else { Ok(()) }
}
