//! Signals that end a run: SIGINT and SIGTERM interrupt it, SIGALRM ends its time.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nix::sys::signal::{SigSet, Signal};
use signal_hook::consts::{SIGALRM, SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};

/// Exit status of a run that an interrupt ended.
pub const STATUS: u8 = 130;

/// Sets the handlers of a run and returns its flag. The first signal sets the flag: the run ends and reports what it has
/// measured so far. The second signal ends the program with [`STATUS`].
pub fn catch() -> Result<Arc<AtomicBool>, String> {
    let flag = Arc::new(AtomicBool::new(false));
    set_handlers(|| {
        [SIGINT, SIGTERM].into_iter().try_for_each(|signal| {
            register_conditional_shutdown(signal, STATUS.into(), Arc::clone(&flag))?;
            register(signal, Arc::clone(&flag)).map(drop)
        })
    })
    .map_err(|error| format!("could not set signal handler: {error}"))?;
    Ok(flag)
}

/// Sets the handler of an alarm and returns its flag, which SIGALRM sets: the time of the load is over, as in pgbench.
pub fn catch_alarm() -> Result<Arc<AtomicBool>, String> {
    let flag = Arc::new(AtomicBool::new(false));
    register(SIGALRM, Arc::clone(&flag)).map_err(|error| format!("could not set signal handler: {error}"))?;
    Ok(flag)
}

/// Calls `set`, which sets signal handlers. Signals that arrive meanwhile are blocked until all handlers are set, so that
/// none is lost. Must be called before the program starts further threads.
pub fn set_handlers<T>(set: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let interrupts: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
    interrupts.thread_block()?;
    let done = set();
    interrupts.thread_unblock()?;
    done
}
