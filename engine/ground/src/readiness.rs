//! Waits until sockets can be read or written, or until a given time.

use std::io;
use std::time::Duration;

use crate::clock::Nanos;
use crate::poll::{Poll, Ready};

/// The sockets of one thread, and the two times at which its waits end.
pub struct Readiness {
    poll: Poll,
    alarm: Alarm,
    beat: Alarm,
}

impl Readiness {
    /// The number of open files that a thread needs for its waits, in addition to its sockets.
    pub const FILES: u64 = Poll::FILES + 2 * Alarm::FILES;

    /// Makes the poll, in which no sockets are registered yet.
    pub fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let (alarm, beat) = (Alarm::new(&poll)?, Alarm::new(&poll)?);
        Ok(Self { poll, alarm, beat })
    }

    /// Returns the poll in which sockets are registered.
    #[inline]
    pub fn poll(&self) -> &Poll {
        &self.poll
    }

    /// Sets the time at which a wait ends, on the system's monotonic clock. It holds until another time is set.
    #[inline]
    pub fn wake_at(&mut self, at: Nanos) -> io::Result<()> {
        self.alarm.set(at)
    }

    /// Sets a second time at which a wait ends. The caller uses it for work that it does at regular times even if no
    /// socket is ready. Setting this timer is cheaper than passing a timeout to each wait, for which the kernel would
    /// set and clear a timer of its own.
    pub fn look_up_at(&mut self, at: Nanos) -> io::Result<()> {
        self.beat.set(at)
    }

    /// Waits until a socket is ready, until one of the set times has come, or until `timeout` is over if it is given
    /// (in whole milliseconds). Returns the number of tokens in `ready`. A set time that has come is reported under a
    /// token that no socket has. A signal ends the wait with 0 tokens.
    #[inline(always)]
    pub fn wait(&mut self, ready: &mut Ready, timeout: Option<Duration>) -> io::Result<usize> {
        self.poll.wait(ready, limit([&mut self.alarm, &mut self.beat], timeout))
    }
}

#[cfg(target_os = "linux")]
use linux::{Alarm, limit};
#[cfg(not(target_os = "linux"))]
use others::{Alarm, limit};

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use rustix::event::Timespec;
    use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

    use crate::clock::Nanos;
    use crate::poll::{Poll, Token};

    /// The token under which timers are reported. No socket has this token.
    const ALARM: Token = Token(usize::MAX - 1);

    /// A kernel timer that ends waits and is registered like a socket. The timeout of the wait itself is too coarse for
    /// a schedule: its resolution is 1 ms, and the kernel may delay it by 50 us to wake several threads at once. The
    /// timer is set only when its time changes, not for each wait.
    pub(super) struct Alarm {
        timer: OwnedFd,
        at: Nanos,
    }

    impl Alarm {
        /// The number of open files that a timer needs.
        pub(super) const FILES: u64 = 1;

        pub(super) fn new(poll: &Poll) -> io::Result<Self> {
            let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
            // The poll reports changes only, so that the timer never has to be read.
            poll.register(&timer, ALARM, false)?;
            Ok(Self { timer, at: 0 })
        }

        #[inline]
        pub(super) fn set(&mut self, at: Nanos) -> io::Result<()> {
            if at == self.at {
                return Ok(());
            }
            self.at = at;
            let time = Duration::from_nanos(at);
            let never = Timespec { tv_sec: 0, tv_nsec: 0 };
            let at = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
            let once = Itimerspec { it_interval: never, it_value: at };
            timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
            Ok(())
        }
    }

    /// Returns `timeout` unchanged, since the kernel's timers end the wait by themselves.
    #[inline(always)]
    pub(super) fn limit(_: [&mut Alarm; 2], timeout: Option<Duration>) -> Option<Duration> {
        timeout
    }
}

#[cfg(not(target_os = "linux"))]
mod others {
    use std::io;
    use std::time::Duration;

    use crate::clock::{Nanos, monotonic};
    use crate::poll::Poll;

    /// The time at which waits end, on the system's monotonic clock.
    pub(super) struct Alarm {
        at: Option<Nanos>,
    }

    impl Alarm {
        /// The number of open files that a timer needs: none, since the timeout of the wait takes its place.
        pub(super) const FILES: u64 = 0;

        pub(super) fn new(_: &Poll) -> io::Result<Self> {
            Ok(Self { at: None })
        }

        pub(super) fn set(&mut self, at: Nanos) -> io::Result<()> {
            self.at = Some(at);
            Ok(())
        }
    }

    /// Returns how long a wait may last: until the first of the two times, or until `timeout` is over. A time that is
    /// past makes one wait return at once.
    pub(super) fn limit(alarms: [&mut Alarm; 2], timeout: Option<Duration>) -> Option<Duration> {
        let now = monotonic();
        let left = |alarm: &mut Alarm| {
            let at = alarm.at?;
            alarm.at = Some(at).filter(|at| *at > now);
            Some(Duration::from_nanos(at.saturating_sub(now)))
        };
        alarms.into_iter().filter_map(left).chain(timeout).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic;

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
