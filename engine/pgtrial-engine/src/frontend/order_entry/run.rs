//! `run`: from the options to the exit status.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::messages::{report_error, warn};
use super::options::OrderEntryOptions;
use super::report::{Results, report};
use super::watch::Watch;
use crate::event::{RunDescription, RunEvents};
use crate::frontend::pgbench::messages::Failure;
use crate::frontend::pgbench::plan::{plan_of, seeds};
use crate::frontend::pgbench::server::{session, target};
use crate::frontend::self_check;
use drive::Outcome;
use drive::plan::Plan;
use ground::clock::Clock;
use ground::interrupt;
use ground::options::ERROR;
use ground::output::{print_stderr, print_stdout};
use tables::order_entry::{Made, NAME, Space, find, make_procedures, space};
use tables::refuse_read_only;
use wire::session::Session;
use wire::target::Target;
use workload::order_entry::OrderEntry;

/// Exit status of a run in which clients were given up.
const ABORTED: u8 = 2;

/// What the first connection is for.
const PURPOSE: &str = "setup";

/// Runs the load; the exit status.
pub fn run(options: &OrderEntryOptions) -> Result<u8, Failure> {
    let (clock, origin) = (Clock::start(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    let load = &options.load;
    let target = target(&load.server, "pgtrial order-entry", PURPOSE)?;
    let mut session = session(&target, PURPOSE)?;
    let interrupt = interrupt::catch()?;
    target.obey(&interrupt);
    refuse_read_only(&mut session, "order entry writes to its tables")?;
    let made = find(&mut session, &target.params.dbname)?;
    if options.procedures {
        make_procedures(&mut session)?;
    }
    let seeds = seeds(load);
    let of_seeds = (seeds.hashes, made.seed);
    let workload = OrderEntry::new(made.warehouses, load.part.whole, options.mix, options.style(), of_seeds, load.mode);
    let plan = plan_of(load, NAME, Arc::clone(&target), Arc::new(workload), seeds, origin);
    let hello = RunDescription {
        frontend: "order-entry",
        plan: &plan,
        scale: Some(made.warehouses),
        seed: load.seed,
        server: Some(&session.server.version),
        replay: None,
        lost_status: ERROR,
    };
    let mut events = RunEvents::open(load.output.events.as_ref(), clock, &hello, &interrupt, report_error)?;
    drop(session);
    let mut watch = Watch::new(load.output.progress, &plan);
    let outcome = events.run(&plan, clock, &mut watch).map_err(Failure::error)?;
    Ok(finish(options, &plan, made, &outcome, &mut events, &target))
}

/// Writes everything that is known at the end; the exit status.
fn finish(
    options: &OrderEntryOptions,
    plan: &Plan,
    made: Made,
    outcome: &Outcome,
    events: &mut RunEvents<'_>,
    target: &Arc<Target>,
) -> u8 {
    let warnings = self_check::warnings(outcome, "-j");
    let status = events.done(outcome, exit_status(outcome), &warnings);
    if !options.load.output.has_only_events() {
        // A server that does not answer would keep an interrupted program from ending.
        let space = if outcome.interrupted { None } else { space_now(target) };
        let (mix, style) = (options.mix, options.style());
        print_stdout(report(&Results { plan, made, mix, style, outcome, space }));
    }
    warnings.iter().for_each(|warning| warn(&warning.message));
    if outcome.aborted > 0 {
        report_error("clients were given up; the results are incomplete");
    }
    if outcome.interrupted {
        let seconds = outcome.elapsed_s;
        print_stderr(format_args!("{NAME}: interrupted after {seconds:.1} s; the results are of that time\n"));
    }
    status
}

/// What the tables take now. A server that is gone is no reason to lose the report.
fn space_now(target: &Arc<Target>) -> Option<Space> {
    let mut session = Session::connect(target).ok()?;
    space(&mut session).ok()?
}

fn exit_status(outcome: &Outcome) -> u8 {
    match (outcome.interrupted, outcome.aborted) {
        (true, _) => interrupt::STATUS,
        (false, 0) => 0,
        (false, _) => ABORTED,
    }
}
