//! Runs a benchmark with the options of the command line, and reports its results.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::histogram;
use super::options::table::PgbenchOptions;
use super::program::PGBENCH;
use super::progress::PgbenchObserver;
use super::report::report;
use super::scripts;
use super::server::{Facts, print_version, survey, vacuum};
use crate::event::{RunDescription, RunEvents};
use crate::frontend::common::connection::{SETUP, check_limit, connect, no_connection};
use crate::frontend::common::end::status_of_run;
use crate::frontend::common::failure::Failure;
use crate::frontend::common::options::EngineShare;
use crate::frontend::common::self_check;
use drive::plan::{ClosedPlan, Limit, LoadMode, Plan};
use drive::{Outcome, RunError};
use ground::clock::Clock;
use ground::interrupt;
use ground::output::{OutputFile, print_stdout};
use wire::target::Target;

/// Runs this engine's share of the benchmark. Returns pgbench's exit status.
pub fn run(mut options: PgbenchOptions, share: &EngineShare) -> Result<u8, Failure> {
    let clock = Clock::start();
    let origin = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // As in pgbench, errors in the scripts are reported before the first connection is made. The scale is not known
    // yet, so 0 stands in for it.
    options.sources.link(&options.run, &automatic(&options, 0), 0)?;
    if options.lists_commands {
        let seeds = options.run.seeds(share, options.sources.seed_of_hashes());
        let variables = automatic(&options, options.scale.unwrap_or(1));
        let linked = options.sources.link(&options.run, &variables, seeds.hashes)?;
        print_stdout(scripts::listing(&options.sources.scripts, &linked, &seeds.clients[0])?);
        return Ok(0);
    }
    let (target, mut session, interrupt) = connect(&options.run.server, PGBENCH.name, SETUP)?;
    if !options.run.output.has_only_events() {
        print_version(&session.server.version);
    }
    if options.run.script.notes.steps {
        PGBENCH.info(describe_run(&options, share, &target));
    }
    let facts = survey(&mut session, &options, &target)?;
    if let Some(pools) = &share.pools {
        check_limit(&mut session, pools)?;
    }
    let seeds = options.run.seeds(share, options.sources.seed_of_hashes());
    let workload = options.sources.link(&options.run, &automatic(&options, facts.scale), seeds.hashes)?;
    let mut plan = options.run.plan(PGBENCH, target, Arc::new(workload), share, seeds, origin)?;
    options.sources.scripts = Vec::new();
    // The file is created before the run, so that a wrong path is an error before the load begins.
    let histogram = options.run.output.histogram.as_deref().map(|path| OutputFile::create("histogram file ", path));
    let histogram = histogram.transpose()?;
    let hello = RunDescription {
        scale: Some(facts.scale),
        server: Some(&session.server.version),
        ..RunDescription::new(PGBENCH.name, &plan, options.run.seed.number, PGBENCH.failed)
    };
    let complain = |problem: &str| PGBENCH.error(problem);
    let mut events = RunEvents::open(options.run.output.events.as_ref(), clock, &hello, &interrupt, complain)?;
    if options.run.shard.is_first() {
        vacuum(&mut session, &options);
    }
    drop(session);

    let mut progress = PgbenchObserver::new(&options.run.output, &plan, clock, origin);
    let closed = if let LoadMode::Closed(closed, _) = &mut plan.load.mode { Some(closed) } else { None };
    if let (None, Some(ClosedPlan { limit: Limit::Time(_), alarm, .. })) = (plan.slices, closed) {
        *alarm = Some(interrupt::catch_alarm()?);
    }
    let outcome = events.run(&plan, clock, &mut progress).map_err(describe_run_error)?;
    Ok(finish(&options, &plan, &facts, &outcome, &mut events, histogram))
}

/// Returns the variables that pgbench sets for all scripts, `scale` and `random_seed`. The command line can replace
/// their values.
fn automatic(options: &PgbenchOptions, scale: u32) -> [(&'static str, i64); 2] {
    [("scale", scale.into()), ("random_seed", options.run.seed.number as i64)]
}

/// Writes the histogram file, the last event, the report, and the warnings. Returns the exit status.
fn finish(
    options: &PgbenchOptions,
    plan: &Plan,
    facts: &Facts,
    outcome: &Outcome,
    events: &mut RunEvents<'_>,
    histogram: Option<OutputFile>,
) -> u8 {
    let to_stdout = !options.run.output.has_only_events();
    let mut status = status_of_run(outcome);
    let text = || histogram::text(&outcome.measure);
    if let Some(Err(error)) = histogram.map(|mut file| file.write(|out| out.write_all(text().as_bytes()))) {
        PGBENCH.error(error);
        status = PGBENCH.failed;
    }
    if let Some(error) = &outcome.log_error {
        PGBENCH.error(error);
        status = PGBENCH.failed;
    }
    let warnings = if options.uses_additions { self_check::warnings(outcome, "-j") } else { Vec::new() };
    let status = events.done(outcome, status, &warnings);
    if let Some(thread) = outcome.ended_by_thread {
        PGBENCH.error(format!("Run was aborted due to an error in thread {thread}"));
        return status;
    }
    if to_stdout {
        print_stdout(report(&options.run.output, plan, facts, outcome));
    }
    for warning in &warnings {
        PGBENCH.warning(&warning.message);
    }
    if outcome.aborted > 0 {
        PGBENCH.error("Run was aborted; the above results are incomplete.");
    }
    if outcome.interrupted && to_stdout {
        let seconds = outcome.elapsed_s;
        PGBENCH.error(format!("the run was interrupted after {seconds:.1} s; the above results cover only this time"));
    }
    status
}

/// Returns the line with the server and the size of the run that `pgbench --debug` prints before the run.
fn describe_run(options: &PgbenchOptions, share: &EngineShare, target: &Target) -> String {
    let (host, port) = target
        .params
        .endpoints
        .first()
        .map_or_else(Default::default, |endpoint| (endpoint.host_name.clone(), endpoint.port));
    let (word, number) = match options.run.limit() {
        Limit::Time(time) => ("duration", time.as_secs()),
        Limit::Transactions(each) => ("nxacts", each),
    };
    let (clients, dbname) = (share.part.clients(), &target.params.dbname);
    format!("pghost: {host} pgport: {port} nclients: {clients} {word}: {number} dbName: {dbname}")
}

fn describe_run_error(error: RunError) -> Failure {
    match error {
        RunError::Connect { client, error } => no_connection(error.message, format_args!("client {client}")),
        RunError::Unready => Failure::error(error),
        RunError::Start(error) => Failure::error(error),
        RunError::System(message) => Failure::error(message),
    }
}
