//! The options that pgbench, order entry and tasks share: the fields in which they are stored, the rows of the option
//! tables that set them, the check that they fit together, and the plan of a run that is made from them. A further
//! option that several of these front ends have needs a field and a row here, and a line in the table of each front
//! end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::connection::reserve_files;
use super::failure::Failure;
use super::log::LogOptions;
use super::messages::FrontEnd;
use super::pooling::{self, PoolOptions};
use super::sent_statements::listed;
use super::sharing::{self, Length, SliceOptions, WHOLE_SECONDS};
use super::values::{ValueError, count, positive, positive_seconds, seconds};
use crate::event::Events;
use drive::plan::{ClosedPlan, Limit, Load, Plan, PoolPlan, ScriptOptions};
use drive::slices::Slices;
use drive::start_at::StartAt;
use drive::statistics::log::LogPlan;
use ground::c_numbers;
use ground::options::{Argument, OptionRow, SetResult, set};
use ground::output::CouldNot;
use ground::shard::{ClientShare, Shard};
use wire::params::Given;
use wire::statement::QueryMode;
use wire::target::Target;
use workload::Workload;
use workload::seeds::Seeds;

/// The number of transactions that each client runs if the command line gives neither a number of transactions nor a
/// time.
const DEFAULT_TRANSACTIONS: u32 = 10;

/// The longest mean time between two transactions that a rate can ask for: 136 years, in nanoseconds.
const LONGEST_INTERVAL_NS: f64 = u32::MAX as f64 * 1e9;

/// The options of a run. Each value has been checked by itself; [`RunOptions::share`] and [`RunOptions::check`] reject
/// options that do not fit together. Numbers of clients, threads, transactions and seconds are from 1 to 2147483647, as
/// in pgbench, unless a field says otherwise.
#[derive(Debug, Default)]
pub struct RunOptions {
    pub server: Given,
    /// The number of clients of the whole run, also if several engines share the run.
    pub clients: usize,
    pub jobs: usize,
    pub transactions: Option<u32>,
    /// The length of the measured part, in seconds.
    pub duration: Option<u32>,
    /// True if this time begins when all clients are connected. If false, it begins before they connect, as in pgbench,
    /// unless the run has a warm-up or a planned start.
    pub time_after_connecting: bool,
    pub warmup: Duration,
    pub start: Option<StartAt>,
    pub seed: Seed,
    pub shard: Shard,
    pub slicing: SliceOptions,
    pub pooling: PoolOptions,
    pub mode: QueryMode,
    /// True if executions in the extended protocol are sent without Describe, so that the server does not send the
    /// columns of results. If false, Describe is sent, as libpq does.
    pub no_describe: bool,
    pub script: ScriptOptions,
    pub reconnect: bool,
    /// The mean time between the scheduled starts of two transactions of the whole run, in nanoseconds. `None` without
    /// a rate limit.
    pub interval_ns: Option<f64>,
    /// True if clients wait before and after each transaction, as people at terminals do (the keying and think times of
    /// TPC-C). Always false for pgbench.
    pub thinks: bool,
    /// The time for which a client that has lost its connection tries to connect again. `None` if the client is aborted
    /// at once.
    pub wait_for_server: Option<Duration>,
    pub exit_on_abort: bool,
    pub log: LogOptions,
    pub output: OutputOptions,
}

/// The seed of the run's random numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seed {
    pub number: u64,
    /// True if the user gave the seed as a number. If false, it was drawn at random, and engines that share a run would
    /// have different seeds.
    pub is_given: bool,
}

impl Seed {
    /// Returns a seed that the user gave.
    pub fn given(number: u64) -> Self {
        Self { number, is_given: true }
    }
}

/// The options for the output of a run, except the transaction log.
#[derive(Debug, Default)]
pub struct OutputOptions {
    pub failures_detailed: bool,
    /// The time between progress lines, in seconds.
    pub progress: Option<u32>,
    pub progress_timestamp: bool,
    pub percentiles: bool,
    pub histogram: Option<PathBuf>,
    pub events: Option<Events>,
    /// The file to which pgtrial writes the statements that its clients send to the server (`--list-statements`).
    pub statements: Option<PathBuf>,
}

impl OutputOptions {
    /// Returns true if the events are written to standard output. Reports and other texts must then not be written
    /// there.
    pub fn has_only_events(&self) -> bool {
        self.events == Some(Events::Stdout)
    }
}

type Row = OptionRow<RunOptions, Failure, ()>;

const fn switch(spec: &'static str, field: fn(&mut RunOptions) -> &mut bool) -> Row {
    Row::switch(spec, (), "", field)
}

