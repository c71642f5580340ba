//! The command `order-entry run`, which runs the load and reports the results.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::options::{ORDER_ENTRY, OrderEntryOptions};
use super::report::{Results, report};
use super::watch::OrderEntryObserver;
use crate::event::{RunDescription, RunEvents};
use crate::frontend::common::connection::{SETUP, connect};
use crate::frontend::common::end::status_of_run;
use crate::frontend::common::failure::Failure;
use crate::frontend::common::options::EngineShare;
use crate::frontend::common::self_check;
use drive::Outcome;
use drive::plan::Plan;
use ground::clock::Clock;
use ground::output::print_stdout;
use tables::order_entry::{Made, Space, find, make_procedures, space};
use tables::refuse_read_only;
use wire::session::Session;
use wire::target::Target;
use workload::order_entry::{OrderEntry, TransactionStyle};

/// Runs this engine's share of the load. Returns the exit status.
pub fn run(options: &OrderEntryOptions, share: &EngineShare) -> Result<u8, Failure> {
    let (clock, origin) = (Clock::start(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    let OrderEntryOptions { run, mix, .. } = options;
    let style = options.style();
    let (target, mut session, interrupt) = connect(&run.server, "pgtrial order-entry", SETUP)?;
    refuse_read_only(&mut session, "order entry writes to its tables")?;
    let made = find(&mut session, &target.params.dbname)?;
    if style == TransactionStyle::Procedures {
        make_procedures(&mut session)?;
    }
    let seeds = run.seeds(share, None);
    let of_seeds = (seeds.hashes, made.seed);
    let workload = OrderEntry::new(made.warehouses, share.part.whole, *mix, style, of_seeds, run.mode);
    let plan = run.plan(ORDER_ENTRY, Arc::clone(&target), Arc::new(workload), share, seeds, origin)?;
    let hello = RunDescription {
        scale: Some(made.warehouses),
        server: Some(&session.server.version),
        ..RunDescription::new("order-entry", &plan, run.seed.number, ORDER_ENTRY.failed)
    };
    let complain = |problem: &str| ORDER_ENTRY.error(problem);
    let mut events = RunEvents::open(run.output.events.as_ref(), clock, &hello, &interrupt, complain)?;
    drop(session);
    let mut watch = OrderEntryObserver::new(run.output.progress, &plan);
    let outcome = events.run(&plan, clock, &mut watch).map_err(Failure::error)?;
    Ok(finish(options, &plan, made, &outcome, &mut events, &target))
}

/// Writes the last event, the report, and the warnings. Returns the exit status.
fn finish(
    options: &OrderEntryOptions,
    plan: &Plan,
    made: Made,
    outcome: &Outcome,
    events: &mut RunEvents<'_>,
    target: &Arc<Target>,
) -> u8 {
    let warnings = self_check::warnings(outcome, "-j");
    let status = events.done(outcome, status_of_run(outcome), &warnings);
    if !options.run.output.has_only_events() {
        // After an interrupt the server is not asked, since an interrupted program must end soon even if the server
        // does not answer.
        let space = if outcome.interrupted { None } else { space_now(target) };
        let (mix, style) = (options.mix, options.style());
        print_stdout(report(&Results { plan, made, mix, style, outcome, space }));
    }
    if outcome.aborted > 0 {
        ORDER_ENTRY.error("clients were aborted; the results are incomplete");
    }
    ORDER_ENTRY.qualify_results(outcome, &warnings);
    status
}

/// Returns the disk space that the tables take now. Returns `None` if the server cannot be reached, so that the report
/// is printed nevertheless.
fn space_now(target: &Arc<Target>) -> Option<Space> {
    let mut session = Session::connect(target).ok()?;
    space(&mut session).ok()?
}
