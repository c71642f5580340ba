//! The trait through which the main thread of a run uses the system around it: it starts threads, receives their
//! reports, and reads the clock and standard input. The operating system's implementation is here; the simulation in
//! this crate's tests has its own.

use std::io::{self, BufRead};
use std::process;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::{self, Builder, Scope};
use std::time::Duration;

use crate::mode::{ActionsOf, Mode};
use crate::report::{PanicReporter, Report};
use crate::schedule::Schedule;
use crate::shell::{Shell, System};
use crate::thread::{Share, Thread};
use crate::worker::Worker;
use ground::clock::{Clock, Clocks, Nanos};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use workload::Workload;

/// The system that starts a run's threads, which live as long as `'run`, and that receives their reports.
pub trait Runtime<'run> {
    type Shell: Shell + 'run;

    /// Makes the shell of one thread. The error is a sentence.
    fn shell(&self) -> io::Result<Self::Shell>;

    /// Starts a thread, which gets its schedule by `start`.
    fn start<M: Mode<Self::Shell> + 'run>(
        &self,
        thread: Thread<'run, M, Self::Shell>,
        workload: &'run dyn Workload<ActionsOf<M, Self::Shell>>,
        share: Share,
        start: Receiver<Schedule>,
        panics: PanicReporter,
    ) -> io::Result<()>;

    /// Returns the time on the run's clock.
    fn now(&self) -> Nanos;

    /// Returns the times on the run's clock and on the machine's clocks.
    fn clocks(&self) -> Clocks;

    /// Lets some time pass, while threads go on.
    fn pause(&self, time: Duration);

    /// Reads the bytes that standard input has, up to the end of a line. Returns no bytes at the end of the input, and
    /// `None` if nothing came for `patience` or a signal interrupted the wait.
    fn read_line(&self, patience: Duration) -> io::Result<Option<Vec<u8>>>;

    /// Waits for the next report, for `patience` at most.
    fn receive(&self, reports: &Receiver<Report>, patience: Duration) -> Result<Report, RecvTimeoutError>;

    /// Ends the program, whose threads do not end, with this exit status.
    fn give_up(&self, status: u8) -> !;
}

/// Threads of the operating system.
pub struct Threads<'run, 'env> {
    pub scope: &'run Scope<'run, 'env>,
    pub clock: Clock,
}

impl<'run> Runtime<'run> for Threads<'run, '_> {
    type Shell = System;

    fn shell(&self) -> io::Result<System> {
        System::new(self.clock)
    }

    fn start<M: Mode<System> + 'run>(
        &self,
        thread: Thread<'run, M, System>,
        workload: &'run dyn Workload<ActionsOf<M, System>>,
        share: Share,
        start: Receiver<Schedule>,
        panics: PanicReporter,
    ) -> io::Result<()> {
        let run = move || {
            let _panics = panics;
            Worker::new(thread, workload, share).run(&start);
        };
        Builder::new().name("pgtrial-load".to_owned()).spawn_scoped(self.scope, run).map(drop)
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn clocks(&self) -> Clocks {
        self.clock.all()
    }

    fn pause(&self, time: Duration) {
        thread::sleep(time);
    }

    fn read_line(&self, patience: Duration) -> io::Result<Option<Vec<u8>>> {
        let patience = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
        let stdin = io::stdin();
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&patience)) {
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut stdin = stdin.lock();
        let line = match stdin.fill_buf() {
            Ok(bytes) => bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default().to_vec(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
            Err(error) => return Err(error),
        };
        stdin.consume(line.len());
        Ok(Some(line))
    }

    fn receive(&self, reports: &Receiver<Report>, patience: Duration) -> Result<Report, RecvTimeoutError> {
        reports.recv_timeout(patience)
    }

    fn give_up(&self, status: u8) -> ! {
        process::exit(status.into())
    }
}
