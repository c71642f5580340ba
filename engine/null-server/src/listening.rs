//! Accepts connections and hands them to the threads of the server.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::Duration;

use ground::output::print_stderr;
use ground::poll::{Poll, Ready, Token};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::serving::{Accepted, ServerState, Waker};
use crate::session::ClientSession;

/// The maximum length of the queue of connections that have not been accepted yet. The operating system may reduce it.
const BACKLOG: i32 = 16_384;

/// The time for which the server stops accepting connections when it has no file descriptor left.
const PAUSE: Duration = Duration::from_millis(50);

/// The token under which the poll reports the signal that stops the server. The tokens of listening sockets are their
/// indexes.
const STOP: Token = Token(usize::MAX - 2);

/// A socket on which the server listens for connections.
pub struct Listener {
    socket: Socket,
    /// The address or path of the socket, as messages show it.
    pub place: String,
    /// The path of a Unix socket. The file is removed when the listener is dropped.
    file: Option<PathBuf>,
}

impl Listener {
    /// Listens on a TCP address.
    pub fn tcp(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        listen(&socket)?;
        let address = socket.local_addr()?.as_socket().unwrap_or(address);
        Ok(Self { socket, place: address.to_string(), file: None })
    }

    /// Listens on a Unix socket that only this account can use. Replaces a socket file that an earlier server has left
    /// behind.
    pub fn unix(path: &Path) -> io::Result<Self> {
        if path.exists() && is_abandoned(path) {
            std::fs::remove_file(path)?;
        }
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.bind(&SockAddr::unix(path)?)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))?;
        listen(&socket)?;
        Ok(Self { socket, place: path.display().to_string(), file: Some(path.to_owned()) })
    }

    fn accept(&self) -> io::Result<Socket> {
        let (socket, _) = self.socket.accept()?;
        socket.set_nonblocking(true)?;
        if self.file.is_none() {
            socket.set_tcp_nodelay(true)?;
        }
        Ok(socket)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.file {
            // Another process may have removed the file.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn listen(socket: &Socket) -> io::Result<()> {
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)
}

/// Returns true if no server listens on the socket file any more.
fn is_abandoned(path: &Path) -> bool {
    UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// The channel through which a thread receives new connections, and the waker that tells the thread to look for them.
pub struct Door {
    pub inbox: Sender<Accepted>,
    pub waker: Waker,
}

/// Accepts clients and hands them to the threads in turn, until `stop` becomes readable. If there are already
/// `max_connections` clients, a new client gets an error.
pub fn accept(
    listeners: &[Listener],
    doors: &[Door],
    shared: &Arc<ServerState>,
    max_connections: usize,
    stop: &UnixStream,
) -> io::Result<()> {
    let mut poll = Poll::new()?;
    poll.register(stop, STOP, false)?;
    for (number, listener) in listeners.iter().enumerate() {
        poll.register(&listener.socket, Token(number), false)?;
    }
    let (mut ready, mut patience, mut is_reported) = (Ready::default(), None, false);
    let mut number = 0u32;
    loop {
        let count = poll.wait(&mut ready, patience)?;
        if ready.tokens(count).any(|token| Token(token) == STOP) {
            return Ok(());
        }
        patience = None;
        // All listening sockets are tried, since after a pause no event reports the clients that are waiting.
        for listener in listeners {
            loop {
                let socket = match listener.accept() {
                    Ok(socket) => socket,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if concerns_one_client(&error) => continue,
                    Err(error) => {
                        if !is_reported {
                            print_stderr(format_args!("null-server: could not accept a connection: {error}\n"));
                            is_reported = true;
                        }
                        patience = Some(PAUSE);
                        break;
                    }
                };
                let refused = shared.open.fetch_add(1, Ordering::Relaxed) >= max_connections;
                let session = ClientSession::new(number, &shared.setup, refused);
                let door = &doors[number as usize % doors.len()];
                number = number.wrapping_add(1);
                let handed = door.inbox.send(Accepted { socket, session });
                handed.map_err(|_| io::Error::other("a thread of the server has ended"))?;
                door.waker.wake()?;
            }
        }
    }
}

/// Returns true if the error affects only the client that was being accepted.
fn concerns_one_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}
