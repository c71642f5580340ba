//! The system around a thread of a load: its clock, its sockets and the wait for them. The event loop is compiled for
//! one shell: the operating system's, or that of the simulation in this crate's tests.

use std::io;
use std::sync::Arc;
use std::thread::Builder;
use std::time::{Duration, Instant};

use ground::clock::{Clock, Nanos};
use ground::poll::{Poll, Ready};
use ground::readiness::Readiness;
use wire::network::Network;
use wire::{Backend, OpenError};

/// The system around a thread, as the thread needs it.
pub trait Shell: Send {
    type Network: Network;
    /// The events that one wait reports.
    type Ready: Default;

    /// True if the event loop returns to its caller after each round, as in the simulation, which runs several threads
    /// in turn.
    const STEPS: bool = false;

    /// Returns the time on the run's clock.
    fn now(&self) -> Nanos;

    /// Sleeps until `at`; returns at once if `at` is past.
    fn sleep_until(&self, at: Nanos);

    /// Returns the network, which makes the thread's connections and reports when they are ready.
    fn network(&self) -> &Self::Network;

    /// Sets the time at which a wait ends. It holds until another time is set.
    fn wake_at(&mut self, at: Nanos) -> io::Result<()>;

    /// Sets another such time, at which the thread looks around whatever happens.
    fn look_up_at(&mut self, at: Nanos) -> io::Result<()>;

    /// Waits until a connection is ready, a set time has come, or `timeout`, if there is one, is over. Returns the
    /// number of tokens in `ready`.
    fn wait(&mut self, ready: &mut Self::Ready, timeout: Option<Duration>) -> io::Result<usize>;

    /// Returns the first `count` tokens that a wait reported. A token belongs to a connection that is ready, or means
    /// that a set time has come.
    fn tokens(ready: &Self::Ready, count: usize) -> impl Iterator<Item = usize>;

    /// Asks servers to cancel what these sessions are doing, and does not wait for that. Errors are not reported.
    fn cancel_aside(&self, backends: Vec<Arc<Backend>>);

    /// Asks servers to cancel what these sessions are doing ([`wire::cancel::cancel`]).
    fn cancel<'b>(&self, backends: impl Iterator<Item = &'b Arc<Backend>>, until: Instant) -> Result<(), OpenError>;
}

/// The transport by which a shell reaches a server.
pub type TransportOf<S> = <<S as Shell>::Network as Network>::Transport;

/// The longest time that a request takes which is sent aside.
const CANCEL_PATIENCE: Duration = Duration::from_secs(3);

/// The shell of the operating system.
pub struct System {
    clock: Clock,
    readiness: Readiness,
}

impl System {
    /// Makes the shell of one thread of a run with this clock. The error is a sentence.
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

    fn cancel_aside(&self, backends: Vec<Arc<Backend>>) {
        let until = Instant::now() + CANCEL_PATIENCE;
        // The requests need connections of their own, for which the thread's other clients must not wait.
        let _ = Builder::new().spawn(move || wire::cancel::cancel(&backends, until));
    }

    fn cancel<'b>(&self, backends: impl Iterator<Item = &'b Arc<Backend>>, until: Instant) -> Result<(), OpenError> {
        wire::cancel::cancel(backends, until)
    }
}
