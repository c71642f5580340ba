//! What the engine itself uses of the processor.

use std::ops::Sub;
use std::time::Duration;

/// CPU time of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuTime {
    pub user: Duration,
    pub system: Duration,
}

impl CpuTime {
    /// CPU time that the calling thread has used; `None` where the system cannot tell.
    #[cfg(any(target_os = "linux", target_os = "freebsd"))]
    pub fn of_thread() -> Option<Self> {
        use nix::sys::resource::{UsageWho, getrusage};
        use nix::sys::time::TimeValLike;
        let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
        let microseconds = |time: nix::sys::time::TimeVal| Duration::from_micros(time.num_microseconds() as u64);
        Some(Self { user: microseconds(usage.user_time()), system: microseconds(usage.system_time()) })
    }

    /// CPU time that the calling thread has used; `None` where the system cannot tell.
    #[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
    pub fn of_thread() -> Option<Self> {
        None
    }

    /// User and system time together.
    pub fn total(&self) -> Duration {
        self.user + self.system
    }
}

impl Sub for CpuTime {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { user: self.user.saturating_sub(earlier.user), system: self.system.saturating_sub(earlier.system) }
    }
}
