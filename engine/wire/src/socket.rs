//! A non-blocking socket to a server, over TCP or as a Unix socket.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use ground::poll::{Poll, Token};
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl, set_tcp_nodelay,
};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use socket2::{Domain, SockAddr, Type};

use crate::error::ConnectionError;
use crate::network::{Network, SocketAddress, Transport};
use crate::params::{Params, TcpOptions};

/// The flags of a write, which make a write to a closed connection return an error and not raise a signal. On systems
/// without this flag, `socket2` sets a socket option instead.
#[cfg(not(target_vendor = "apple"))]
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_vendor = "apple")]
const SEND_FLAGS: SendFlags = SendFlags::empty();

/// A socket that is connecting or connected.
pub struct Socket {
    socket: socket2::Socket,
    /// The address of a listening Unix socket whose queue was full when this socket tried to connect. `None` if the
    /// socket does not have to try again.
    queued_for: Option<Box<SockAddr>>,
}

impl Socket {
    /// Starts to connect to `address`.
    pub fn connect(address: &SocketAddress, params: &Params) -> Result<Self, ConnectionError> {
        match address {
            SocketAddress::Tcp(address) => {
                let options = params.tcp.as_ref().map_err(|reason| ConnectionError::TcpOption(reason.clone()))?;
                connect_tcp(*address, options).map(|socket| Self { socket, queued_for: None })
            }
            SocketAddress::Unix(path) => connect_unix(path).map_err(ConnectionError::Connect),
        }
    }
}

