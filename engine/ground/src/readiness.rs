//! Waits until sockets can be read or written, or until a given time.
//!
//! Sockets are registered with mio. On Linux the wait is a direct system call (rustix), without the C library around it.

use std::io;
use std::time::Duration;

use mio::{Poll, Registry};

use crate::clock::Nanos;

/// The most sockets that one wait reports.
const AT_ONCE: usize = 256;

/// The sockets of one thread.
pub struct Readiness {
    poll: Poll,
    alarm: Alarm,
    beat: Alarm,
}

impl Readiness {
    /// Creates the poll, without sockets.
    pub fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let (alarm, beat) = (Alarm::new(poll.registry())?, Alarm::new(poll.registry())?);
        Ok(Self { poll, alarm, beat })
    }

    /// Returns the registry in which sockets are registered.
    #[inline]
    pub fn registry(&self) -> &Registry {
        self.poll.registry()
    }

    /// Sets the time at which a wait ends, on the system's monotonic clock. It holds until another time is set.
    #[inline]
    pub fn wake_at(&mut self, at: Nanos) -> io::Result<()> {
        self.alarm.set(at)
    }

    /// Sets another such time, at which the caller wants to look around whatever happens. A timer that is set now and then
    /// costs less than a time limit of each wait, which the kernel sets and clears as a timer of its own.
    pub fn look_up_at(&mut self, at: Nanos) -> io::Result<()> {
        self.beat.set(at)
    }

    /// Waits until a socket is ready, a set time has come, or `timeout` (whole milliseconds), if there is one, is over. Returns
    /// the number of tokens in `ready`; a signal ends the wait with 0.
    #[inline(always)]
    pub fn wait(&mut self, ready: &mut Ready, timeout: Option<Duration>) -> io::Result<usize> {
        match ready.events.wait(&mut self.poll, [&self.alarm, &self.beat], timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            done => done,
        }
    }
}

/// What one wait reports.
#[derive(Default)]
pub struct Ready {
    events: Events,
}

impl Ready {
    /// Returns the tokens of the first `count` events. The token of alarms may be among them, which is that of no socket.
    #[inline(always)]
    pub fn tokens(&self, count: usize) -> impl Iterator<Item = usize> {
        self.events.tokens(count)
    }
}

#[cfg(target_os = "linux")]
use linux::{Alarm, Events};
#[cfg(not(target_os = "linux"))]
use others::{Alarm, Events};

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

    /// The token of alarms. No socket uses it.
    const ALARM: Token = Token(usize::MAX - 1);

    /// A kernel timer that ends waits, registered like a socket. The timeout of the wait itself has a resolution of 1 ms,
    /// too coarse for a schedule, and the kernel may delay it by 50 us to wake several threads at once. The timer is set
    /// only when its time changes, not for each wait.
    pub(super) struct Alarm {
        timer: OwnedFd,
        at: Nanos,
    }

    impl Alarm {
        pub(super) fn new(registry: &Registry) -> io::Result<Self> {
            let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
            // mio registers for edges, so the timer never has to be read.
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

    /// The events of one wait.
    pub(super) struct Events(Box<[Event; AT_ONCE]>);

    impl Default for Events {
        fn default() -> Self {
            let nothing = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
            Self(Box::new([nothing; AT_ONCE]))
        }
    }

    impl Events {
        #[inline(always)]
        pub(super) fn wait(&mut self, poll: &mut Poll, _: [&Alarm; 2], timeout: Option<Duration>) -> io::Result<usize> {
            let timeout = timeout.map(timespec);
            Ok(epoll::wait(poll.registry().as_fd(), &mut self.0[..], timeout.as_ref())?)
        }

        #[inline(always)]
        pub(super) fn tokens(&self, count: usize) -> impl Iterator<Item = usize> {
            // mio stores the token in the data of the event.
            self.0[..count.min(AT_ONCE)].iter().map(|event| event.data.u64() as usize)
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

    use mio::{Poll, Registry};

    use super::{AT_ONCE, Nanos};
    use crate::clock::monotonic;

    /// The time at which waits end, on the system's monotonic clock.
    pub(super) struct Alarm {
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

    /// The events of one wait.
    pub(super) struct Events {
        events: mio::Events,
        tokens: Vec<usize>,
    }

    impl Default for Events {
        fn default() -> Self {
            Self { events: mio::Events::with_capacity(AT_ONCE), tokens: Vec::with_capacity(AT_ONCE) }
        }
    }

    impl Events {
        pub(super) fn wait(
            &mut self,
            poll: &mut Poll,
            alarms: [&Alarm; 2],
            timeout: Option<Duration>,
        ) -> io::Result<usize> {
            let now = monotonic();
            let left = |alarm: &Alarm| alarm.at.map(|at| Duration::from_nanos(at.saturating_sub(now)));
            // A time that is past has ended a wait already.
            let left = alarms.into_iter().filter_map(left).filter(|left| !left.is_zero());
            poll.poll(&mut self.events, left.chain(timeout).min())?;
            self.tokens.clear();
            self.tokens.extend(self.events.iter().map(|event| event.token().0));
            Ok(self.tokens.len())
        }

        pub(super) fn tokens(&self, count: usize) -> impl Iterator<Item = usize> {
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
    fn a_socket_is_reported_when_there_is_something_to_read() {
        let (mut readiness, mut ready) = (Readiness::new().unwrap(), Ready::default());
        let (mut near, mut far) = UnixStream::pair().unwrap();
        readiness.registry().register(&mut far, Token(7), Interest::READABLE).unwrap();
        assert_eq!(readiness.wait(&mut ready, Some(Duration::ZERO)).unwrap(), 0);
        assert_eq!(readiness.wait(&mut ready, Some(Duration::from_millis(2))).unwrap(), 0);
        near.write_all(b"x").unwrap();
        assert_eq!(readiness.wait(&mut ready, None).unwrap(), 1);
        assert!(ready.tokens(1).eq([7]));
    }

    #[test]
    fn a_wait_ends_at_the_time_that_was_set_and_not_before() {
        let (mut readiness, mut ready) = (Readiness::new().unwrap(), Ready::default());
        for time in [1_234_567, 300_001, 0] {
            let at = monotonic() + time;
            readiness.wake_at(at).unwrap();
            readiness.wait(&mut ready, None).unwrap();
            let ended = monotonic();
            assert!((at..at + 50_000_000_000).contains(&ended), "{ended} for {at}");
        }
    }

    #[test]
    fn the_nearer_of_two_times_ends_a_wait() {
        let (mut readiness, mut ready) = (Readiness::new().unwrap(), Ready::default());
        let far = monotonic() + 1_000_000_000_000;
        readiness.wake_at(far).unwrap();
        for time in [400_000, 300_000] {
            let at = monotonic() + time;
            readiness.look_up_at(at).unwrap();
            assert_eq!(readiness.wait(&mut ready, None).unwrap(), 1);
            assert!((at..far).contains(&monotonic()));
        }
    }
}
