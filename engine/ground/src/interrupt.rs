//! Signals that end a run: SIGINT and SIGTERM interrupt it, and SIGALRM ends the time of its load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Once};
use std::{fs, io};

use nix::sys::signal::{SigSet, Signal};
use signal_hook::consts::{SIGALRM, SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};
use thiserror::Error;

/// The exit status of a run that was ended by an interrupt.
pub const STATUS: u8 = 130;

/// The error that a signal handler could not be set.
#[derive(Debug, Error)]
#[error("could not set signal handler: {0}")]
pub struct SignalError(#[from] io::Error);

/// Returns SIGINT and SIGTERM, without those that were ignored when the program started. A shell that runs a script
/// ignores SIGINT for a program in the background, so that Ctrl-C does not end that program.
pub fn interrupts() -> impl Iterator<Item = i32> {
    static IGNORED: LazyLock<u64> = LazyLock::new(|| ignored(&fs::read_to_string(STATUS_FILE).unwrap_or_default()));
    let ignored = *IGNORED;
    [SIGINT, SIGTERM].into_iter().filter(move |signal| ignored & (1 << (signal - 1)) == 0)
}

/// The file in which Linux shows the signals that this process ignores. On other systems no signal counts as ignored.
const STATUS_FILE: &str = "/proc/self/status";

/// Returns the mask of ignored signals from the text of [`STATUS_FILE`]. Its lowest bit stands for signal 1.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Sets the signal handlers of a run, and returns the flag that they set. The first signal sets the flag: the run ends
/// and reports what it has measured so far. The second signal ends the program with the exit status [`STATUS`].
pub fn catch() -> Result<Arc<AtomicBool>, SignalError> {
    let flag = Arc::new(AtomicBool::new(false));
    ENDS_AT_ONCE.store(false, Ordering::Relaxed);
    set_handlers(|| {
        interrupts().try_for_each(|signal| {
            register_conditional_shutdown(signal, STATUS.into(), Arc::clone(&flag))?;
            register(signal, Arc::clone(&flag)).map(drop)
        })
    })?;
    Ok(flag)
}

/// True if an interrupt ends the program at once, with the exit status [`STATUS`]. The signal handlers read it.
static ENDS_AT_ONCE: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(true)));

/// Makes sure that the signal handlers are set only once.
static HANDLERS: Once = Once::new();

/// A guard that sets whether an interrupt ends the program at once, and that restores the old setting when it is
/// dropped. A script that computes in the main thread checks no flag, so that only the signal handler can end it. When
/// the program starts, an interrupt ends it at once; after [`catch`] it does not.
pub struct EndsAtOnce {
    before: bool,
}

impl EndsAtOnce {
    /// Sets whether an interrupt ends the program at once, until the returned guard is dropped. The first call sets the
    /// signal handlers. If that fails, the system's default action for the signals applies, which also ends the
    /// program.
    pub fn set(ends: bool) -> Self {
        HANDLERS.call_once(|| {
            let set =
                |signal| register_conditional_shutdown(signal, STATUS.into(), Arc::clone(&ENDS_AT_ONCE)).map(drop);
            let _ = set_handlers(|| interrupts().try_for_each(set));
        });
        Self { before: ENDS_AT_ONCE.swap(ends, Ordering::Relaxed) }
    }
}

impl Drop for EndsAtOnce {
    fn drop(&mut self) {
        ENDS_AT_ONCE.store(self.before, Ordering::Relaxed);
    }
}

/// Sets the handler of SIGALRM, and returns the flag that it sets. As in pgbench, this signal means that the time of
/// the load is over.
pub fn catch_alarm() -> Result<Arc<AtomicBool>, SignalError> {
    let flag = Arc::new(AtomicBool::new(false));
    register(SIGALRM, Arc::clone(&flag))?;
    Ok(flag)
}

/// Calls `set`, which must set signal handlers. Signals are blocked until all handlers are set, so that no signal is
/// lost. Must be called before the program starts further threads.
pub fn set_handlers<T>(set: impl FnOnce() -> io::Result<T>) -> Result<T, SignalError> {
    let interrupts: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
    interrupts.thread_block().map_err(io::Error::from)?;
    let done = set();
    interrupts.thread_unblock().map_err(io::Error::from)?;
    Ok(done?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        assert_eq!(ignored("Name:\tpgbench\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001002\n"), 0x1002);
        assert_eq!([ignored(""), ignored("SigIgn:\tx\n")], [0, 0]);
    }
}
