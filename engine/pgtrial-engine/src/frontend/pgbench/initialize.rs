//! `pgbench -i`.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;

use super::messages::Failure;
use super::options::Options;
use super::{session, target};
use ground::interrupt;
use ground::output;
use tables::{Backends, InitOptions, LoadError, PartitionMethod, Step};
use wire::target::Target;

/// Exit status when an interrupt finds nothing to cancel.
const INTERRUPTED: i32 = 1;

/// How soon what was between two statements when the others were cancelled is cancelled too.
const AGAIN: Duration = Duration::from_millis(100);

/// Makes the tables as the options say.
pub fn run(options: &Options) -> Result<u8, Failure> {
    const PURPOSE: &str = "initialization";
    let target = target(options, PURPOSE)?;
    let mut session = session(&target, PURPOSE)?;
    let init = InitOptions {
        scale: options.scale.unwrap_or(1),
        fillfactor: options.fillfactor,
        quiet: options.quiet,
        tablespace: options.tablespace.clone(),
        index_tablespace: options.index_tablespace.clone(),
        unlogged: options.unlogged_tables,
        partitions: options.partitions,
        partition_method: options.partition_method.unwrap_or(PartitionMethod::Range),
        jobs: options.load_jobs,
        shard: options.load_shard,
    };
    let steps: Vec<_> = options.init_steps.chars().filter_map(Step::from_letter).collect();
    let (backends, turn) = (Backends::default(), Turn::default());
    cancel_on_interrupt(&target, &backends, &turn)?;
    let loaded = tables::initialize(&target, &mut session, &init, &steps, &backends);
    turn.take(|| loaded.map_err(describe))?;
    Ok(0)
}

/// Whose turn it is to speak: first that an interrupt was passed on is told, then what the server makes of it.
#[derive(Clone, Default)]
struct Turn(Arc<Mutex<()>>);

impl Turn {
    fn take<T>(&self, speak: impl FnOnce() -> T) -> T {
        let _turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        speak()
    }
}

fn describe(error: LoadError) -> Failure {
    match error {
        LoadError::Query { sql, error } => {
            Failure::error(format!("query failed: {error}")).detail(format!("Query was: {sql}"))
        }
        LoadError::CopyRefused(error) => Failure::error(format!("unexpected copy in result: {error}")),
        LoadError::CopyFailed(error) => {
            output::print_stderr(format_args!("{error}\n"));
            Failure::error("PQendcopy failed")
        }
        LoadError::Connect(error) => {
            Failure::lines(&[&error.message, "could not create connection for initialization"])
        }
        LoadError::ThreadLost => Failure::error("a loading thread ended unexpectedly"),
    }
}

/// Has the server cancel what it is doing for us when the user interrupts; its error then ends the loading. A second
/// interrupt ends the program at once.
fn cancel_on_interrupt(target: &Arc<Target>, backends: &Backends, turn: &Turn) -> Result<(), Failure> {
    let mut signals = interrupt::set_handlers(|| Signals::new([SIGINT]))
        .map_err(|error| Failure::error(format!("could not set signal handler: {error}")))?;
    let (target, backends, turn) = (Arc::clone(target), backends.clone(), turn.clone());
    thread::spawn(move || {
        for (number, _) in signals.forever().enumerate() {
            if number > 0 {
                std::process::exit(INTERRUPTED);
            }
            let (target, backends, turn) = (Arc::clone(&target), backends.clone(), turn.clone());
            thread::spawn(move || {
                turn.take(|| match backends.cancel(&target) {
                    Ok(()) => output::print_stderr("Cancel request sent\n"),
                    Err(reason) => {
                        output::print_stderr(format_args!("Could not send cancel request: {reason}\n"));
                        std::process::exit(INTERRUPTED);
                    }
                });
                loop {
                    thread::sleep(AGAIN);
                    // The request has been told of; this goes on until the program has ended.
                    let _ = backends.cancel(&target);
                }
            });
        }
    });
    Ok(())
}
