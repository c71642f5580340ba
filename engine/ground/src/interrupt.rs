//! Interrupts: SIGINT and SIGTERM.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nix::sys::signal::{SigSet, Signal};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};

/// Exit status of a run that an interrupt ended.
pub const STATUS: u8 = 130;

/// The first Ctrl-C sets the flag, which ends the run with what was measured so far; the second one kills as usual. The
/// error is a whole sentence.
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

/// Has `set` set handlers. An interrupt that comes meanwhile waits until all is set: it would be lost between two steps.
/// Called while there is no other thread.
pub fn set_handlers<T>(set: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let interrupts: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
    interrupts.thread_block()?;
    let done = set();
    interrupts.thread_unblock()?;
    done
}
