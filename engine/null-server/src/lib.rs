//! A server with nothing behind it: it speaks PostgreSQL's protocol and answers any statement at once or after a known
//! delay. What a client reaches against it is the client's own ceiling, and the latencies that it reports can be checked.

mod answers;
mod copying;
mod delay;
mod extended;
#[cfg(test)]
mod hostile;
mod listening;
mod options;
mod serving;
mod session;
mod socket;
mod statements;

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use answers::Answers;
use ground::interrupt;
use ground::output::{print_stderr, print_stdout};
use listening::{Door, Listener};
use options::{Command, Options};
use serving::{Serving, Shared};
use session::Setup;

/// Files that the server needs beside its clients' sockets, and for each thread.
const OWN_FILES: u64 = 32;
const FILES_OF_A_THREAD: u64 = 2;

/// Runs the server with `args` (without the program's name); the status is 0 when a signal ended it, 1 for a refusal.
pub fn main(args: Vec<String>) -> ExitCode {
    let done = match options::parse(args) {
        Ok(Command::Help) => {
            print_stdout(options::HELP);
            Ok(())
        }
        Ok(Command::Serve(options)) => serve(options),
        Err(error) => Err(error),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_stderr(format_args!("null-server: {error}\n"));
            ExitCode::from(1)
        }
    }
}

/// Serves until a signal comes; the error is one sentence.
fn serve(options: Options) -> Result<(), String> {
    let stop = stop_signal().map_err(|error| format!("could not set a signal handler: {error}"))?;
    make_room(&options)?;
    let mut listeners = listen(&options)?;
    let setup = Setup { answers: Answers::new(), delay: options.delay, seed: options.seed };
    let shared = Arc::new(Shared { setup, stop: AtomicBool::new(false), open: AtomicUsize::new(0) });
    let system = |error: io::Error| format!("could not serve: {error}");
    let mut doors = Vec::new();
    let mut threads = Vec::new();
    for _ in 0..options.threads {
        let (inbox, accepted) = channel();
        let (serving, waker) = Serving::new(Arc::clone(&shared), accepted).map_err(system)?;
        doors.push(Door { inbox, waker });
        let builder = thread::Builder::new().name("null-server".to_owned());
        threads.push(builder.spawn(move || serving.serve()).map_err(system)?);
    }
    announce(&listeners).map_err(|error| format!("could not write on standard output: {error}"))?;
    let accepted =
        listening::accept(&mut listeners, &doors, &shared, options.max_connections.unwrap_or(usize::MAX), stop);
    shared.stop.store(true, Ordering::Relaxed);
    let woken = doors.iter().try_for_each(|door| door.waker.wake());
    let ended = threads.into_iter().map(|thread| thread.join().unwrap_or(Ok(())));
    let ended: io::Result<Vec<()>> = ended.collect();
    accepted.and(woken).and(ended.map(|_| ())).map_err(system)
}

/// A socket from which a byte can be read when SIGINT or SIGTERM has come.
fn stop_signal() -> io::Result<UnixStream> {
    let (receiver, sender) = UnixStream::pair()?;
    interrupt::set_handlers(|| {
        [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM]
            .into_iter()
            .try_for_each(|signal| signal_hook::low_level::pipe::register(signal, sender.try_clone()?).map(drop))
    })?;
    Ok(receiver)
}

/// Raises the limit of open files to what the clients need, as far as the system lets it.
fn make_room(options: &Options) -> Result<(), String> {
    let own = OWN_FILES + FILES_OF_A_THREAD * options.threads as u64;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)
        .map_err(|error| format!("could not read the limit of open files: {error}"))?;
    let wanted = match options.max_connections {
        None => hard,
        Some(clients) => own + clients as u64,
    };
    if wanted > hard {
        return Err(format!("{wanted} open files are needed, and the system's limit is {hard}"));
    }
    match setrlimit(Resource::RLIMIT_NOFILE, soft.max(wanted), hard) {
        // Where nobody asked for a number, what there is will do.
        Err(error) if options.max_connections.is_some() => {
            Err(format!("could not raise the limit of open files to {wanted}: {error}"))
        }
        _ => Ok(()),
    }
}

fn listen(options: &Options) -> Result<Vec<Listener>, String> {
    let mut listeners = Vec::new();
    if let Some(path) = &options.socket {
        let listener = Listener::unix(path);
        listeners.push(listener.map_err(|error| format!("could not listen on {}: {error}", path.display()))?);
    }
    if let Some(address) = options.address {
        let listener = Listener::tcp(address);
        listeners.push(listener.map_err(|error| format!("could not listen on {address}: {error}"))?);
    }
    Ok(listeners)
}

/// The line that a script can wait for.
fn announce(listeners: &[Listener]) -> io::Result<()> {
    let places: Vec<_> = listeners.iter().map(Listener::to_string).collect();
    let mut out = io::stdout();
    writeln!(out, "null-server: listening on {}", places.join(", "))?;
    out.flush()
}
