//! Interrupts: SIGINT and SIGTERM.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};

/// Exit status of a run that an interrupt ended.
pub const STATUS: u8 = 130;

/// The first Ctrl-C sets the flag, which ends the run with what was measured so far; the second one kills as usual. The
/// error is a whole sentence.
pub fn catch() -> Result<Arc<AtomicBool>, String> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        register_conditional_shutdown(signal, STATUS.into(), Arc::clone(&flag))
            .and_then(|_| register(signal, Arc::clone(&flag)))
            .map_err(|error| format!("could not set signal handler: {error}"))?;
    }
    Ok(flag)
}
