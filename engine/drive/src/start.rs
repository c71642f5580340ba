//! The start of the load: once all clients are ready every thread begins at the same moment, at once or at one that has
//! been agreed upon with other engines.

use std::collections::VecDeque;
use std::io::{self, BufRead};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::{Abortion, Inbox, Report, Run, RunError, threads};
use crate::plan::{StartAt, instant};
use crate::schedule::Schedule;
use ground::clock::Nanos;

/// How soon an interrupt is noticed.
const PATIENCE: Duration = Duration::from_millis(50);

/// So long before the start the threads are told of it: time enough for all to hear of it, and too short for the
/// system's clocks to drift apart.
const LEAD: Nanos = 20_000_000;

/// The longest line that can be a time.
const LONGEST_LINE: usize = 100;

/// When the load began, since 1970 by this machine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Began {
    /// When the last thread did.
    pub at: Duration,
    /// When all were to.
    pub planned: Option<Duration>,
}

/// The load is under way.
pub(super) struct Started {
    pub schedule: Schedule,
    pub began: Began,
    /// What threads had to report before the last one began.
    pub early: VecDeque<Report>,
}

impl Run<'_> {
    /// Waits until all threads have connected; false if interrupted.
    pub(super) fn wait_for_connections(&mut self, inbox: &Inbox) -> Result<bool, RunError> {
        let (mut missing, mut aborted) = (self.plan.jobs, false);
        while missing > 0 {
            match self.next_report(inbox) {
                Some(Report::Connected) => missing -= 1,
                Some(Report::Note(text)) => self.observer.note(&text),
                Some(Report::Aborted { client, script, command, cause, .. }) => {
                    self.observer.aborted(&Abortion { client, script, command, cause });
                    aborted = true;
                }
                Some(Report::CannotConnect { client, error }) => return Err(RunError::Connect { client, error }),
                Some(Report::Failed { message }) => return Err(RunError::System(message)),
                _ => return Err(RunError::died()),
            }
            if self.is_interrupted() {
                return Ok(false);
            }
        }
        if aborted { Err(RunError::Unready) } else { Ok(true) }
    }

    /// Has all threads begin at the moment that the plan says; `None` if interrupted before.
    pub(super) fn start(
        &mut self,
        inbox: &Inbox,
        starts: &[Sender<Schedule>],
        connect_s: f64,
    ) -> Result<Option<Started>, RunError> {
        let planned = match self.plan.start {
            None => None,
            Some(start) => {
                self.observer.ready(self.plan.clients, connect_s);
                let at = match start {
                    StartAt::Instant(at) => Some(at),
                    StartAt::Told => self.be_told().map_err(RunError::Start)?,
                };
                let Some(at) = at.filter(|at| self.wait_until_shortly_before(*at)) else { return Ok(None) };
                Some(at)
            }
        };
        let start = planned.map_or_else(|| self.clock.now(), |at| self.clock.at_since_1970(at));
        let schedule = Schedule::new(start, self.plan.warmup, self.plan.duration());
        for sender in starts {
            sender.send(schedule).map_err(|_| RunError::died())?;
        }
        let (last, early) = self.wait_for_begin(inbox)?;
        let began = Began { at: self.clock.since_1970(last), planned };
        Ok(Some(Started { schedule, began, early }))
    }

    /// When the last thread began, and what else was reported until then.
    fn wait_for_begin(&mut self, inbox: &Inbox) -> Result<(Nanos, VecDeque<Report>), RunError> {
        let (mut missing, mut last, mut early) = (self.plan.jobs, 0, VecDeque::new());
        while missing > 0 {
            match self.next_report(inbox) {
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

    /// Sleeps until it is time to tell the threads; false if interrupted.
    fn wait_until_shortly_before(&self, at: Duration) -> bool {
        loop {
            if self.is_interrupted() {
                return false;
            }
            // Asked anew each time: the clock may be set or adjusted meanwhile.
            let left = self.clock.at_since_1970(at).saturating_sub(self.clock.now());
            if left <= LEAD {
                return true;
            }
            threads::sleep(Duration::from_nanos(left - LEAD).min(PATIENCE));
        }
    }

    /// Reads the time to start at, a line of standard input; `None` if interrupted. The error is a sentence.
    fn be_told(&self) -> Result<Option<Duration>, String> {
        let mut line = Vec::new();
        let failed = |error: io::Error| format!("could not read the time to start at from standard input: {error}");
        while !line.ends_with(b"\n") && line.len() <= LONGEST_LINE {
            if self.is_interrupted() {
                return Ok(None);
            }
            let stdin = io::stdin();
            match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&PATIENCE_OF_POLL)) {
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(failed(error.into())),
            }
            let mut stdin = stdin.lock();
            let there = match stdin.fill_buf() {
                // An interrupt that came with it comes first.
                Ok([]) if self.is_interrupted() => return Ok(None),
                Ok([]) => return Err("standard input ended before it said when to start (--start-at=-)".to_owned()),
                Ok(bytes) => bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(failed(error)),
            };
            line.extend_from_slice(there);
            let taken = there.len();
            stdin.consume(taken);
        }
        instant(String::from_utf8_lossy(&line).trim()).map(Some)
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}

const PATIENCE_OF_POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: PATIENCE.as_nanos() as i64 };
