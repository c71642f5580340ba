//! The sockets of one thread, and the wait until some of them can be read or written. On Linux it uses epoll with
//! direct system calls instead of the C library's functions; on other systems it uses mio's poll.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// The maximum number of sockets that one wait reports.
const AT_ONCE: usize = 256;

/// The number under which a poll reports that a socket is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token(pub usize);

/// A poll in which sockets are registered. It reports changes only: a socket that stays ready is not reported again
/// until something changes, such as that further bytes arrive.
pub struct Poll {
    system: SystemPoll,
}

impl Poll {
    /// The number of open files that a poll needs in addition to its sockets.
    pub const FILES: u64 = 1;

    /// Makes a poll in which no sockets are registered.
    pub fn new() -> io::Result<Self> {
        Ok(Self { system: SystemPoll::new()? })
    }

    /// Makes the poll report under `token` when the socket can be read and, if `writable` is true, when it can be
    /// written. The socket stays registered until it is closed.
    pub fn register(&self, socket: impl AsFd, token: Token, writable: bool) -> io::Result<()> {
        self.system.register(socket.as_fd(), token, writable)
    }

    /// Changes the events for which [`Poll::register`] asked.
    pub fn reregister(&self, socket: impl AsFd, token: Token, writable: bool) -> io::Result<()> {
        self.system.reregister(socket.as_fd(), token, writable)
    }

    /// Waits until a socket is ready, or until `timeout` is over if it is given (in whole milliseconds). Returns the
    /// number of tokens in `ready`. A signal ends the wait with 0 tokens.
    #[inline(always)]
    pub fn wait(&mut self, ready: &mut Ready, timeout: Option<Duration>) -> io::Result<usize> {
        match self.system.wait(&mut ready.events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            done => done,
        }
    }
}

/// The sockets that one wait reports.
#[derive(Default)]
pub struct Ready {
    events: SystemEvents,
}

impl Ready {
    /// Returns the tokens of the first `count` ready sockets.
    #[inline(always)]
    pub fn tokens(&self, count: usize) -> impl Iterator<Item = usize> {
        self.events.tokens(count)
    }
}

#[cfg(target_os = "linux")]
use linux::{SystemEvents, SystemPoll};
#[cfg(not(target_os = "linux"))]
use others::{SystemEvents, SystemPoll};

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::{BorrowedFd, OwnedFd};
    use std::time::Duration;

    use rustix::event::Timespec;
    use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

    use super::{AT_ONCE, Token};

    pub(super) struct SystemPoll {
        epoll: OwnedFd,
    }

    impl SystemPoll {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self { epoll: epoll::create(CreateFlags::CLOEXEC)? })
        }

        pub(super) fn register(&self, socket: BorrowedFd<'_>, token: Token, writable: bool) -> io::Result<()> {
            Ok(epoll::add(&self.epoll, socket, data(token), flags(writable))?)
        }

        pub(super) fn reregister(&self, socket: BorrowedFd<'_>, token: Token, writable: bool) -> io::Result<()> {
            Ok(epoll::modify(&self.epoll, socket, data(token), flags(writable))?)
        }

        #[inline(always)]
        pub(super) fn wait(&mut self, events: &mut SystemEvents, timeout: Option<Duration>) -> io::Result<usize> {
            let timeout =
                timeout.map(|time| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() });
            Ok(epoll::wait(&self.epoll, &mut events.0[..], timeout.as_ref())?)
        }
    }

    fn data(token: Token) -> EventData {
        EventData::new_u64(token.0 as u64)
    }

    fn flags(writable: bool) -> EventFlags {
        let readable = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
        if writable { readable | EventFlags::OUT } else { readable }
    }

    pub(super) struct SystemEvents(Box<[Event; AT_ONCE]>);

    impl Default for SystemEvents {
        fn default() -> Self {
            Self(Box::new([Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; AT_ONCE]))
        }
    }

    impl SystemEvents {
        #[inline(always)]
        pub(super) fn tokens(&self, count: usize) -> impl Iterator<Item = usize> {
            self.0[..count.min(AT_ONCE)].iter().map(|event| event.data.u64() as usize)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod others {
    use std::io;
    use std::os::fd::{AsRawFd, BorrowedFd};
    use std::time::Duration;

    use mio::unix::SourceFd;
    use mio::{Events, Interest};

    use super::{AT_ONCE, Token};

    pub(super) struct SystemPoll {
        poll: mio::Poll,
    }

    impl SystemPoll {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self { poll: mio::Poll::new()? })
        }

        pub(super) fn register(&self, socket: BorrowedFd<'_>, token: Token, writable: bool) -> io::Result<()> {
            self.poll.registry().register(&mut SourceFd(&socket.as_raw_fd()), mio::Token(token.0), interest(writable))
        }

        pub(super) fn reregister(&self, socket: BorrowedFd<'_>, token: Token, writable: bool) -> io::Result<()> {
            self.poll.registry().reregister(&mut SourceFd(&socket.as_raw_fd()), mio::Token(token.0), interest(writable))
        }

        pub(super) fn wait(&mut self, events: &mut SystemEvents, timeout: Option<Duration>) -> io::Result<usize> {
            events.tokens.clear();
            self.poll.poll(&mut events.events, timeout)?;
            events.tokens.extend(events.events.iter().map(|event| event.token().0));
            Ok(events.tokens.len())
        }
    }

    fn interest(writable: bool) -> Interest {
        if writable { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE }
    }

    pub(super) struct SystemEvents {
        events: Events,
        tokens: Vec<usize>,
    }

    impl Default for SystemEvents {
        fn default() -> Self {
            Self { events: Events::with_capacity(AT_ONCE), tokens: Vec::with_capacity(AT_ONCE) }
        }
    }

    impl SystemEvents {
        pub(super) fn tokens(&self, count: usize) -> impl Iterator<Item = usize> {
            self.tokens.iter().take(count).copied()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    fn wait(poll: &mut Poll, time: Duration) -> Vec<usize> {
        let mut ready = Ready::default();
        let count = poll.wait(&mut ready, Some(time)).unwrap();
        ready.tokens(count).collect()
    }

    #[test]
    fn a_socket_is_reported_once_for_each_change() {
        let mut poll = Poll::new().unwrap();
        let (mut near, mut far) = UnixStream::pair().unwrap();
        poll.register(&far, Token(7), false).unwrap();
        assert_eq!(wait(&mut poll, Duration::from_millis(2)), []);
        near.write_all(b"x").unwrap();
        assert_eq!(wait(&mut poll, Duration::from_secs(60)), [7]);
        assert_eq!(wait(&mut poll, Duration::ZERO), []);
        far.read_exact(&mut [0]).unwrap();
        drop(near);
        assert_eq!(wait(&mut poll, Duration::from_secs(60)), [7]);
    }

    #[test]
    fn a_socket_is_reported_as_writable_only_if_that_is_asked_for() {
        let mut poll = Poll::new().unwrap();
        let (near, _far) = UnixStream::pair().unwrap();
        poll.register(&near, Token(1), true).unwrap();
        assert_eq!(wait(&mut poll, Duration::from_secs(60)), [1]);
        poll.reregister(&near, Token(2), false).unwrap();
        assert_eq!(wait(&mut poll, Duration::ZERO), []);
        poll.reregister(&near, Token(3), true).unwrap();
        assert_eq!(wait(&mut poll, Duration::from_secs(60)), [3]);
    }
}
