//! The start of the load: when all clients are ready, every thread begins at the same moment, at once or at one that was
//! agreed upon with other engines.

use std::collections::VecDeque;
use std::io::{self, BufRead};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::host::Host;
use crate::inbox::Inbox;
use crate::outcome::{Began, Observer, RunError};
use crate::plan::Plan;
use crate::report::{PATIENCE, Report};
use crate::schedule::Schedule;
use crate::start_at::{Moment, StartAt, StartError};
use ground::clock::{Clock, Nanos};

/// So long before the start the threads get the schedule: enough time to reach all of them, and too short for the system's
/// clocks to drift apart.
const LEAD: Nanos = 20_000_000;

/// The longest line that can be a time.
const LONGEST_LINE: usize = 100;

/// The load is under way.
pub struct Started {
    pub schedule: Schedule,
    pub began: Began,
    /// What threads reported before the last one began.
    pub early: VecDeque<Report>,
}

/// Waits until all threads have connected; false if interrupted.
pub fn wait_for_connections<'run, H: Host<'run>>(
    inbox: &Inbox<'_, H>,
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

/// Starts all threads at the moment that the plan says; `None` if interrupted before.
pub fn start<'run, H: Host<'run>>(
    plan: &Plan,
    clock: Clock,
    inbox: &Inbox<'_, H>,
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
                StartAt::Told => read_start(inbox)?,
            };
            if let (Some(_), Some(late)) = (plan.slices, at.and_then(Moment::late)) {
                return Err(StartError::Past(late).into());
            }
            let Some(at) = at.filter(|at| wait_until_shortly_before(*at, clock, inbox)) else { return Ok(None) };
            Some(at)
        }
    };
    let start = planned.map_or_else(|| inbox.now(), |at| at.by(clock));
    let schedule = Schedule::new(start, plan.warmup, plan.duration(), plan.slices);
    for sender in starts {
        sender.send(schedule).map_err(|_| RunError::died())?;
    }
    let (last, early) = wait_for_begin(inbox, plan.jobs)?;
    let began = Began { at: clock.since_1970(last), planned: planned.map(Moment::since_1970) };
    Ok(Some(Started { schedule, began, early }))
}

/// When the last thread began, and what else was reported until then.
fn wait_for_begin<'run, H: Host<'run>>(
    inbox: &Inbox<'_, H>,
    jobs: usize,
) -> Result<(Nanos, VecDeque<Report>), RunError> {
    let (mut missing, mut last, mut early) = (jobs, 0, VecDeque::new());
    while missing > 0 {
        match inbox.next() {
            Some(Report::Began { at }) => {
                missing -= 1;
                last = last.max(at);
            }
            Some(report) => early.push_back(report),
            None => return Err(RunError::died()),
        }
    }
    Ok((last, early))
}

/// Sleeps until it is time to send the schedule; false if interrupted.
fn wait_until_shortly_before<'run, H: Host<'run>>(at: Moment, clock: Clock, inbox: &Inbox<'_, H>) -> bool {
    while !inbox.is_interrupted() {
        // Computed anew each time: the system's clock may be set or adjusted meanwhile.
        let left = at.by(clock).saturating_sub(clock.now());
        if left <= LEAD {
            return true;
        }
        thread::sleep(Duration::from_nanos(left - LEAD).min(PATIENCE));
    }
    false
}

/// Reads the time to start at, a line of standard input; `None` if interrupted.
fn read_start<'run, H: Host<'run>>(inbox: &Inbox<'_, H>) -> Result<Option<Moment>, StartError> {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") && line.len() <= LONGEST_LINE {
        if inbox.is_interrupted() {
            return Ok(None);
        }
        let stdin = io::stdin();
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&PATIENCE_OF_POLL)) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        let mut stdin = stdin.lock();
        let there = match stdin.fill_buf() {
            // An interrupt that came with it comes first.
            Ok([]) if inbox.is_interrupted() => return Ok(None),
            Ok([]) => return Err(StartError::Untold),
            Ok(bytes) => bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        line.extend_from_slice(there);
        let taken = there.len();
        stdin.consume(taken);
    }
    Moment::read(&String::from_utf8_lossy(&line)).map(Some)
}

const PATIENCE_OF_POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: PATIENCE.as_nanos() as i64 };
