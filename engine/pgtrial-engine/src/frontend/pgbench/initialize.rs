//! The command `pgbench -i`, which makes pgbench's tables.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::options::arguments::Initialization;
use crate::frontend::common::connection::{Purpose, no_connection, session, target};
use crate::frontend::common::failure::Failure;
use crate::frontend::common::messages::USER;
use ground::interrupt::{self, SignalError};
use tables::{Backends, InitStep, LoadError};
use wire::session::CopyError;

/// The exit status when an interrupt finds nothing to cancel.
const INTERRUPTED: i32 = 1;

/// The purpose of the connections, for messages.
const PURPOSE: Purpose = "initialization";

/// The pause between two cancel requests: a session that was between two statements was not cancelled by the first one.
const REPEAT_AFTER: Duration = Duration::from_millis(100);

/// Makes the tables. Returns the exit status.
pub fn run(initialization: &Initialization) -> Result<u8, Failure> {
    let target = target(&initialization.server, "pgbench", PURPOSE)?;
    let mut session = session(&target, PURPOSE)?;
    let steps: Vec<_> = initialization.steps.chars().filter_map(InitStep::from_letter).collect();
    let (backends, order) = (Backends::default(), MessageOrder::default());
    cancel_on_interrupt(&backends, &order)?;
    let loaded = tables::initialize(&target, &mut session, &initialization.tables, &steps, &backends);
    let _held = order.lock();
    loaded.map_err(describe)?;
    Ok(0)
}

/// Keeps two messages in order: that a cancel request was sent, and then the server's error because of it.
type MessageOrder = Arc<Mutex<()>>;

fn describe(error: LoadError) -> Failure {
    match error {
        LoadError::Query { sql, error } => {
            Failure::error(format!("query failed: {error}")).detail(format!("Query was: {sql}"))
        }
        LoadError::Copy(CopyError::Refused(error)) => Failure::error(format!("unexpected copy in result: {error}")),
        LoadError::Copy(CopyError::Failed(error)) => {
            (USER.tell)(&error.to_string());
            Failure::error("PQendcopy failed")
        }
        LoadError::Connect(error) => no_connection(error.message, PURPOSE),
        LoadError::ThreadLost => Failure::error("a loading thread ended unexpectedly"),
    }
}

/// Sends a cancel request for each session at SIGINT and SIGTERM; the server's error then ends the loading. A second
/// interrupt ends the program at once.
fn cancel_on_interrupt(backends: &Backends, order: &MessageOrder) -> Result<(), SignalError> {
    // As the original does here, SIGINT is handled even if it was ignored at the start.
    let others = interrupt::interrupts().filter(|signal| *signal == SIGTERM);
    let mut signals = interrupt::set_handlers(|| Signals::new(others.chain([SIGINT])))?;
    let (backends, order) = (backends.clone(), order.clone());
    thread::spawn(move || {
        for (number, _) in signals.forever().enumerate() {
            if number > 0 {
                std::process::exit(INTERRUPTED);
            }
            let (backends, order) = (backends.clone(), order.clone());
            thread::spawn(move || {
                let held = order.lock();
                if let Err(reason) = backends.cancel() {
                    (USER.tell)(&format!("Could not send cancel request: {reason}"));
                    std::process::exit(INTERRUPTED);
                }
                (USER.tell)("Cancel request sent");
                drop(held);
                loop {
                    thread::sleep(REPEAT_AFTER);
                    // The request has been reported; this repeats it until the program ends.
                    let _ = backends.cancel();
                }
            });
        }
    });
    Ok(())
}
