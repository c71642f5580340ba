//! From options to what the event loop runs: the workload of the scripts, and the plan.

use std::sync::Arc;
use std::time::Duration;

use super::messages::{self, Failure};
use super::options::fields::{LogOptions, Options};
use drive::ledger::log::LogPlan;
use drive::plan::{ClosedPlan, Limit, Load, Plan, ScriptOptions};
use wire::target::Target;
use wire::value::Value;
use workload::Workload;
use workload::pgbench::{Environment, Scripts};
use workload::seeds::Seeds;

/// How many transactions each client runs when neither `-t` nor `-T` is given.
pub const DEFAULT_TRANSACTIONS: u32 = 10;

/// The seeds of the run: of its clients, its threads and the hash functions.
pub fn seeds(options: &Options) -> Seeds {
    let of_hashes = options.variables.iter().find(|(name, _)| name == "default_seed");
    let of_hashes = of_hashes.map(|(_, value)| value.trim().parse::<i64>().unwrap_or(0) as u64);
    let apps = options.pools.map_or(0, |pools| pools.apps);
    Seeds::derive(options.seed, &options.part, apps, options.jobs, of_hashes)
}

/// The workload of the scripts. Variables that the command line defines come before the `automatic` ones.
pub fn link(options: &Options, automatic: &[(&str, i64)], seed_of_hashes: u64) -> Result<Arc<dyn Workload>, Failure> {
    let mut variables: Vec<_> = options
        .variables
        .iter()
        .map(|(name, value)| (name.clone(), Value::Text(ground::text::bytes(value).as_ref().into())))
        .collect();
    for (name, value) in automatic {
        if variables.iter().all(|(known, _)| known != name) {
            variables.push(((*name).to_owned(), Value::Int(*value)));
        }
    }
    let environment = Environment {
        mode: options.mode,
        timed: options.script.timed_commands,
        announced: options.script.notes.steps,
        needs_values: options.needs_values,
        lists: options.lists.clone(),
        variables,
        default_seed: seed_of_hashes as i64,
    };
    let scripts = Scripts::link(options.scripts.clone(), &environment).map_err(Failure::error)?;
    Ok(Arc::new(Arc::new(scripts)))
}

/// The plan of a benchmark of scripts with these `automatic` variables. `origin` is the origin of the run's clock since 1970.
pub fn plan(
    options: &Options,
    target: Arc<Target>,
    automatic: &[(&str, i64)],
    origin: Duration,
) -> Result<Plan, Failure> {
    let seeds = seeds(options);
    let workload = link(options, automatic, seeds.hashes)?;
    Ok(plan_of(options, messages::PROGRAM, target, workload, seeds, origin))
}

/// The plan of a benchmark of another workload, with pgbench's options; what threads write themselves begins with
/// `program`.
pub fn plan_of(
    options: &Options,
    program: &'static str,
    target: Arc<Target>,
    workload: Arc<dyn Workload>,
    seeds: Seeds,
    origin: Duration,
) -> Plan {
    let script_options = ScriptOptions {
        log: options.log.is_on.then(|| log_plan(options, &options.log, origin)),
        program,
        ..options.script.clone()
    };
    let load = match options.pools {
        Some(pools) => Load::Pooled(pools, script_options),
        None => Load::Closed(ClosedPlan {
            limit: match options.duration {
                Some(seconds) => Limit::Time(Duration::from_secs(seconds.into())),
                None => Limit::Transactions(options.transactions.unwrap_or(DEFAULT_TRANSACTIONS).into()),
            },
            interval_ns: options.interval_ns,
            reconnect: options.reconnect,
            wait_for_server: options.wait_for_server,
            thinks: options.thinks,
            options: script_options,
        }),
    };
    Plan {
        start: options.start,
        slices: options.slices,
        jobs: options.jobs,
        mode: options.mode,
        describes: !options.no_describe,
        warmup: options.warmup,
        exit_on_abort: options.exit_on_abort,
        ..Plan::new(Some(target), workload, options.part, seeds, load)
    }
}

fn log_plan(options: &Options, log: &LogOptions, origin: Duration) -> LogPlan {
    LogPlan {
        prefix: log.prefix.clone().unwrap_or_else(|| "pgbench_log".to_owned()),
        aggregate: log.aggregate_interval.map(|seconds| Duration::from_secs(seconds.into())),
        sampling_rate: log.sampling_rate.unwrap_or(1.0),
        throttled: options.interval_ns.is_some(),
        limited: options.script.latency_limit.is_some(),
        retried: options.script.tries != Some(1),
        failures_detailed: options.output.failures_detailed,
        other_failures: options.script.continue_on_error,
        origin,
    }
}
