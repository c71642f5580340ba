//! The start of the load. When all clients are ready, all threads begin at the same moment: at once, or at a time on
//! which several engines have agreed.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::time::Duration;

use crate::inbox::Inbox;
use crate::outcome::{Began, Observer, RunError};
use crate::plan::Plan;
use crate::report::{INTERRUPT_CHECK, Report};
use crate::runtime::Runtime;
use crate::schedule::Schedule;
use crate::start_at::{Moment, StartAt, StartError};
use ground::clock::Nanos;

/// The time before the start at which the threads get the schedule, in nanoseconds. It is long enough to reach all
/// threads, and too short for the clocks of the machine to drift apart.
const LEAD: Nanos = 20_000_000;

/// The longest line of standard input that can be a start time.
const LONGEST_LINE: usize = 100;

/// The facts about a load that has started.
pub struct Started {
    pub schedule: Schedule,
    pub began: Began,
    /// The reports that threads sent before the last thread had begun.
    pub early: VecDeque<Report>,
}

/// Waits until the clients of all threads have connected. Returns false if an interrupt ends the wait.
pub fn wait_for_connections<'run, R: Runtime<'run>>(
    inbox: &Inbox<'_, R>,
    jobs: usize,
    observer: &mut dyn Observer,
) -> Result<bool, RunError> {
    let (mut missing, mut aborted) = (jobs, false);
    while missing > 0 {
        match inbox.next() {
            Some(Report::Connected) => missing -= 1,
            Some(Report::Note(text)) => observer.note(&text),
            Some(Report::Aborted { abortion, .. }) => {
                observer.aborted(&abortion);
                aborted = true;
            }
            Some(Report::CannotConnect { client, error }) => return Err(RunError::Connect { client, error }),
            Some(Report::Failed { message }) => return Err(RunError::System(message)),
            Some(Report::Began { .. } | Report::Tick { .. } | Report::Finished { .. }) | None => {
                return Err(RunError::died());
            }
        }
        if inbox.is_interrupted() {
            return Ok(false);
        }
    }
    if aborted { Err(RunError::Unready) } else { Ok(true) }
}

/// Starts all threads at the moment that the plan names. Returns `None` if an interrupt came before.
pub fn start<'run, R: Runtime<'run>>(
    plan: &Plan,
    inbox: &Inbox<'_, R>,
    starts: &[Sender<Schedule>],
    observer: &mut dyn Observer,
    connect_s: f64,
) -> Result<Option<Started>, RunError> {
    let planned = match &plan.start {
        None => None,
        Some(start) => {
            observer.ready(plan.clients, connect_s);
            let at = match start {
                StartAt::At(at) => Some(*at),
                StartAt::StandardInput => read_start(inbox)?,
            };
            let late = at.and_then(|at| at.late(&inbox.runtime.clocks()));
            if let (Some(_), Some(late)) = (plan.slices, late) {
                return Err(StartError::Past(late).into());
            }
            let Some(at) = at.filter(|at| wait_until_shortly_before(*at, inbox)) else { return Ok(None) };
            Some(at)
        }
    };
    let start = planned.map_or_else(|| inbox.now(), |at| at.by(&inbox.runtime.clocks()));
    let spent = if plan.time_includes_connecting { Duration::from_secs_f64(connect_s) } else { Duration::ZERO };
    let left = plan.duration().map(|time| time.saturating_sub(spent));
    let schedule = Schedule::new(start, plan.warmup, left, plan.slices);
    for sender in starts {
        sender.send(schedule).map_err(|_| RunError::died())?;
    }
    let (last, early) = wait_for_begin(inbox, plan.jobs)?;
    let clocks = inbox.runtime.clocks();
    let began = Began { at: clocks.since_1970(last), planned: planned.map(|at| at.since_1970(&clocks)) };
    Ok(Some(Started { schedule, began, early }))
}

/// Waits until the last thread has begun. Returns the time at which it began, and the other reports that were received
/// until then.
fn wait_for_begin<'run, R: Runtime<'run>>(
    inbox: &Inbox<'_, R>,
    jobs: usize,
) -> Result<(Nanos, VecDeque<Report>), RunError> {
    let (mut missing, mut last, mut early) = (jobs, 0, VecDeque::new());
    while missing > 0 {
        match inbox.next() {
            Some(Report::Began { at }) => {
                missing -= 1;
                last = last.max(at);
            }
            // A thread that reports a failure before it has begun never begins.
            Some(Report::Failed { message }) => return Err(RunError::System(message)),
            Some(report) => early.push_back(report),
            None => return Err(RunError::died()),
        }
    }
    Ok((last, early))
}

/// Sleeps until it is time to send the schedule to the threads. Returns false if an interrupt ends the wait.
fn wait_until_shortly_before<'run, R: Runtime<'run>>(at: Moment, inbox: &Inbox<'_, R>) -> bool {
    while !inbox.is_interrupted() {
        // Computed in each round of the loop, since the wall clock may be set or adjusted meanwhile.
        let clocks = inbox.runtime.clocks();
        let left = at.by(&clocks) - clocks.run;
        if left <= LEAD {
            return true;
        }
        inbox.runtime.pause(Duration::from_nanos(left - LEAD).min(INTERRUPT_CHECK));
    }
    false
}

/// Reads the start time from a line of standard input. Returns `None` if an interrupt ends the wait.
fn read_start<'run, R: Runtime<'run>>(inbox: &Inbox<'_, R>) -> Result<Option<Moment>, StartError> {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") && line.len() <= LONGEST_LINE {
        let part = inbox.runtime.read_line(INTERRUPT_CHECK)?;
        // If an interrupt arrived together with the line, the interrupt wins.
        if inbox.is_interrupted() {
            return Ok(None);
        }
        match part {
            Some(part) if part.is_empty() => return Err(StartError::InputEnded),
            Some(part) => line.extend_from_slice(&part),
            None => {}
        }
    }
    Moment::read(&String::from_utf8_lossy(&line), &inbox.runtime.clocks()).map(Some)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::report::{Shared, channel};
    use crate::runtime::tests::Alone;

    #[test]
    fn a_thread_that_fails_before_it_begins_is_not_waited_for() {
        let (runtime, shared, interrupt) = (Alone::default(), Shared::default(), AtomicBool::new(false));
        let (reporter, reports) = channel(2);
        let inbox = Inbox::new(&runtime, reports, &interrupt, None, &shared, 2);
        reporter.report(Report::Began { at: 7 });
        reporter.report(Report::Failed { message: "it cannot go on".to_owned() });
        drop(reporter);
        let failed = wait_for_begin(&inbox, 2).err().map(|error| error.to_string());
        assert_eq!(failed.as_deref(), Some("it cannot go on"));
    }
}
