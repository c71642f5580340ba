//! The operating system as a thread of a load sees it: its clock, its sockets, and the wait for events. The event loop
//! is compiled once for each implementation: for the operating system, and for the simulation in this crate's tests.

use std::io;
use std::sync::Arc;
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::under_way::UnderWay;
use ground::clock::{Clock, Nanos};
use ground::poll::{Poll, Ready};
use ground::readiness::Readiness;
use wire::network::Network;
use wire::{Backend, OpenError};

/// The operating system as a thread of a load sees it.
pub trait Shell: Send {
    type Network: Network;
    /// The buffer for the events that one wait reports.
    type Ready: Default;

    /// True if the event loop returns to its caller after each round. The simulation needs this, since it runs several
    /// threads in turn.
    const STEPS: bool = false;

    /// Returns the time on the run's clock.
    fn now(&self) -> Nanos;

    /// Sleeps until `at`; returns at once if `at` is past.
    fn sleep_until(&self, at: Nanos);

    /// Returns the network, which makes the thread's connections and reports when they are ready to be read or written.
    fn network(&self) -> &Self::Network;

    /// Sets the time at which a wait ends at the latest. It holds until another time is set.
    fn wake_at(&mut self, at: Nanos) -> io::Result<()>;

    /// Sets a second time at which a wait ends, independent of the first. The thread uses it to check from time to time
    /// whether it must end.
    fn look_up_at(&mut self, at: Nanos) -> io::Result<()>;

    /// Waits until a connection is ready, until one of the set times has come, or until `timeout` is over if it is
    /// given. Returns the number of tokens in `ready`.
    fn wait(&mut self, ready: &mut Self::Ready, timeout: Option<Duration>) -> io::Result<usize>;

    /// Returns the first `count` tokens that a wait reported. A token stands for a connection that is ready, or means
    /// that a set time has come.
    fn tokens(ready: &Self::Ready, count: usize) -> impl Iterator<Item = usize>;

    /// Asks the servers to cancel the current statements of the sessions in `backends`, without waiting for the result.
    /// The returned mark tells until when the requests are under way. Errors are not reported.
    fn cancel_aside(&self, backends: Vec<Arc<Backend>>) -> UnderWay;

    /// Asks the servers to cancel the current statements of the sessions in `backends` ([`wire::cancel::cancel`]).
    fn cancel<'b>(&self, backends: impl Iterator<Item = &'b Arc<Backend>>, until: Instant) -> Result<(), OpenError>;
}

/// The stream of bytes by which a thread with the operating system `S`, real or simulated, reaches a server.
pub type TransportOf<S> = <<S as Shell>::Network as Network>::Transport;

/// The longest time that a cancel request may take if nobody waits for its result.
const CANCEL_PATIENCE: Duration = Duration::from_secs(3);

/// The implementation of [`Shell`] for the operating system.
pub struct System {
    clock: Clock,
    readiness: Readiness,
}

impl System {
    /// Makes the access to the operating system for one thread of a run that uses this clock. The message of an error
    /// is a whole sentence.
    pub fn new(clock: Clock) -> io::Result<Self> {
        let readiness = Readiness::new()
            .map_err(|error| io::Error::new(error.kind(), format!("could not create an event loop: {error}")))?;
        Ok(Self { clock, readiness })
    }
}

impl Shell for System {
    type Network = Poll;
    type Ready = Ready;

    #[inline(always)]
    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn sleep_until(&self, at: Nanos) {
        self.clock.sleep_until(at);
    }

    #[inline(always)]
    fn network(&self) -> &Poll {
        self.readiness.poll()
    }

    #[inline]
    fn wake_at(&mut self, at: Nanos) -> io::Result<()> {
        self.readiness.wake_at(self.clock.moment(at))
    }

    fn look_up_at(&mut self, at: Nanos) -> io::Result<()> {
        self.readiness.look_up_at(self.clock.moment(at))
    }

    #[inline(always)]
    fn wait(&mut self, ready: &mut Ready, timeout: Option<Duration>) -> io::Result<usize> {
        self.readiness.wait(ready, timeout)
    }

    #[inline(always)]
    fn tokens(ready: &Ready, count: usize) -> impl Iterator<Item = usize> {
        ready.tokens(count)
    }

    fn cancel_aside(&self, backends: Vec<Arc<Backend>>) -> UnderWay {
        let until = Instant::now() + CANCEL_PATIENCE;
        let (under_way, held) = UnderWay::new();
        // The cancel requests need connections of their own. They are sent from another thread, so that this thread's
        // other clients do not have to wait.
        let _ = Builder::new().spawn(move || {
            let _held = held;
            wire::cancel::cancel(&backends, until)
        });
        under_way
    }

    fn cancel<'b>(&self, backends: impl Iterator<Item = &'b Arc<Backend>>, until: Instant) -> Result<(), OpenError> {
        wire::cancel::cancel(backends, until)
    }
}
