//! Which sockets can be read or written, and the moment at which the wait for them is to end. Registration is mio's; on
//! Linux the waiting is the system's own call, without the C library around it.

use std::io;
use std::time::Duration;

use mio::{Poll, Registry};

use crate::clock::Nanos;

/// How many sockets are told of at a time.
const AT_ONCE: usize = 256;

/// A thread's sockets.
pub struct Readiness {
    poll: Poll,
    alarm: Alarm,
}

impl Readiness {
    /// Without any socket yet.
    pub fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let alarm = Alarm::new(poll.registry())?;
        Ok(Self { poll, alarm })
    }

    /// Where sockets are registered.
    #[inline]
    pub fn registry(&self) -> &Registry {
        self.poll.registry()
    }

    /// Has waits end at the moment `at` of the system's monotonic clock, until another one is named.
    #[inline]
    pub fn wake_at(&mut self, at: Nanos) -> io::Result<()> {
        self.alarm.set(at)
    }

    /// Waits until a socket is ready or `timeout` is over, whole milliseconds, and returns the number of `ready` ones; an
    /// interrupting signal ends the wait with none.
    #[inline(always)]
    pub fn wait(&mut self, ready: &mut Ready, timeout: Duration) -> io::Result<usize> {
        match ready.wait(&mut self.poll, &self.alarm, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            done => done,
        }
    }
}

#[cfg(target_os = "linux")]
use linux::Alarm;
#[cfg(target_os = "linux")]
pub use linux::Ready;
#[cfg(not(target_os = "linux"))]
use others::Alarm;
#[cfg(not(target_os = "linux"))]
pub use others::Ready;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::{AsFd, AsRawFd, OwnedFd};
    use std::time::Duration;

    use mio::unix::SourceFd;
    use mio::{Interest, Poll, Registry, Token};
    use rustix::event::Timespec;
    use rustix::event::epoll::{self, Event, EventData, EventFlags};
    use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

    use super::{AT_ONCE, Nanos};

    /// The token of the alarm, which no client has.
    const ALARM: Token = Token(usize::MAX - 1);

    /// The moment at which waits are to end: a timer beside the sockets. The wait's own timeout knows milliseconds, too
    /// coarse for a schedule, and the system may delay it by 50 us to wake several at a time. A timer is set only where
    /// its moment changes, and not for each wait.
    pub struct Alarm {
        timer: OwnedFd,
        at: Nanos,
    }

    impl Alarm {
        pub(super) fn new(registry: &Registry) -> io::Result<Self> {
            let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
            // Edges are told of, so that the timer needs no reading.
            registry.register(&mut SourceFd(&timer.as_raw_fd()), ALARM, Interest::READABLE)?;
            Ok(Self { timer, at: 0 })
        }

        #[inline]
        pub(super) fn set(&mut self, at: Nanos) -> io::Result<()> {
            if at == self.at {
                return Ok(());
            }
            self.at = at;
            let never = Timespec { tv_sec: 0, tv_nsec: 0 };
            let once = Itimerspec { it_interval: never, it_value: timespec(Duration::from_nanos(at)) };
            timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
            Ok(())
        }
    }

    /// The sockets that are ready.
    pub struct Ready {
        events: Box<[Event; AT_ONCE]>,
    }

    impl Default for Ready {
        /// None yet.
        fn default() -> Self {
            let nothing = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
            Self { events: Box::new([nothing; AT_ONCE]) }
        }
    }

    impl Ready {
        #[inline(always)]
        pub(super) fn wait(&mut self, poll: &mut Poll, _: &Alarm, timeout: Duration) -> io::Result<usize> {
            Ok(epoll::wait(poll.registry().as_fd(), &mut self.events[..], Some(&timespec(timeout)))?)
        }

        /// The tokens of the first `count` that are ready; those of no client are to be passed over.
        #[inline(always)]
        pub fn tokens(&self, count: usize) -> impl Iterator<Item = usize> {
            // mio's tokens are the events' data.
            self.events[..count.min(AT_ONCE)].iter().map(|event| event.data.u64() as usize)
        }
    }

    #[inline(always)]
    fn timespec(time: Duration) -> Timespec {
        Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) }
    }
}

#[cfg(not(target_os = "linux"))]
mod others {
    use std::io;
    use std::time::Duration;

    use mio::{Events, Poll, Registry};

    use super::{AT_ONCE, Nanos};
    use crate::clock::monotonic;

    /// The moment at which waits are to end.
    pub struct Alarm {
        at: Option<Nanos>,
    }

    impl Alarm {
        pub(super) fn new(_: &Registry) -> io::Result<Self> {
            Ok(Self { at: None })
        }

        pub(super) fn set(&mut self, at: Nanos) -> io::Result<()> {
            self.at = Some(at);
            Ok(())
        }
    }

    /// The sockets that are ready.
    pub struct Ready {
        events: Events,
        tokens: Vec<usize>,
    }

    impl Default for Ready {
        /// None yet.
        fn default() -> Self {
            Self { events: Events::with_capacity(AT_ONCE), tokens: Vec::with_capacity(AT_ONCE) }
        }
    }

    impl Ready {
        pub(super) fn wait(&mut self, poll: &mut Poll, alarm: &Alarm, timeout: Duration) -> io::Result<usize> {
            let left = alarm.at.map(|at| Duration::from_nanos(at.saturating_sub(monotonic())));
            // A moment that is past has ended a wait already.
            let left = left.filter(|left| !left.is_zero()).unwrap_or(timeout);
            poll.poll(&mut self.events, Some(left.min(timeout)))?;
            self.tokens.clear();
            self.tokens.extend(self.events.iter().map(|event| event.token().0));
            Ok(self.tokens.len())
        }

        /// The tokens of the first `count` that are ready.
        pub fn tokens(&self, count: usize) -> impl Iterator<Item = usize> {
            self.tokens.iter().take(count).copied()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic;
    use mio::net::UnixStream;
    use mio::{Interest, Token};
    use std::io::Write;

    #[test]
    fn a_socket_is_told_of_when_there_is_something_to_read() {
        let (mut readiness, mut ready) = (Readiness::new().unwrap(), Ready::default());
        let (mut near, mut far) = UnixStream::pair().unwrap();
        readiness.registry().register(&mut far, Token(7), Interest::READABLE).unwrap();
        assert_eq!(readiness.wait(&mut ready, Duration::ZERO).unwrap(), 0);
        assert_eq!(readiness.wait(&mut ready, Duration::from_millis(2)).unwrap(), 0);
        near.write_all(b"x").unwrap();
        assert_eq!(readiness.wait(&mut ready, Duration::from_secs(10)).unwrap(), 1);
        assert!(ready.tokens(1).eq([7]));
    }

    #[test]
    fn a_wait_ends_at_the_moment_that_was_named_and_not_before() {
        let (mut readiness, mut ready) = (Readiness::new().unwrap(), Ready::default());
        for time in [1_234_567, 300_001, 0] {
            let at = monotonic() + time;
            readiness.wake_at(at).unwrap();
            readiness.wait(&mut ready, Duration::from_secs(100)).unwrap();
            let ended = monotonic();
            assert!((at..at + 50_000_000_000).contains(&ended), "{ended} for {at}");
        }
    }
}
