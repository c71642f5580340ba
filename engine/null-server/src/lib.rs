//! The null server: it speaks PostgreSQL's protocol, but executes nothing, and answers any statement at once or after a
//! known delay. The throughput that a client reaches against it is the limit of the client itself, and the latencies
//! that the client reports can be compared with the known delay.

mod copy_in;
mod delay;
mod extended;
mod listening;
mod messages;
mod named;
mod options;
mod queue;
mod serving;
mod session;
mod statements;
#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;

use ground::clock::Clock;
use ground::interrupt::{self, SignalError};
use ground::options::{ERROR, exit_status};
use ground::output::heed_closed_pipe;
use ground::readiness::Readiness;
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use thiserror::Error;

use listening::{Door, Listener};
use messages::EncodedRows;
pub use options::manual;
use options::{OptionError, ServerOptions};
use queue::ServiceQueue;
use serving::{ServerState, Serving, Waker};
use session::Setup;

/// The number of open files that the server needs in addition to the sockets of its clients and the files of its
/// threads.
const OWN_FILES: u64 = 32;
/// The number of open files that the server needs for each of its threads.
const FILES_PER_THREAD: u64 = Readiness::FILES + Waker::FILES;

/// Runs the server with `args`, which do not include the program's name. The exit status is 0 after a signal, and 3
/// after an error.
pub fn main(args: Vec<String>) -> ExitCode {
    let parsed = options::parse(args).map_err(|stop| stop.map(ServeError::Options));
    let served = parsed.and_then(|options| Ok(serve(&options)?));
    exit_status(served.map(|()| 0), ERROR, |error| format!("null-server: {error}"))
}

/// The error for which the server cannot run. Each message is a sentence.
#[derive(Debug, Error)]
enum ServeError {
    #[error(transparent)]
    Options(OptionError),
    #[error(transparent)]
    Signals(SignalError),
    #[error("could not read the limit of open files: {0}")]
    FileLimit(Errno),
    #[error(
        "the null server needs {wanted} open files for --max-connections, but the system's limit is {hard}: raise the \
         limit (ulimit -Hn), or allow fewer connections"
    )]
    FewFiles { wanted: u64, hard: u64 },
    #[error("could not raise the limit of open files to {wanted}: {error}")]
    RaisedLimit { wanted: u64, error: Errno },
    #[error("could not listen on {place}: {error}")]
    Listen { place: String, error: io::Error },
    #[error("could not serve the clients: {0}")]
    Serve(io::Error),
    #[error("could not write on standard output: {0}")]
    Announce(io::Error),
}

/// Serves clients until a signal ends the server.
fn serve(options: &ServerOptions) -> Result<(), ServeError> {
    let stop = stop_signal().map_err(ServeError::Signals)?;
    raise_file_limit(options)?;
    let listeners = listen(options)?;
    let setup = Setup { rows: EncodedRows::new(), delay: options.delay.clone(), seed: options.seed };
    let queue = options.servers.map(|servers| Mutex::new(ServiceQueue::new(servers)));
    let shared = Arc::new(ServerState {
        setup,
        clock: Clock::start(),
        queue,
        stop: AtomicBool::new(false),
        open: AtomicUsize::new(0),
    });
    let failed = ServeError::Serve;
    let mut doors = Vec::new();
    let mut threads = Vec::new();
    for _ in 0..options.threads {
        let (inbox, accepted) = channel();
        let (serving, waker) = Serving::new(Arc::clone(&shared), accepted).map_err(failed)?;
        doors.push(Door { inbox, waker });
        let builder = thread::Builder::new().name("null-server".to_owned());
        threads.push(builder.spawn(move || serving.serve()).map_err(failed)?);
    }
    announce(&listeners).map_err(ServeError::Announce)?;
    let max_connections = options.max_connections.unwrap_or(usize::MAX);
    let accepted = listening::accept(&listeners, &doors, &shared, max_connections, &stop);
    shared.stop.store(true, Ordering::Relaxed);
    let woken = doors.iter().try_for_each(|door| door.waker.wake());
    let ended: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap_or(Ok(()))).collect();
    accepted.and(woken).and(ended.into_iter().collect()).map_err(failed)
}

/// Returns a socket that becomes readable when SIGINT or SIGTERM has arrived.
fn stop_signal() -> Result<UnixStream, SignalError> {
    let (receiver, sender) = UnixStream::pair()?;
    interrupt::set_handlers(|| {
        [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM]
            .into_iter()
            .try_for_each(|signal| signal_hook::low_level::pipe::register(signal, sender.try_clone()?).map(drop))
    })?;
    Ok(receiver)
}

/// Raises the limit of open files to the number that `max_connections` clients need. Fails if the operating system does
/// not permit this. Without `max_connections`, raises the limit as far as the operating system permits.
fn raise_file_limit(options: &ServerOptions) -> Result<(), ServeError> {
    let own = OWN_FILES + FILES_PER_THREAD * options.threads as u64;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(ServeError::FileLimit)?;
    let wanted = options.max_connections.map_or(hard, |clients| own + clients as u64);
    if wanted > hard {
        return Err(ServeError::FewFiles { wanted, hard });
    }
    match setrlimit(Resource::RLIMIT_NOFILE, soft.max(wanted), hard) {
        // If the user has not chosen a number of connections, the current limit is used.
        Err(error) if options.max_connections.is_some() => Err(ServeError::RaisedLimit { wanted, error }),
        _ => Ok(()),
    }
}

fn listen(options: &ServerOptions) -> Result<Vec<Listener>, ServeError> {
    let failed = |place: &dyn Display, error| ServeError::Listen { place: place.to_string(), error };
    let unix = options.socket().map(|path| Listener::unix(&path).map_err(|error| failed(&path.display(), error)));
    let tcp = options.address.map(|address| Listener::tcp(address).map_err(|error| failed(&address, error)));
    unix.into_iter().chain(tcp).collect()
}

/// Prints the line with the server's addresses. Scripts wait for this line before they connect.
fn announce(listeners: &[Listener]) -> io::Result<()> {
    let places: Vec<_> = listeners.iter().map(|listener| listener.place.as_str()).collect();
    let mut out = io::stdout();
    let line = format!("null-server: listening on {}\n", places.join(", "));
    heed_closed_pipe(out.write_all(line.as_bytes()).and_then(|()| out.flush()))
}