const fn value(spec: &'static str, set: fn(&mut RunOptions, &Argument<'_>) -> SetResult<Failure>) -> Row {
    Row::value(spec, (), "", set)
}

pub const PROGRESS: Row = value("-P, --progress=NUM", |o, v| set(&mut o.output.progress, count(v)));
pub const RATE: Row = value("-R, --rate=NUM", |o, v| set(&mut o.interval_ns, rate(v.text)));
pub const TRANSACTIONS: Row = value("-t, --transactions=NUM", |o, v| set(&mut o.transactions, count(v)));
pub const LATENCY_LIMIT: Row =
    value("-L, --latency-limit=NUM", |o, v| set(&mut o.script.latency_limit, latency_limit(v.text)));
pub const MAX_TRIES: Row = value("--max-tries=NUM", |o, v| set(&mut o.script.tries, max_tries(v.text)));
pub const CONTINUE_ON_ERROR: Row = switch("--continue-on-error", |o| &mut o.script.continue_on_error);
pub const EXIT_ON_ABORT: Row = switch("--exit-on-abort", |o| &mut o.exit_on_abort);
pub const VERBOSE_ERRORS: Row = switch("--verbose-errors", |o| &mut o.script.notes.failures);
pub const WAIT_FOR_SERVER: Row = value("--wait-for-server=SECONDS", |o, v| set(&mut o.wait_for_server, seconds(v)));
pub const WARMUP: Row = value("--warmup=SECONDS", |o, v| set(&mut o.warmup, seconds(v)));
pub const EVENTS: Row =
    value("--events=FILE|-", |o, v| set(&mut o.output.events, Ok::<_, Failure>(Events::named(v.text))));
pub const LIST_STATEMENTS: Row =
    value("--list-statements=FILE", |o, v| set(&mut o.output.statements, Ok::<_, Failure>(ground::text::path(v.text))));

pub const SHARD: Row = value("--shard=I/N", |o, v| set(&mut o.shard, sharing::shard(v.text)));
pub const SLICE: Row = value("--slice=TIME", |o, v| set(&mut o.slicing.length, sharing::slice_length(v.text)));
pub const SLICE_OF: Row = value("--slice-of=I/N", |o, v| set(&mut o.slicing.part, sharing::slice_part(v.text)));
pub const SLICE_SEED: Row = value("--slice-seed=NUM", |o, v| set(&mut o.slicing.seed, sharing::slice_seed(v.text)));
pub const START_AT: Row = value("--start-at=WHEN|-", |o, v| set(&mut o.start, StartAt::read(v.text)));

pub const APPS: Row = value("--apps=NUM", |o, v| set(&mut o.pooling.apps, pooling::connections(v)));
pub const ARRIVAL: Row =
    value("--arrival=at-once|RATE|poisson:RATE", |o, v| set(&mut o.pooling.arrival, pooling::arrival(v)));
pub const POOL: Row = value("--pool=SIZE", |o, v| set(&mut o.pooling.size, pooling::connections(v)));
pub const POOL_LIFETIME: Row =
    value("--pool-lifetime=SECONDS", |o, v| set(&mut o.pooling.lifetime, positive_seconds(v)));
pub const POOL_TIMEOUT: Row = value("--pool-timeout=SECONDS", |o, v| set(&mut o.pooling.timeout, positive_seconds(v)));
pub const TASKS: Row = value("--tasks=NUM", |o, v| set(&mut o.pooling.tasks, pooling::tasks(v)));

/// Reads a latency limit in milliseconds, and rounds it down to whole microseconds. Returns `None`, which is no limit,
/// if it is less than one microsecond.
fn latency_limit(text: &str) -> Result<Option<Duration>, ValueError> {
    let ms = positive(text).ok_or_else(|| ValueError::of("latency limit", text))?;
    // The longest time that the run's clock can represent is 292 years.
    let us = ((ms * 1000.0) as u64).min(i64::MAX as u64 / 1000);
    Ok((us > 0).then(|| Duration::from_micros(us)))
}

/// Reads a rate in transactions per second. Returns the mean time between two transactions in nanoseconds, which is at
/// most `LONGEST_INTERVAL_NS`.
fn rate(text: &str) -> Result<f64, ValueError> {
    let rate = positive(text).ok_or_else(|| ValueError::of("rate limit", text))?;
    Ok((1e9 / rate).min(LONGEST_INTERVAL_NS))
}

