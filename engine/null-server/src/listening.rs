//! Where clients come in: listeners, and the hand-over of their connections to the threads.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::Duration;

use mio::net::{TcpListener, UnixListener};
use mio::{Events, Interest, Poll, Token, Waker};
use socket2::{Domain, SockAddr, Type};

use super::serving::{Accepted, Shared};
use super::session::Session;
use super::socket::Socket;
use ground::output::print_stderr;

/// How many connections may wait for acceptance; systems cut it down to what they allow.
const BACKLOG: i32 = 16_384;

/// How long nobody is accepted when no file is left.
const PAUSE: Duration = Duration::from_millis(50);

/// A socket on which clients come in.
pub enum Listener {
    Tcp(TcpListener, SocketAddr),
    /// Its file goes with it.
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Listens on an address.
    pub fn tcp(address: SocketAddr) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        let listener = TcpListener::from_std(socket.into());
        let address = listener.local_addr()?;
        Ok(Self::Tcp(listener, address))
    }

    /// Listens on a Unix socket, which only this account can use. A file that a former server left is replaced.
    pub fn unix(path: &Path) -> io::Result<Self> {
        if path.exists() && is_left(path) {
            std::fs::remove_file(path)?;
        }
        let socket = socket2::Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.bind(&SockAddr::unix(path)?)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        Ok(Self::Unix(UnixListener::from_std(socket.into()), path.to_owned()))
    }

    fn accept(&self) -> io::Result<Socket> {
        match self {
            Listener::Tcp(listener, _) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
            Listener::Unix(listener, _) => Ok(Socket::Unix(listener.accept()?.0)),
        }
    }

    fn register(&mut self, poll: &Poll, token: Token) -> io::Result<()> {
        match self {
            Listener::Tcp(listener, _) => poll.registry().register(listener, token, Interest::READABLE),
            Listener::Unix(listener, _) => poll.registry().register(listener, token, Interest::READABLE),
        }
    }
}

impl std::fmt::Display for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Listener::Tcp(_, address) => write!(f, "{address}"),
            Listener::Unix(_, path) => write!(f, "{}", path.display()),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            // Whoever removed it before had a reason.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Whether a socket's file has no server any more.
fn is_left(path: &Path) -> bool {
    UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// A thread's door.
pub struct Door {
    pub inbox: Sender<Accepted>,
    pub waker: Waker,
}

/// Accepts clients and deals them to the doors in turn, until a byte comes from `stop`.
pub fn accept(
    listeners: &mut [Listener],
    doors: &[Door],
    shared: &Arc<Shared>,
    most: usize,
    stop: UnixStream,
) -> io::Result<()> {
    stop.set_nonblocking(true)?;
    let mut stop = mio::net::UnixStream::from_std(stop);
    let mut poll = Poll::new()?;
    let stopped = Token(listeners.len());
    poll.registry().register(&mut stop, stopped, Interest::READABLE)?;
    for (number, listener) in listeners.iter_mut().enumerate() {
        listener.register(&poll, Token(number))?;
    }
    let mut events = Events::with_capacity(8);
    let mut number = 0;
    let mut pause = None;
    let mut complained = false;
    loop {
        match poll.poll(&mut events, pause) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        if events.iter().any(|event| event.token() == stopped) {
            return Ok(());
        }
        pause = None;
        // All of them whatever the events say: after a pause nobody tells of those who wait.
        for listener in &*listeners {
            loop {
                let socket = match listener.accept() {
                    Ok(socket) => socket,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if is_of_one_client(&error) => continue,
                    Err(error) => {
                        if !complained {
                            print_stderr(format_args!("null-server: could not accept a connection: {error}\n"));
                            complained = true;
                        }
                        pause = Some(PAUSE);
                        break;
                    }
                };
                let refused = shared.open.fetch_add(1, Ordering::Relaxed) >= most;
                let session = Session::new(number, &shared.setup, refused);
                let door = &doors[number as usize % doors.len()];
                number = number.wrapping_add(1);
                let handed = door.inbox.send(Accepted { socket, session });
                handed.map_err(|_| io::Error::other("a thread of the server has ended"))?;
                door.waker.wake()?;
            }
        }
    }
}

/// Whether only the client that was to be accepted is concerned.
fn is_of_one_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}
