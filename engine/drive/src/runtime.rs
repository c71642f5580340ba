//! The trait through which the main thread of a run uses the operating system: it starts threads, receives their
//! reports, and reads the clock and standard input. The implementation for the operating system is here. The simulation
//! in this crate's tests has another implementation.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
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
use ground::stdin;
use workload::Workload;

/// The system that starts a run's threads and receives their reports. The threads live as long as `'run`.
pub trait Runtime<'run> {
    type Shell: Shell + 'run;

    /// Makes the access to the operating system that one thread uses: its clock, its sockets and its wait for events.
    /// The message of an error is a whole sentence.
    fn shell(&self) -> io::Result<Self::Shell>;

    /// Starts a thread, which receives its schedule through `start`.
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

    /// Returns the current times of the run's clock and of the machine's clocks.
    fn clocks(&self) -> Clocks;

    /// Makes the main thread wait for the duration `time`, while the other threads go on.
    fn pause(&self, time: Duration);

    /// Reads a part of a line from standard input. Returns no bytes at the end of the input, and `None` if nothing
    /// arrived within `patience` or a signal interrupted the wait.
    fn read_line(&self, patience: Duration) -> io::Result<Option<Vec<u8>>>;

    /// Waits for the next report, but at most for `patience`.
    fn receive(&self, reports: &Receiver<Report>, patience: Duration) -> Result<Report, RecvTimeoutError>;

    /// Ends the whole program with this exit status, because its threads do not end.
    fn give_up(&self, status: u8) -> !;
}

/// The runtime that starts threads of the operating system.
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
        // A scope panics if one of its threads has panicked. Therefore the panic is caught here; the main thread learns
        // of it by a report.
        let run = move || {
            let _ = catch_unwind(AssertUnwindSafe(move || {
                let _panics = panics;
                Worker::new(thread, workload, share).run(&start);
            }));
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
        stdin::read(patience)
    }

    fn receive(&self, reports: &Receiver<Report>, patience: Duration) -> Result<Report, RecvTimeoutError> {
        reports.recv_timeout(patience)
    }

    fn give_up(&self, status: u8) -> ! {
        process::exit(status.into())
    }
}

#[cfg(test)]
pub mod tests {
    use std::cell::Cell;
    use std::sync::mpsc::TryRecvError;

    use super::*;
    use ground::clock::nanos;

    /// A runtime for tests of the main thread alone. It starts no threads, and its time passes only while the main
    /// thread waits.
    #[derive(Default)]
    pub struct Alone {
        now: Cell<Nanos>,
    }

    impl<'run> Runtime<'run> for Alone {
        type Shell = System;

        fn shell(&self) -> io::Result<System> {
            unreachable!("the main thread is alone")
        }

        fn start<M: Mode<System> + 'run>(
            &self,
            _thread: Thread<'run, M, System>,
            _workload: &'run dyn Workload<ActionsOf<M, System>>,
            _share: Share,
            _start: Receiver<Schedule>,
            _panics: PanicReporter,
        ) -> io::Result<()> {
            unreachable!("the main thread is alone")
        }

        fn now(&self) -> Nanos {
            self.now.get()
        }

        fn clocks(&self) -> Clocks {
            unreachable!("nothing asks for the time of the day")
        }

        fn pause(&self, time: Duration) {
            self.now.set(self.now.get() + nanos(time));
        }

        fn read_line(&self, _patience: Duration) -> io::Result<Option<Vec<u8>>> {
            unreachable!("there is no input")
        }

        fn receive(&self, reports: &Receiver<Report>, patience: Duration) -> Result<Report, RecvTimeoutError> {
            reports.try_recv().map_err(|error| match error {
                TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
                TryRecvError::Empty => {
                    self.pause(patience);
                    RecvTimeoutError::Timeout
                }
            })
        }

        fn give_up(&self, _status: u8) -> ! {
            unreachable!("no thread hangs")
        }
    }
}
