//! Runs the command `run`: prints the opening lines, runs the load, and prints the report.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::init_timeout::InitTimeout;
use super::observer::{EXPIRED, LoadRun, RunObserver, warn};
use super::options::ReportOptions;
use super::status::{FAILED, OVERDUE};
use super::texts;
use crate::event::{Events, RunDescription, RunEvents};
use crate::frontend::common::messages::USER;
use crate::frontend::common::self_check;
use crate::frontend::sysbench::log::{Level, Log};
use drive::plan::Plan;
use drive::{Outcome, RunError};
use ground::interrupt;
use ground::output::{CouldNot, print_stdout};

/// Runs the load and prints its reports. Returns the exit status: 0, 1 after a failure, 2 after a forced shutdown or if
/// clients were not ready in time, 130 after an interrupt.
pub fn run_test<W: Write>(run: LoadRun<'_, W>) -> u8 {
    match interrupt::catch() {
        Ok(interrupt) => run_until(run, &interrupt),
        Err(error) => {
            run.log.text(Level::Fatal, error);
            FAILED
        }
    }
}

/// Runs the load as [`run_test`] does. The flag `interrupt` ends the run early.
fn run_until<W: Write>(run: LoadRun<'_, W>, interrupt: &Arc<AtomicBool>) -> u8 {
    let (plan, clock, test) = (run.plan, run.clock, run.test);
    let options = ReportOptions::read(run.settings);
    let mut events = match open_events(&run, &options, interrupt) {
        Ok(events) => events,
        Err(error) => {
            run.log.text(Level::Fatal, error);
            return FAILED;
        }
    };
    let print: fn(&str) = if options.events == Some(Events::Stdout) {
        run.log.stand_aside();
        USER.show
    } else {
        |text| print_stdout(text)
    };
    texts::opening(run.log, run.settings, &plan.part, &options, test.introduction());
    let reports = test.begin_reports(plan.clients, options.interval.is_some(), !options.checkpoints.is_empty());
    if let Err(fatal) = reports {
        run.log.fatal(&fatal.lines);
    }
    let init_timeout = InitTimeout::start(options.init_timeout, interrupt, print);
    let mut observer = RunObserver::new(run, &options, init_timeout, interrupt);
    let status = match events.run(plan, clock, &mut observer) {
        Ok(outcome) => finish(plan, &options, outcome, &mut events, &mut observer),
        Err(error) => {
            observer.run.log.text(Level::Fatal, describe(&error));
            let outcome = Outcome { aborted: observer.aborted, ..Outcome::default() };
            events.done(&outcome, FAILED, &[])
        }
    };
    // After a forced shutdown, sysbench does not call the test's function `done`.
    if status != OVERDUE && observer.has_started {
        if let Err(fatal) = test.done() {
            observer.run.log.fatal(&fatal.lines);
            return status.max(FAILED);
        }
    }
    status
}

/// Writes the last event, the report and the warnings of a run that is over. Returns the exit status.
fn finish<W: Write>(
    plan: &Plan,
    options: &ReportOptions,
    mut outcome: Outcome,
    events: &mut RunEvents<'_>,
    observer: &mut RunObserver<'_, W>,
) -> u8 {
    let ended = observer.status(&outcome);
    // A forced shutdown sets the same flag as an interrupt, so only the exit status tells whether there was an
    // interrupt.
    outcome.interrupted = ended == interrupt::STATUS;
    // A test without a server measures the machine on which the load generator runs, so a busy load generator is no
    // reason for a warning.
    let warnings = if plan.target.is_some() { self_check::warnings(&outcome, "--jobs") } else { Vec::new() };
    let status = events.done(&outcome, ended, &warnings);
    if !observer.has_started {
        return status;
    }
    let is_complete = outcome.aborted == 0;
    match ended {
        OVERDUE => observer.run.log.text(Level::Fatal, EXPIRED),
        _ => {
            if is_complete && !outcome.interrupted {
                log_limits(plan, &outcome, observer.run.log);
            }
            observer.run.log.text(Level::Info, "Done.\n");
        }
    }
    if is_complete {
        observer.report_whole(&outcome);
        if options.uses_additions {
            warnings.iter().map(|warning| &warning.message).for_each(warn);
        }
        if outcome.interrupted {
            warn(&format!(
                "the run was interrupted after {:.1} s; the above results cover only this time",
                outcome.elapsed_s
            ));
        }
    }
    status
}

/// Writes sysbench's line about why a client has ended, once for each client.
pub fn log_limits<W: Write>(plan: &Plan, outcome: &Outcome, log: &mut Log<W>) {
    let done = outcome.measure.counts.transactions() + outcome.drain.counts.transactions();
    let limits = plan.load.limits();
    let text = if limits.of_all_clients.is_some_and(|total| done >= total) {
        "Event limit exceeded, exiting..."
    } else if plan.duration().is_some_and(|time| outcome.elapsed_s >= time.as_secs_f64()) {
        "Time limit exceeded, exiting..."
    } else {
        return;
    };
    (0..plan.clients).for_each(|_| log.text(Level::Info, text));
}

fn describe(error: &RunError) -> String {
    match error {
        RunError::Unready => "Thread initialization failed!".to_owned(),
        error => error.to_string(),
    }
}

/// Opens the events and writes the first event, if the option `--jsonl` was given.
fn open_events<'a, W: Write + 'a>(
    run: &LoadRun<'_, W>,
    options: &ReportOptions,
    stop: &'a AtomicBool,
) -> Result<RunEvents<'a>, CouldNot> {
    let seed = run.settings.int("rand_seed") as u64;
    let hello = RunDescription::new("sysbench", run.plan, seed, FAILED);
    let log = run.log.clone();
    let complain = move |problem: &str| log.text(Level::Fatal, problem);
    RunEvents::open(options.events.as_ref(), run.clock, &hello, stop, complain)
}
