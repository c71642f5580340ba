//! What sysbench's `run` prints, from the options of the run to the last line of its report, and its exit status.

mod choice;
mod cumulative;
mod histogram;
mod intermediate;
mod opening;
mod statistics;
#[cfg(test)]
mod tests;
mod watchdog;
mod watcher;

use std::fmt::Display;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::log::{Level, Log, print, print_aside};
use crate::event::{EventWriter, Hello};
use crate::frontend::events::Events;
use crate::frontend::self_check;
use choice::Choice;
use drive;
use drive::plan::{Load, Plan};
use drive::{Outcome, RunError};
use ground::clock::Clock;
use ground::interrupt;
use watchdog::Watchdog;
use watcher::Watcher;
use workload::Fatal;
use workload::settings::Settings;
use workload::statistics::Statistics;

/// Exit status of a run that failed, or whose events could not be written.
const FAILED: u8 = 1;

/// Exit status of a run that took too long to begin or to end.
const OVERDUE: u8 = 2;

/// What a test may do about the reports.
pub trait Hooks {
    /// Reports on an interval in the test's own way; false if it has none.
    fn intermediate(&self, _statistics: &Statistics) -> Result<bool, Fatal> {
        Ok(false)
    }

    /// The same for the report on the whole, or up to a checkpoint.
    fn cumulative(&self, _statistics: &Statistics) -> Result<bool, Fatal> {
        Ok(false)
    }

    /// Whether the test has used the database, so that there are queries to report on.
    fn uses_sql(&self) -> bool {
        true
    }

    /// There will be no further interval.
    fn end_intervals(&self) {}

    /// Ends the test, when everything has been said.
    fn done(&self) -> Result<(), Fatal> {
        Ok(())
    }
}

/// A load and whatever its reports need to know.
pub struct Run<'a, W: Write = std::io::Stdout> {
    pub settings: &'a Settings,
    pub plan: &'a Plan,
    pub clock: Clock,
    pub test: &'a dyn Hooks,
    pub log: &'a mut Log<W>,
}

/// Runs the load; the exit status: 0, 1 for a failure, 2 for a forced shutdown or clients that were not ready in time, 130
/// for an interrupt.
pub fn run_test<W: Write>(run: Run<'_, W>) -> u8 {
    match interrupt::catch() {
        Ok(interrupt) => run_until(run, &interrupt),
        Err(error) => {
            run.log.text(Level::Fatal, error);
            FAILED
        }
    }
}

/// The same with a flag that ends the run.
fn run_until<W: Write>(run: Run<'_, W>, interrupt: &Arc<AtomicBool>) -> u8 {
    let (plan, clock, test) = (run.plan, run.clock, run.test);
    let choice = Choice::read(run.settings);
    let events = match open_events(&run, &choice) {
        Ok(events) => events,
        Err(error) => {
            run.log.text(Level::Fatal, error);
            return FAILED;
        }
    };
    let shout = if choice.events == Some(Events::Stdout) {
        run.log.stand_aside();
        print_aside
    } else {
        print
    };
    opening::describe(run.log, run.settings, &plan.part, &choice);
    let watchdog = Watchdog::set(choice.init_timeout, interrupt, shout);
    let mut watcher = Watcher::new(run, &choice, events, watchdog, interrupt);
    let status = match drive::run(plan, clock, interrupt, &mut watcher) {
        Ok(outcome) => finish(plan, &choice, outcome, &mut watcher),
        Err(error) => {
            watcher.log.text(Level::Fatal, describe(&error));
            let outcome = Outcome { aborted: watcher.aborted(), ..Outcome::default() };
            watcher.end(&outcome, FAILED, &[])
        }
    };
    // What is forced to its end has no time for the test's own.
    if status != OVERDUE && watcher.has_started() {
        if let Err(fatal) = test.done() {
            watcher.tell_fatal(&fatal);
            return status.max(FAILED);
        }
    }
    status
}

/// Reports on a run that is over; the exit status.
fn finish<W: Write>(plan: &Plan, choice: &Choice, mut outcome: Outcome, watcher: &mut Watcher<'_, W>) -> u8 {
    let ended = watcher.status(&outcome);
    // We ourselves may have ended the run as an interrupt does.
    outcome.interrupted = ended == interrupt::STATUS;
    let warnings = self_check::warnings(&outcome, "--jobs");
    let status = watcher.end(&outcome, ended, &warnings);
    if !watcher.has_started() {
        return status;
    }
    let is_complete = outcome.aborted == 0;
    match ended {
        OVERDUE => watcher.log.text(Level::Fatal, "The --max-time limit has expired, forcing shutdown..."),
        _ => {
            if is_complete && !outcome.interrupted {
                tell_limits(plan, &outcome, watcher.log);
            }
            watcher.log.text(Level::Info, "Done.\n");
        }
    }
    if is_complete {
        watcher.report_whole(&outcome);
        if choice.uses_additions {
            warnings.iter().for_each(|warning| tell(&warning.message));
        }
        if outcome.interrupted {
            let seconds = outcome.elapsed_s;
            tell(format_args!("interrupted after {seconds:.1} s; the above results are of that time"));
        }
    }
    status
}

/// Says of each client why it has ended.
fn tell_limits<W: Write>(plan: &Plan, outcome: &Outcome, log: &mut Log<W>) {
    let done = outcome.measure.counts.transactions() + outcome.drain.counts.transactions();
    let Load::Staged(staged) = &plan.load else { return };
    let text = if staged.events.is_some_and(|total| done >= total) {
        "Event limit exceeded, exiting..."
    } else if staged.time.is_some_and(|time| outcome.elapsed_s >= time.as_secs_f64()) {
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

/// What sysbench does not say goes to standard error.
fn tell(text: impl Display) {
    print_aside(&format!("sysbench: {text}\n"));
}

/// The file of events, if there is to be one; the error is a whole sentence.
fn open_events<W: Write>(run: &Run<'_, W>, choice: &Choice) -> Result<Option<EventWriter>, String> {
    let seed = run.settings.int("rand_seed") as u64;
    let hello = Hello { frontend: "sysbench", plan: run.plan, scale: None, seed, server: None };
    choice.events.as_ref().map(|events| events.open(run.clock, &hello)).transpose()
}