/// Reads how often a transaction may be tried. Returns `None`, which is no limit, for 0.
fn max_tries(text: &str) -> Result<Option<u32>, ValueError> {
    let tries = u32::try_from(c_numbers::atoi(text.as_bytes()));
    let tries = tries.map_err(|_| ValueError::of("number of maximum tries", text))?;
    Ok((tries > 0).then_some(tries))
}

/// The part of a run that this engine (a process of pgtrial-engine) carries out. Several engines, on one or more
/// machines, may share a run or take turns.
#[derive(Debug, Clone, Copy)]
pub struct EngineShare {
    /// The clients of the whole run that belong to this engine. If there are connection pools, each connection of a
    /// pool is a client.
    pub part: ClientShare,
    pub pools: Option<PoolPlan>,
    /// The number of threads. It is at most the number of the engine's clients and, if there are pools, at most the
    /// number of pools.
    pub jobs: usize,
    /// The slices of time in which this engine runs its load while other engines pause.
    pub slices: Option<Slices>,
}

impl RunOptions {
    /// Returns the options of a command line without options: one client and one thread. `seed` is the random seed.
    pub fn new(seed: u64) -> Self {
        Self { clients: 1, jobs: 1, seed: Seed { number: seed, is_given: false }, ..Self::default() }
    }

    /// Returns the clients or, if there are pools, the pools that this engine has, and its slices of time. Raises the
    /// process's limit of open files, so that all connections of the share can be opened.
    pub fn share(&self) -> Result<EngineShare, Failure> {
        if self.shard.is_part() && !self.seed.is_given {
            return Err(sharing::needs_seed("--random-seed").into());
        }
        let (pools, part, most_jobs) = if self.pooling.is_given() {
            let pools = self.pooling.plan(self.shard)?;
            (Some(pools), ClientShare::of_pools(self.shard, pools.apps, pools.task_share.size), pools.apps)
        } else {
            sharing::check_enough(self.shard, self.clients, "clients")?;
            (None, ClientShare::of_clients(self.shard, self.clients), self.clients)
        };
        reserve_files(part.clients() as u64)?;
        let warmup = Length { option: "--warmup", time: self.warmup, unit: 1 };
        let seconds = self.duration.unwrap_or_default().into();
        let measured = Length { option: "-T", time: Duration::from_secs(seconds), unit: WHOLE_SECONDS };
        let slices = self.slicing.settle(self.start.is_some(), &[warmup, measured])?;
        Ok(EngineShare { part, pools, jobs: self.jobs.min(most_jobs).min(part.clients()), slices })
    }

    /// Rejects options that contradict each other, in the same order as pgbench.
    pub fn check(&self) -> Result<(), Failure> {
        if self.transactions.is_some() && self.duration.is_some() {
            return Err(Failure::error("specify either a number of transactions (-t) or a duration (-T), not both"));
        }
        self.log.check(self.duration)?;
        if self.output.progress_timestamp && self.output.progress.is_none() {
            return Err(Failure::error("--progress-timestamp is allowed only under --progress"));
        }
        if self.script.tries.is_none() && self.script.latency_limit.is_none() && self.duration.is_none() {
            return Err(Failure::error(
                "an unlimited number of transaction tries can only be used with --latency-limit or a duration (-T)",
            ));
        }
        Ok(())
    }

    /// Returns the limit of the load: the time or, without a time, the number of transactions of each client.
    pub fn limit(&self) -> Limit {
        match self.duration {
            Some(seconds) => Limit::Time(Duration::from_secs(seconds.into())),
            None => Limit::Transactions(self.transactions.unwrap_or(DEFAULT_TRANSACTIONS).into()),
        }
    }

    /// Returns true if the time limit of the load already runs while the clients connect, as in pgbench. With a warm-up
    /// or a planned start, the measured time begins after the warm-up or at the planned start, so it cannot include the
    /// time for connecting. Slices of time also have a planned start.
    pub fn time_includes_connecting(&self) -> bool {
        !self.time_after_connecting && self.warmup.is_zero() && self.start.is_none()
    }

    /// Returns the seeds of the run's clients, threads and hash functions. If `of_hashes` is given, it is used as the
    /// seed of the hash functions.
    pub fn seeds(&self, share: &EngineShare, of_hashes: Option<u64>) -> Seeds {
        let apps = share.pools.map_or(0, |pools| pools.apps);
        Seeds::derive(self.seed.number, &share.part, apps, share.jobs, of_hashes)
    }

