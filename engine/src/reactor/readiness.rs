//! Which sockets can be read or written. Registration is mio's; on Linux the waiting is the system's own call, to the
//! nanosecond and without the C library around it.

use std::io;
use std::time::Duration;

use mio::{Poll, Registry};

/// How many sockets are told of at a time.
const AT_ONCE: usize = 256;

/// A thread's sockets.
pub struct Readiness {
    poll: Poll,
}

impl Readiness {
    /// Without any socket yet.
    pub fn new() -> io::Result<Self> {
        Ok(Self { poll: Poll::new()? })
    }

    /// Where sockets are registered.
    #[inline]
    pub fn registry(&self) -> &Registry {
        self.poll.registry()
    }

    /// Waits until a socket is ready or `timeout` is over, and returns the number of `ready` ones; an interrupting signal
    /// ends the wait with none.
    #[inline]
    pub fn wait(&mut self, ready: &mut Ready, timeout: Duration) -> io::Result<usize> {
        match ready.wait(&mut self.poll, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            done => done,
        }
    }
}

/// Has the system wake the calling thread as soon as its time comes, and not in company some 50 us later. Where that
/// cannot be asked for, the lag tells.
pub fn wake_in_time() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

#[cfg(target_os = "linux")]
pub use linux::Ready;
#[cfg(not(target_os = "linux"))]
pub use others::Ready;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::AsFd;
    use std::time::Duration;

    use mio::{Poll, Token};
    use rustix::event::Timespec;
    use rustix::event::epoll::{self, Event, EventData, EventFlags};
    use rustix::io::Errno;

    use super::AT_ONCE;

    /// The sockets that are ready.
    pub struct Ready {
        events: Box<[Event; AT_ONCE]>,
        /// For kernels before 5.11, whose wait knows milliseconds only.
        coarse: Option<mio::Events>,
    }

    impl Ready {
        /// None yet.
        pub fn new() -> Self {
            let nothing = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
            Self { events: Box::new([nothing; AT_ONCE]), coarse: None }
        }

        #[inline]
        pub(super) fn wait(&mut self, poll: &mut Poll, timeout: Duration) -> io::Result<usize> {
            if self.coarse.is_some() {
                return self.wait_coarsely(poll, timeout);
            }
            match epoll::wait(poll.registry().as_fd(), &mut self.events[..], Some(&timespec(timeout))) {
                Err(Errno::NOSYS) => self.wait_coarsely(poll, timeout),
                done => Ok(done?),
            }
        }

        #[cold]
        fn wait_coarsely(&mut self, poll: &mut Poll, timeout: Duration) -> io::Result<usize> {
            let events = self.coarse.get_or_insert_with(|| mio::Events::with_capacity(AT_ONCE));
            poll.poll(events, Some(timeout))?;
            for (known, event) in self.events.iter_mut().zip(&*events) {
                known.data = EventData::new_u64(event.token().0 as u64);
            }
            Ok(events.iter().count())
        }

        /// The token of a ready socket, counted from 0.
        #[inline]
        pub fn token(&self, at: usize) -> Token {
            // mio's tokens are the events' data.
            Token(self.events[at].data.u64() as usize)
        }
    }

    #[inline]
    fn timespec(time: Duration) -> Timespec {
        Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) }
    }
}

#[cfg(not(target_os = "linux"))]
mod others {
    use std::io;
    use std::time::Duration;

    use mio::{Events, Poll, Token};

    use super::AT_ONCE;

    /// The sockets that are ready.
    pub struct Ready {
        events: Events,
        tokens: Vec<Token>,
    }

    impl Ready {
        /// None yet.
        pub fn new() -> Self {
            Self { events: Events::with_capacity(AT_ONCE), tokens: Vec::with_capacity(AT_ONCE) }
        }

        pub(super) fn wait(&mut self, poll: &mut Poll, timeout: Duration) -> io::Result<usize> {
            poll.poll(&mut self.events, Some(timeout))?;
            self.tokens.clear();
            self.tokens.extend(self.events.iter().map(|event| event.token()));
            Ok(self.tokens.len())
        }

        /// The token of a ready socket, counted from 0.
        pub fn token(&self, at: usize) -> Token {
            self.tokens[at]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::net::UnixStream;
    use mio::{Interest, Token};
    use std::io::Write;

    #[test]
    fn a_socket_is_told_of_when_there_is_something_to_read() {
        let (mut readiness, mut ready) = (Readiness::new().unwrap(), Ready::new());
        let (mut near, mut far) = UnixStream::pair().unwrap();
        readiness.registry().register(&mut far, Token(7), Interest::READABLE).unwrap();
        assert_eq!(readiness.wait(&mut ready, Duration::ZERO).unwrap(), 0);
        assert_eq!(readiness.wait(&mut ready, Duration::from_nanos(1_500_001)).unwrap(), 0);
        near.write_all(b"x").unwrap();
        assert_eq!(readiness.wait(&mut ready, Duration::from_secs(10)).unwrap(), 1);
        assert_eq!(ready.token(0), Token(7));
    }
}
