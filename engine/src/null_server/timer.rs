//! Waits that are exact to a microsecond or two: the poll itself knows milliseconds only.

use std::time::Duration;

use super::delay::Nanos;

/// How long before its time a thread is woken, to wait for the rest awake: longer than a processor takes to wake up.
const AWAKE: Nanos = 60_000;

/// The place of the next moment: still to be slept for, or so near that a thread stays awake.
pub enum Wait {
    /// Poll for so long; `None`: until something happens.
    Sleep(Option<Duration>),
    /// Poll without waiting, again and again.
    Awake,
}

#[cfg(target_os = "linux")]
pub use self::linux::Timer;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::{AsFd, AsRawFd};
    use std::time::Duration;

    use mio::unix::SourceFd;
    use mio::{Interest, Registry, Token};
    use nix::sys::time::TimeSpec;
    use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

    use super::{AWAKE, Nanos, Wait};

    /// A timer among the sockets of a poll.
    pub struct Timer {
        fd: TimerFd,
        /// The moment that it is set to.
        set_to: Option<Nanos>,
    }

    impl Timer {
        /// A timer whose expiry wakes the poll with `token`.
        pub fn new(registry: &Registry, token: Token) -> io::Result<Self> {
            let fd = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
            registry.register(&mut SourceFd(&fd.as_fd().as_raw_fd()), token, Interest::READABLE)?;
            Ok(Self { fd, set_to: None })
        }

        /// How to wait at `now` for the moment `due`.
        pub fn wait(&mut self, due: Nanos, now: Nanos) -> io::Result<Wait> {
            let Some(time) = due.checked_sub(now + AWAKE).filter(|time| *time > 0) else { return Ok(Wait::Awake) };
            if self.set_to != Some(due) {
                let expiration = Expiration::OneShot(TimeSpec::from_duration(Duration::from_nanos(time)));
                self.fd.set(expiration, TimerSetTimeFlags::empty())?;
                self.set_to = Some(due);
            }
            Ok(Wait::Sleep(None))
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub use self::portable::Timer;

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::io;
    use std::time::Duration;

    use mio::{Registry, Token};

    use super::{AWAKE, Nanos, Wait};

    /// The poll's own time-out, as exact as the system makes it.
    pub struct Timer;

    impl Timer {
        /// A timer.
        pub fn new(_registry: &Registry, _token: Token) -> io::Result<Self> {
            Ok(Self)
        }

        /// How to wait at `now` for the moment `due`.
        pub fn wait(&mut self, due: Nanos, now: Nanos) -> io::Result<Wait> {
            let time = due.checked_sub(now + AWAKE).filter(|time| *time > 0);
            Ok(time.map_or(Wait::Awake, |time| Wait::Sleep(Some(Duration::from_nanos(time)))))
        }
    }
}
