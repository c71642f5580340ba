//! The command `pgbench -i`, which makes pgbench's tables.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::options::table::PgbenchOptions;
use crate::frontend::common::connection::{Purpose, no_connection, session, target};
use crate::frontend::common::failure::Failure;
use crate::frontend::common::messages::USER;
use ground::interrupt::{self, SignalError};
use tables::{Backends, InitStep, LoadError};
use wire::session::CopyError;

/// The exit status if the program ends at once, because a cancel request could not be sent or because of a second
/// interrupt.
const INTERRUPTED: i32 = 1;

/// The purpose of the connections that make the tables, as error messages name it: `could not create connection for
/// initialization`.
const PURPOSE: Purpose = "initialization";

/// The time between two cancel requests. The request is repeated because it has no effect on a session that is between
/// two statements.
const REPEAT_AFTER: Duration = Duration::from_millis(100);

/// Makes the tables with the options of the command line. Returns the exit status.
pub fn run(PgbenchOptions { run, init, .. }: &PgbenchOptions) -> Result<u8, Failure> {
    let target = target(&run.server, "pgbench", PURPOSE)?;
    let mut session = session(&target, PURPOSE)?;
    let steps: Vec<_> = init.steps.chars().filter_map(InitStep::from_letter).collect();
    let (backends, order) = (Backends::default(), MessageOrder::default());
    cancel_on_interrupt(&backends, &order)?;
    let loaded = tables::initialize(&target, &mut session, &init.tables, &steps, &backends);
    let _held = order.lock();
    loaded.map_err(describe)?;
    Ok(0)
}

/// The lock that keeps two messages in order: the message that a cancel request was sent comes before the server's
/// error that the request causes.
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

/// Starts a thread that waits for SIGINT and SIGTERM. At the first signal it sends a cancel request for each session;
/// the server then reports an error, which ends the loading. A second signal ends the program at once.
fn cancel_on_interrupt(backends: &Backends, order: &MessageOrder) -> Result<(), SignalError> {
    // SIGINT is handled even if the program was started with SIGINT ignored, because `pgbench -i` of PostgreSQL does
    // so, too.
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
                    // Repeats the cancel request until the program ends. An error is ignored, since the first request
                    // has been reported already.
                    let _ = backends.cancel();
                }
            });
        }
    });
    Ok(())
}
