//! The command `order-entry run`, which runs the load and reports the results.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::options::{ORDER_ENTRY, OrderEntryRun};
use super::report::{Results, report};
use super::watch::OrderEntryObserver;
use crate::event::{RunDescription, RunEvents};
use crate::frontend::common::connection::{SETUP, session, target};
use crate::frontend::common::failure::{ABORTED, Failure};
use crate::frontend::common::self_check;
use drive::Outcome;
use drive::plan::Plan;
use ground::clock::Clock;
use ground::interrupt;
use ground::output::print_stdout;
use tables::order_entry::{Made, Space, find, make_procedures, space};
use tables::refuse_read_only;
use wire::session::Session;
use wire::target::Target;
use workload::order_entry::{OrderEntry, TransactionStyle};

/// Runs the load. Returns the exit status.
pub fn run(command: &OrderEntryRun) -> Result<u8, Failure> {
    let (clock, origin) = (Clock::start(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    let OrderEntryRun { run, mix, style } = command;
    let target = target(&run.server, "pgtrial order-entry", SETUP)?;
    let mut session = session(&target, SETUP)?;
    let interrupt = interrupt::catch()?;
    target.obey(&interrupt);
    refuse_read_only(&mut session, "order entry writes to its tables")?;
    let made = find(&mut session, &target.params.dbname)?;
    if *style == TransactionStyle::Procedures {
        make_procedures(&mut session)?;
    }
    let seeds = run.seeds(None);
    let of_seeds = (seeds.hashes, made.seed);
    let (whole, mode) = (run.load.share.part.whole, run.load.settings.mode);
    let workload = OrderEntry::new(made.warehouses, whole, *mix, *style, of_seeds, mode);
    let plan = run.plan(ORDER_ENTRY, Arc::clone(&target), Arc::new(workload), seeds, origin)?;
    let hello = RunDescription {
        frontend: "order-entry",
        plan: &plan,
        scale: Some(made.warehouses),
        seed: run.load.seed,
        server: Some(&session.server.version),
        replay: None,
        lost_status: ORDER_ENTRY.failed,
    };
    let complain = |problem: &str| ORDER_ENTRY.error(problem);
    let mut events = RunEvents::open(run.output.events.as_ref(), clock, &hello, &interrupt, complain)?;
    drop(session);
    let mut watch = OrderEntryObserver::new(run.output.progress, &plan);
    let outcome = events.run(&plan, clock, &mut watch).map_err(Failure::error)?;
    Ok(finish(command, &plan, made, &outcome, &mut events, &target))
}

/// Writes the last event, the report, and the warnings. Returns the exit status.
fn finish(
    command: &OrderEntryRun,
    plan: &Plan,
    made: Made,
    outcome: &Outcome,
    events: &mut RunEvents<'_>,
    target: &Arc<Target>,
) -> u8 {
    let warnings = self_check::warnings(outcome, "-j");
    let status = events.done(outcome, exit_status(outcome), &warnings);
    if !command.run.output.has_only_events() {
        // After an interrupt the server is not asked, since an interrupted program must end soon even if the server
        // does not answer.
        let space = if outcome.interrupted { None } else { space_now(target) };
        let (mix, style) = (command.mix, command.style);
        print_stdout(report(&Results { plan, made, mix, style, outcome, space }));
    }
    warnings.iter().for_each(|warning| ORDER_ENTRY.warning(&warning.message));
    if outcome.aborted > 0 {
        ORDER_ENTRY.error("clients were aborted; the results are incomplete");
    }
    if outcome.interrupted {
        ORDER_ENTRY.interrupted(outcome.elapsed_s);
    }
    status
}

/// Returns the disk space that the tables take now. Returns `None` if the server cannot be reached, so that the report
/// is printed nevertheless.
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
