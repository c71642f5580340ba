//! Runs a benchmark with the options of the command line, and reports its results.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::histogram;
use super::options::arguments::Benchmark;
use super::program::PGBENCH;
use super::progress::PgbenchObserver;
use super::report::report;
use super::scripts;
use super::server::{Facts, print_version, survey, vacuum};
use crate::event::{RunDescription, RunEvents};
use crate::frontend::common::connection::{SETUP, check_limit, no_connection, session, target};
use crate::frontend::common::failure::{ABORTED, Failure};
use crate::frontend::common::self_check;
use drive::plan::Plan;
use drive::{ClosedPlan, Limit, Outcome, RunError};
use ground::clock::Clock;
use ground::interrupt;
use ground::output::{OutputFile, print_stdout};
use wire::target::Target;

/// Runs the benchmark. Returns pgbench's exit status.
pub fn run(mut benchmark: Benchmark) -> Result<u8, Failure> {
    let clock = Clock::start();
    let origin = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // As in pgbench, errors in the scripts are reported before the first connection is made. The scale is not known
    // yet, so 0 stands in for it.
    benchmark.sources.link(&benchmark.run, &automatic(&benchmark, 0), 0)?;
    if benchmark.lists_commands {
        let seeds = benchmark.run.seeds(benchmark.sources.seed_of_hashes());
        let variables = automatic(&benchmark, benchmark.scale.unwrap_or(1));
        let linked = benchmark.sources.link(&benchmark.run, &variables, seeds.hashes)?;
        print_stdout(scripts::listing(&benchmark.sources.scripts, &linked, &seeds.clients[0])?);
        return Ok(0);
    }
    let target = target(&benchmark.run.server, PGBENCH.name, SETUP)?;
    let mut session = session(&target, SETUP)?;
    let interrupt = interrupt::catch()?;
    target.obey(&interrupt);
    if !benchmark.run.output.has_only_events() {
        print_version(&session.server.version);
    }
    if benchmark.run.load.settings.script.notes.steps {
        PGBENCH.info(describe_run(&benchmark, &target));
    }
    let facts = survey(&mut session, &benchmark, &target)?;
    if let Some(pools) = &benchmark.run.load.share.pools {
        check_limit(&mut session, pools)?;
    }
    let seeds = benchmark.run.seeds(benchmark.sources.seed_of_hashes());
    let workload = benchmark.sources.link(&benchmark.run, &automatic(&benchmark, facts.scale), seeds.hashes)?;
    let mut plan = benchmark.run.plan(PGBENCH, target, Arc::new(workload), seeds, origin)?;
    benchmark.sources.scripts = Vec::new();
    // The file is created before the run, so that a wrong path is an error before the load begins.
    let histogram = benchmark.run.output.histogram.as_deref().map(|path| OutputFile::create("histogram file ", path));
    let histogram = histogram.transpose()?;
    let hello = RunDescription {
        frontend: PGBENCH.name,
        plan: &plan,
        scale: Some(facts.scale),
        seed: benchmark.run.load.seed,
        server: Some(&session.server.version),
        replay: None,
        lost_status: PGBENCH.failed,
    };
    let complain = |problem: &str| PGBENCH.error(problem);
    let mut events = RunEvents::open(benchmark.run.output.events.as_ref(), clock, &hello, &interrupt, complain)?;
    if benchmark.run.load.shard.is_first() {
        vacuum(&mut session, &benchmark);
    }
    drop(session);

    let mut progress = PgbenchObserver::new(&benchmark.run.output, &plan, clock, origin);
    if let (None, Some(ClosedPlan { limit: Limit::Time(_), alarm, .. })) = (plan.slices, plan.load.of_mut()) {
        *alarm = Some(interrupt::catch_alarm()?);
    }
    let outcome = events.run(&plan, clock, &mut progress).map_err(describe_run_error)?;
    Ok(finish(&benchmark, &plan, &facts, &outcome, &mut events, histogram))
}

/// Returns the variables that pgbench sets for all scripts, `scale` and `random_seed`. The command line can replace
/// their values.
fn automatic(benchmark: &Benchmark, scale: u32) -> [(&'static str, i64); 2] {
    [("scale", scale.into()), ("random_seed", benchmark.run.load.seed as i64)]
}

/// Writes the histogram file, the last event, the report, and the warnings. Returns the exit status.
fn finish(
    benchmark: &Benchmark,
    plan: &Plan,
    facts: &Facts,
    outcome: &Outcome,
    events: &mut RunEvents<'_>,
    histogram: Option<OutputFile>,
) -> u8 {
    let to_stdout = !benchmark.run.output.has_only_events();
    let mut status = exit_status(outcome);
    let text = || histogram::text(&outcome.measure);
    if let Some(Err(error)) = histogram.map(|mut file| file.write(|out| out.write_all(text().as_bytes()))) {
        PGBENCH.error(error);
        status = PGBENCH.failed;
    }
    if let Some(error) = &outcome.log_error {
        PGBENCH.error(error);
        status = PGBENCH.failed;
    }
    let warnings = if benchmark.uses_additions { self_check::warnings(outcome, "-j") } else { Vec::new() };
    let status = events.done(outcome, status, &warnings);
    if let Some(thread) = outcome.ended_by_thread {
        PGBENCH.error(format!("Run was aborted due to an error in thread {thread}"));
        return status;
    }
    if to_stdout {
        print_stdout(report(&benchmark.run.output, plan, facts, outcome));
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

fn exit_status(outcome: &Outcome) -> u8 {
    match (outcome.interrupted, outcome.aborted) {
        (true, _) => interrupt::STATUS,
        (false, 0) => 0,
        (false, _) => ABORTED,
    }
}

/// Returns the line with the server and the size of the run that `pgbench --debug` prints before the run.
fn describe_run(benchmark: &Benchmark, target: &Target) -> String {
    let (host, port) = target
        .params
        .endpoints
        .first()
        .map_or_else(Default::default, |endpoint| (endpoint.host_name.clone(), endpoint.port));
    let (word, number) = match benchmark.run.load.limit {
        Limit::Time(time) => ("duration", time.as_secs()),
        Limit::Transactions(each) => ("nxacts", each),
    };
    let (clients, dbname) = (benchmark.run.load.share.part.clients(), &target.params.dbname);
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