impl Transport for Socket {
    /// Returns true if the socket is connected. If the queue of a listening Unix socket was full, tries again to
    /// connect.
    fn is_connected(&mut self) -> io::Result<bool> {
        if let Some(address) = self.queued_for.take() {
            self.queued_for = enter_queue(&self.socket, address)?;
            return Ok(self.queued_for.is_none());
        }
        if let Some(error) = self.socket.take_error()? {
            return Err(error);
        }
        match self.socket.peer_addr() {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns true if the queue of a listening Unix socket was full at the last attempt to connect.
    fn awaits_room(&self) -> bool {
        self.queued_for.is_some()
    }

    #[cfg(target_os = "linux")]
    fn peer_user(&self) -> Result<u32, ConnectionError> {
        let credentials = rustix::net::sockopt::socket_peercred(self);
        let failed = |error| ConnectionError::Authentication(format!("could not get peer credentials: {error}"));
        Ok(credentials.map_err(failed)?.uid.as_raw())
    }

    #[cfg(not(target_os = "linux"))]
    fn peer_user(&self) -> Result<u32, ConnectionError> {
        Err(ConnectionError::Authentication("requirepeer parameter is not supported on this platform".to_owned()))
    }
}

impl AsFd for Socket {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Calls the system call directly and not through the C library. In a program with several threads the C library makes
/// each read a cancellation point, which costs a tenth of the time of a transaction.
impl Read for Socket {
    #[inline(always)]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (received, _length) = recv(self.as_fd(), buffer, RecvFlags::empty())?;
        Ok(received)
    }
}

impl Write for Socket {
    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.as_fd(), bytes, SEND_FLAGS)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The implementation of [`Network`] for the operating system's sockets.
impl Network for Poll {
    type Transport = Socket;

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn connect(&self, address: &SocketAddress, params: &Params) -> Result<Socket, ConnectionError> {
        Socket::connect(address, params)
    }

    fn register(&self, socket: &Socket, token: Token, writable: bool) -> io::Result<()> {
        Poll::register(self, socket, token, writable)
    }

    fn reregister(&self, socket: &Socket, token: Token, writable: bool) -> io::Result<()> {
        Poll::reregister(self, socket, token, writable)
    }
}

/// Starts to connect over TCP. The options of the socket are set before that, as in libpq.
fn connect_tcp(address: SocketAddr, options: &TcpOptions) -> Result<socket2::Socket, ConnectionError> {
    let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, None);
    let socket = socket.map_err(ConnectionError::Connect)?;
    socket.set_nonblocking(true).map_err(ConnectionError::Connect)?;
    set_options(&socket, options)
        .map_err(|(option, error)| ConnectionError::SocketOption { option, error: error.into() })?;
    match socket.connect(&address.into()) {
        Err(error) if Errno::from_io_error(&error) != Some(Errno::INPROGRESS) => Err(ConnectionError::Connect(error)),
        _ => Ok(socket),
    }
}

/// Sets the options of a TCP socket. An error names the option that the operating system rejects.
fn set_options(socket: &socket2::Socket, options: &TcpOptions) -> Result<(), (&'static str, Errno)> {
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    set_tcp_nodelay(socket, true).map_err(|error| ("TCP_NODELAY", error))?;
    if options.keepalives {
        set_socket_keepalive(socket, true).map_err(|error| ("SO_KEEPALIVE", error))?;
    }
    if let Some(idle) = options.idle {
        set_tcp_keepidle(socket, seconds(idle)).map_err(|error| ("TCP_KEEPIDLE", error))?;
    }
    if let Some(interval) = options.interval {
        set_tcp_keepintvl(socket, seconds(interval)).map_err(|error| ("TCP_KEEPINTVL", error))?;
    }
    if let Some(count) = options.count {
        set_tcp_keepcnt(socket, count).map_err(|error| ("TCP_KEEPCNT", error))?;
    }
    #[cfg(target_os = "linux")]
    if let Some(timeout) = options.user_timeout {
        let set = rustix::net::sockopt::set_tcp_user_timeout(socket, timeout);
        set.map_err(|error| ("TCP_USER_TIMEOUT", error))?;
    }
    Ok(())
}

/// Starts to connect to a Unix socket. If the queue of the listening socket is full, libpq fails with EAGAIN; this
/// socket waits until there is room.
fn connect_unix(path: &Path) -> io::Result<Socket> {
    let address = match path.to_str().and_then(|text| text.strip_prefix('@')) {
        // Names in the abstract namespace begin with a zero byte in the system call.
        Some(name) => SockAddr::unix(format!("\0{name}"))?,
        None => SockAddr::unix(path)?,
    };
    let socket = socket2::Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    let queued_for = enter_queue(&socket, Box::new(address))?;
    Ok(Socket { socket, queued_for })
}

/// Connects to a Unix socket, which never takes time. Returns the address if the queue of the listening socket is full,
/// so that the caller can try again.
fn enter_queue(socket: &socket2::Socket, address: Box<SockAddr>) -> io::Result<Option<Box<SockAddr>>> {
    match socket.connect(&address) {
        Ok(()) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Some(address)),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_of_a_unix_listener_is_waited_for_without_blocking() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = socket2::Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        listener.bind(&SockAddr::unix(&path).unwrap()).unwrap();
        listener.listen(0).unwrap();
        let mut sockets: Vec<_> = (0..5).map(|_| connect_unix(&path).unwrap()).collect();
        assert!(sockets.iter().any(Socket::awaits_room));
        for _ in 0..5 {
            listener.accept().unwrap();
            assert!(sockets.iter_mut().map(|socket| socket.is_connected().unwrap()).count() == 5);
        }
        assert!(sockets.iter_mut().all(|socket| socket.is_connected().unwrap()));
    }

    #[test]
    fn a_unix_listener_that_closes_while_its_queue_is_full_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = socket2::Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        listener.bind(&SockAddr::unix(&path).unwrap()).unwrap();
        listener.listen(0).unwrap();
        let mut sockets: Vec<_> = (0..5).map(|_| connect_unix(&path).unwrap()).collect();
        drop(listener);
        let waiting = sockets.iter_mut().find(|socket| socket.awaits_room()).unwrap();
        assert_eq!(waiting.is_connected().unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }
}
