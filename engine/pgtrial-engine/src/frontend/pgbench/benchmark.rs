//! A benchmark run: from the options to the exit status.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::histogram::HistogramFile;
use super::options::Options;
use super::progress::Watcher;
use super::survey::{Facts, print_version, survey, vacuum};
use super::{results, session, target};
use crate::event::{EventWriter, Hello};
use crate::frontend::events::Events;
use crate::frontend::pgbench::messages;
use crate::frontend::pgbench::messages::Failure;
use crate::frontend::{pooling, self_check};
use drive;
use drive::ledger::log::LogPlan;
use drive::plan::{ClosedPlan, Limit, Load, Notes, Plan, ScriptOptions};
use drive::{Outcome, RunError};
use ground::clock::Clock;
use ground::interrupt;
use ground::output;
use ground::shard::ClientShare;
use wire::session::Session;
use wire::target::Target;
use wire::value::Value;
use workload::Workload;
use workload::pgbench::{Environment, Parsed, Scripts};
use workload::seeds::Seeds;

/// Exit status of a run in which clients were given up.
const ABORTED: u8 = 2;

/// Exit status when something that was asked for could not be written, whatever became of the run.
const OUTPUT_LOST: u8 = 1;

/// What the first connection is for.
const PURPOSE: &str = "setup";

/// How many transactions each client runs when neither `-t` nor `-T` is given.
const DEFAULT_TRANSACTIONS: u32 = 10;

/// Runs the benchmark; the exit status is pgbench's.
pub fn run(mut options: Options) -> Result<u8, Failure> {
    let clock = Clock::start();
    let origin = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let parsed = std::mem::take(&mut options.scripts);
    // What is wrong with the scripts is told before a server is asked for its scale.
    link(
        parsed.clone(),
        &options,
        &Facts::default(),
        &Seeds::derive(options.seed, &ClientShare::whole(0), 0, 0, None),
    )?;
    let target = target(&options, PURPOSE)?;
    let mut session = session(&target, PURPOSE)?;
    if options.events != Some(Events::Stdout) {
        print_version(&session.server.version);
    }
    if options.debug {
        messages::info(describe_run(&options, &target));
    }
    let facts = survey(&mut session, &options, &target)?;
    if let Some(pools) = &options.pools {
        pooling::check_limit(&mut session, pools).map_err(Failure::error)?;
    }
    let apps = options.pools.map_or(0, |pools| pools.apps);
    let seeds = Seeds::derive(options.seed, &options.part, apps, options.jobs, seed_of_hashes(&options));
    let workload = link(parsed, &options, &facts, &seeds)?;
    let plan = make_plan(&options, target, workload, seeds, origin);
    let histogram = options.histogram.as_deref().map(HistogramFile::create).transpose()?;
    let mut events = open_events(&options, &plan, &facts, clock, &session)?;
    if options.part.shard.is_first() {
        vacuum(&mut session, &options);
    }
    drop(session);

    let interrupt = interrupt::catch().map_err(Failure::error)?;
    let mut watcher = Watcher::new(&options, &plan, clock, origin, events.as_mut(), &interrupt);
    let outcome = drive::run(&plan, clock, &interrupt, &mut watcher).map_err(describe_run_error)?;
    Ok(finish(&options, &plan, &facts, &outcome, &mut watcher, histogram))
}

/// Writes everything that is known at the end; the exit status.
fn finish(
    options: &Options,
    plan: &Plan,
    facts: &Facts,
    outcome: &Outcome,
    watcher: &mut Watcher<'_>,
    histogram: Option<HistogramFile>,
) -> u8 {
    let to_stdout = options.events != Some(Events::Stdout);
    let mut status = exit_status(outcome);
    if let Some(Err(error)) = histogram.map(|file| file.write(&outcome.measure)) {
        messages::error(error);
        status = OUTPUT_LOST;
    }
    if let Some(error) = &outcome.log_error {
        messages::error(error);
        status = OUTPUT_LOST;
    }
    let warnings = if options.uses_additions() { self_check::warnings(outcome, "-j") } else { Vec::new() };
    watcher.done(outcome, status, &warnings);
    if watcher.events_lost() {
        status = OUTPUT_LOST;
    }
    if let Some(thread) = outcome.ended_by_thread {
        messages::error(format!("Run was aborted due to an error in thread {thread}"));
        return status;
    }
    if to_stdout {
        output::print_stdout(results::report(options, plan, facts, outcome));
    }
    for warning in &warnings {
        messages::warning(&warning.message);
    }
    if outcome.aborted > 0 {
        messages::error("Run was aborted; the above results are incomplete.");
    }
    if outcome.interrupted && to_stdout {
        let seconds = outcome.elapsed_s;
        messages::error(format!("interrupted after {seconds:.1} s; the above results are of that time"));
    }
    status
}

