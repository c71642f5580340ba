//! A benchmark run: from the options to the exit status.

use std::time::{SystemTime, UNIX_EPOCH};

use super::FAILED;
use super::histogram;
use super::messages;
use super::messages::Failure;
use super::options::fields::Options;
use super::options::pooling;
use super::plan::{DEFAULT_TRANSACTIONS, link, plan};
use super::progress::Progress;
use super::report::report;
use super::scripts;
use super::server::{Facts, Purpose, no_connection, print_version, session, survey, target, vacuum};
use crate::event::{RunDescription, RunEvents};
use crate::frontend::self_check;
use drive::plan::Plan;
use drive::{Outcome, RunError};
use ground::clock::Clock;
use ground::interrupt;
use ground::output::{OutputFile, print_stdout};
use wire::target::Target;

/// Exit status of a run in which clients were given up.
const ABORTED: u8 = 2;

/// What the first connection is for.
const PURPOSE: Purpose = "setup";

/// Runs the benchmark; the exit status is pgbench's.
pub fn run(mut options: Options) -> Result<u8, Failure> {
    let clock = Clock::start();
    let origin = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Errors of the scripts are reported before the server is asked for its scale.
    link(&options, &automatic(&options, 0), 0)?;
    if options.lists_commands {
        print_stdout(scripts::listing(&options)?);
        return Ok(0);
    }
    let target = target(&options.server, "pgbench", PURPOSE)?;
    let mut session = session(&target, PURPOSE)?;
    let interrupt = interrupt::catch()?;
    target.obey(&interrupt);
    if !options.output.has_only_events() {
        print_version(&session.server.version);
    }
    if options.script.notes.steps {
        messages::info(describe_run(&options, &target));
    }
    let facts = survey(&mut session, &options, &target)?;
    if let Some(pools) = &options.pools {
        pooling::check_limit(&mut session, pools)?;
    }
    let mut plan = plan(&options, target, &automatic(&options, facts.scale), origin)?;
    options.scripts = Vec::new();
    // Made before the run, so that a wrong name is refused in time.
    let histogram = options.output.histogram.as_deref().map(|path| OutputFile::create("histogram file ", path));
    let histogram = histogram.transpose()?;
    let hello = RunDescription {
        frontend: "pgbench",
        plan: &plan,
        scale: Some(facts.scale),
        seed: options.seed,
        server: Some(&session.server.version),
        replay: None,
        lost_status: FAILED,
    };
    let complain = |problem: &str| messages::error(problem);
    let mut events = RunEvents::open(options.output.events.as_ref(), clock, &hello, &interrupt, complain)?;
    if options.shard.is_first() {
        vacuum(&mut session, &options);
    }
    drop(session);

    let mut progress = Progress::new(&options.output, &plan, clock, origin);
    if plan.duration().is_some() && plan.slices.is_none() {
        plan.alarm = Some(interrupt::catch_alarm()?);
    }
    let outcome = events.run(&plan, clock, &mut progress).map_err(describe_run_error)?;
    Ok(finish(&options, &plan, &facts, &outcome, &mut events, histogram))
}

/// Variables that are set unless the command line defines them.
fn automatic(options: &Options, scale: u32) -> [(&'static str, i64); 2] {
    [("scale", scale.into()), ("random_seed", options.seed as i64)]
}

/// Writes everything that is known at the end; the exit status.
fn finish(
    options: &Options,
    plan: &Plan,
    facts: &Facts,
    outcome: &Outcome,
    events: &mut RunEvents<'_>,
    histogram: Option<OutputFile>,
) -> u8 {
    let to_stdout = !options.output.has_only_events();
    let mut status = exit_status(outcome);
    let text = || histogram::text(&outcome.measure);
    if let Some(Err(error)) = histogram.map(|mut file| file.write(|out| out.write_all(text().as_bytes()))) {
        messages::error(error);
        status = FAILED;
    }
    if let Some(error) = &outcome.log_error {
        messages::error(error);
        status = FAILED;
    }
    let warnings = if options.uses_additions { self_check::warnings(outcome, "-j") } else { Vec::new() };
    let status = events.done(outcome, status, &warnings);
    if let Some(thread) = outcome.ended_by_thread {
        messages::error(format!("Run was aborted due to an error in thread {thread}"));
        return status;
    }
    if to_stdout {
        print_stdout(report(options, plan, facts, outcome));
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
    let (clients, dbname) = (options.part.clients(), &target.params.dbname);
    format!("pghost: {host} pgport: {port} nclients: {clients} {word}: {number} dbName: {dbname}")
}

fn describe_run_error(error: RunError) -> Failure {
    match error {
        RunError::Connect { client, error } => no_connection(error.message, format_args!("client {client}")),
        RunError::Unready => Failure::error(error),
        RunError::Start(message) | RunError::System(message) => Failure::error(message),
    }
}