    /// Returns the plan of a run of this workload. Lines that the run's threads print begin with the name of
    /// `front_end`. `origin` is the time since 1970 at which the run's clock shows 0. Fails if the file of
    /// `--list-statements` cannot be created.
    pub fn plan(
        &self,
        front_end: FrontEnd,
        target: Arc<Target>,
        workload: Arc<dyn Workload>,
        share: &EngineShare,
        seeds: Seeds,
        origin: Duration,
    ) -> Result<Plan, CouldNot> {
        let workload = listed(workload, self.mode, self.output.statements.as_deref())?;
        let mut options = ScriptOptions { program: front_end.name, ..self.script.clone() };
        // With pools, a failed task must not abort a client, since the connection of the pool is needed for further
        // tasks.
        options.continue_on_error |= share.pools.is_some();
        options.log = self.log_plan(&options, origin);
        let load = match share.pools {
            Some(pools) => Load::pooled(workload, pools),
            None => {
                let plan = ClosedPlan {
                    limit: self.limit(),
                    interval_ns: self.interval_ns,
                    alarm: None,
                    reconnect: self.reconnect,
                    wait_for_server: self.wait_for_server,
                    thinks: self.thinks,
                };
                Load::closed(workload, plan)
            }
        };
        Ok(Plan {
            start: self.start,
            slices: share.slices,
            jobs: share.jobs,
            mode: self.mode,
            describes: !self.no_describe,
            warmup: self.warmup,
            time_includes_connecting: self.time_includes_connecting(),
            exit_on_abort: self.exit_on_abort,
            options,
            ..Plan::new(Some(target), share.part, seeds, load)
        })
    }

    /// Returns the plan of the transaction log, or `None` if no log is written.
    fn log_plan(&self, script: &ScriptOptions, origin: Duration) -> Option<LogPlan> {
        let LogOptions { is_on, prefix, sampling_rate, aggregate_interval } = &self.log;
        is_on.then(|| LogPlan {
            prefix: prefix.clone().unwrap_or_else(|| "pgbench_log".to_owned()),
            aggregate: aggregate_interval.map(|seconds| Duration::from_secs(seconds.into())),
            sampling_rate: sampling_rate.unwrap_or(1.0),
            throttled: self.interval_ns.is_some(),
            limited: script.latency_limit.is_some(),
            retried: script.tries != Some(1),
            failures_detailed: self.output.failures_detailed,
            other_failures: script.continue_on_error,
            origin,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::common::connection::{SETUP, target};
    use crate::frontend::never_run::Nothing;

    fn planned(options: &RunOptions) -> Plan {
        let given = Given { host: Some("/nowhere".to_owned()), ..Given::default() };
        let (target, share) = (target(&given, "test", SETUP).unwrap(), options.share().unwrap());
        let seeds = options.seeds(&share, None);
        options.plan(FrontEnd::new("test"), target, Arc::new(Nothing), &share, seeds, Duration::ZERO).unwrap()
    }

    #[test]
    fn a_failed_task_aborts_no_connection_of_a_pool() {
        let pooling = PoolOptions { tasks: Some(1), size: Some(1), ..PoolOptions::default() };
        let goes_on = |options: &RunOptions| planned(options).options.continue_on_error;
        assert!(goes_on(&RunOptions { pooling, ..RunOptions::new(1) }) && !goes_on(&RunOptions::new(1)));
    }

    #[test]
    fn the_log_has_the_columns_that_the_load_needs() {
        let log = LogOptions { is_on: true, aggregate_interval: Some(5), ..LogOptions::default() };
        let options = RunOptions { log, interval_ns: Some(1e6), ..RunOptions::new(1) };
        let log = planned(&options).options.log.unwrap();
        assert_eq!((log.prefix.as_str(), log.aggregate), ("pgbench_log", Some(Duration::from_secs(5))));
        assert_eq!([log.throttled, log.limited, log.retried, log.other_failures], [true, false, false, false]);
        assert!(planned(&RunOptions::new(1)).options.log.is_none());
    }

    #[test]
    fn extreme_rates_and_limits_are_cut_to_what_a_clock_can_hold() {
        assert_eq!(rate("1e-300").unwrap(), LONGEST_INTERVAL_NS);
        assert_eq!(rate("250").unwrap(), 4e6);
        assert_eq!(rate("3e9").unwrap(), 1e9 / 3e9);
        assert_eq!(latency_limit("0.0001").unwrap(), None);
        assert!(latency_limit("1e300").unwrap().unwrap().as_nanos() < u64::MAX.into());
        for text in ["0", "-1", "x", "inf", "nan"] {
            assert!(rate(text).is_err() && latency_limit(text).is_err(), "{text}");
        }
    }
}