fn exit_status(outcome: &Outcome) -> u8 {
    match (outcome.interrupted, outcome.aborted) {
        (true, _) => interrupt::STATUS,
        (false, 0) => 0,
        (false, _) => ABORTED,
    }
}

/// pgbench's line of what it is about to do.
fn describe_run(options: &Options, target: &Target) -> String {
    let (host, port) = target
        .params
        .endpoints
        .first()
        .map_or_else(Default::default, |endpoint| (endpoint.host_name.clone(), endpoint.port));
    let (word, number) = match options.duration {
        Some(seconds) => ("duration", seconds),
        None => ("nxacts", options.transactions.unwrap_or(DEFAULT_TRANSACTIONS)),
    };
    let (clients, dbname) = (options.clients, &target.params.dbname);
    format!("pghost: {host} pgport: {port} nclients: {clients} {word}: {number} dbName: {dbname}")
}

/// The workload; variables that the command line defines come before those that are set without being asked.
fn link(parsed: Vec<Parsed>, options: &Options, facts: &Facts, seeds: &Seeds) -> Result<Arc<dyn Workload>, Failure> {
    let mut variables: Vec<_> =
        options.variables.iter().map(|(name, value)| (name.clone(), Value::Text(value.as_bytes().into()))).collect();
    let automatic = [
        ("scale", i64::from(facts.scale)),
        ("default_seed", seeds.hashes as i64),
        ("random_seed", options.seed as i64),
    ];
    for (name, value) in automatic {
        if variables.iter().all(|(known, _)| known != name) {
            variables.push((name.to_owned(), Value::Int(value)));
        }
    }
    let environment = Environment {
        mode: options.mode,
        // Who wants to see each step wants to be told of those that need no server.
        timed: options.report_per_command || options.debug,
        variables,
        default_seed: seeds.hashes as i64,
    };
    let scripts = Scripts::link(parsed, &environment).map_err(Failure::error)?;
    Ok(Arc::new(Arc::new(scripts)))
}

/// The seed of hash functions, if the command line defines it.
fn seed_of_hashes(options: &Options) -> Option<u64> {
    let (_, value) = options.variables.iter().find(|(name, _)| name == "default_seed")?;
    Some(value.trim().parse::<i64>().unwrap_or(0) as u64)
}

fn make_plan(
    options: &Options,
    target: Arc<Target>,
    workload: Arc<dyn Workload>,
    seeds: Seeds,
    origin: Duration,
) -> Plan {
    let log = options.log.then(|| LogPlan {
        prefix: options.log_prefix.clone().unwrap_or_else(|| "pgbench_log".to_owned()),
        aggregate: options.aggregate_interval.map(|seconds| Duration::from_secs(seconds.into())),
        sampling_rate: options.sampling_rate.unwrap_or(1.0),
        throttled: options.interval.is_some(),
        limited: options.latency_limit.is_some(),
        retried: options.tries != Some(1),
        failures_detailed: options.failures_detailed,
        other_failures: options.continue_on_error,
        origin,
    });
    let script_options = ScriptOptions {
        timed_commands: options.report_per_command,
        latency_limit: options.latency_limit,
        tries: options.tries,
        continue_on_error: options.continue_on_error,
        log,
        notes: Notes { failures: options.verbose_errors, steps: options.debug },
    };
    let load = match options.pools {
        Some(pools) => Load::Pooled(pools, script_options),
        None => Load::Closed(ClosedPlan {
            limit: match options.duration {
                Some(seconds) => Limit::Time(Duration::from_secs(seconds.into())),
                None => Limit::Transactions(options.transactions.unwrap_or(DEFAULT_TRANSACTIONS).into()),
            },
            interval: options.interval,
            reconnect: options.reconnect,
            wait_for_server: options.wait_for_server,
            options: script_options,
        }),
    };
    Plan {
        start: options.start,
        jobs: options.jobs,
        mode: options.mode,
        warmup: options.warmup,
        exit_on_abort: options.exit_on_abort,
        ..Plan::new(target, workload, options.part, seeds, load)
    }
}

fn open_events(
    options: &Options,
    plan: &Plan,
    facts: &Facts,
    clock: Clock,
    session: &Session,
) -> Result<Option<EventWriter>, Failure> {
    let hello = Hello {
        frontend: "pgbench",
        plan,
        scale: Some(facts.scale),
        seed: options.seed,
        server: Some(&session.server.version),
    };
    options.events.as_ref().map(|events| events.open(clock, &hello).map_err(Failure::error)).transpose()
}

fn describe_run_error(error: RunError) -> Failure {
    match error {
        RunError::Connect { client, error } => {
            Failure::lines(&[&error.message, &format!("could not create connection for client {client}")])
        }
        RunError::Unready => Failure::error(error),
        RunError::Start(message) | RunError::System(message) => Failure::error(message),
    }
}
