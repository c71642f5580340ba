//! What the main thread of a run needs of the system around it: further threads, their reports, and the time. The operating
//! system's is here; the simulation in this crate's tests has its own.

use std::io;
use std::process;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::{Builder, Scope};
use std::time::Duration;

use crate::mode::{ActionsOf, Mode};
use crate::report::{PanicReporter, Report};
use crate::schedule::Schedule;
use crate::shell::{Shell, System};
use crate::thread::{Share, Thread};
use crate::worker::Worker;
use ground::clock::{Clock, Nanos};
use workload::Workload;

/// The host of a run's threads, which live as long as `'run`.
pub trait Host<'run> {
    type Shell: Shell + 'run;

    /// The shell of one thread. The error is a sentence.
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

    /// The run's time.
    fn now(&self) -> Nanos;

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

impl<'run> Host<'run> for Threads<'run, '_> {
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

    fn receive(&self, reports: &Receiver<Report>, patience: Duration) -> Result<Report, RecvTimeoutError> {
        reports.recv_timeout(patience)
    }

    fn give_up(&self, status: u8) -> ! {
        process::exit(status.into())
    }
}
