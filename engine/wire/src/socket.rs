//! A non-blocking socket to a server, over TCP or in the file system.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use socket2::{Domain, SockAddr, TcpKeepalive, Type};

use crate::params::Params;

/// A write to a closed peer is an error of the call, not a signal. Systems without the flag have a socket option, which
/// `socket2` sets.
#[cfg(not(target_vendor = "apple"))]
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_vendor = "apple")]
const SEND_FLAGS: SendFlags = SendFlags::empty();

/// Where a socket leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocketAddress {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// A socket that is connecting or connected.
pub struct Socket(socket2::Socket);

impl Socket {
    /// Starts connecting.
    pub fn connect(address: &SocketAddress, params: &Params) -> io::Result<Self> {
        match address {
            SocketAddress::Tcp(address) => connect_tcp(*address, params),
            SocketAddress::Unix(path) => connect_unix(path),
        }
        .map(Self)
    }

    /// Whether the socket is connected: `Ok(false)` while it is connecting, an error if that failed.
    pub fn is_connected(&self) -> io::Result<bool> {
        if let Some(error) = self.0.take_error()? {
            return Err(error);
        }
        match self.0.peer_addr() {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Registers the socket for events on readability and, with `writable`, on writability. Asking for the latter only while
    /// something is unsent matters: otherwise each request that the server takes would wake the client.
    pub fn register(&self, registry: &Registry, token: Token, writable: bool) -> io::Result<()> {
        registry.register(&mut SourceFd(&self.0.as_raw_fd()), token, interest(writable))
    }

    /// Changes what [`Socket::register`] asked for.
    pub fn reregister(&mut self, registry: &Registry, token: Token, writable: bool) -> io::Result<()> {
        registry.reregister(&mut SourceFd(&self.0.as_raw_fd()), token, interest(writable))
    }
}

fn interest(writable: bool) -> Interest {
    if writable { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE }
}

impl AsFd for Socket {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The system call without the C library around it. In a program with several threads the C library makes each call a point
/// of cancellation, which costs a tenth of a transaction.
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

fn connect_tcp(address: SocketAddr, params: &Params) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&address.into()) {
        Err(error) if Errno::from_io_error(&error) != Some(Errno::INPROGRESS) => return Err(error),
        _ => {}
    }
    socket.set_tcp_nodelay(true)?;
    let wanted = params.keepalives;
    if wanted.enabled {
        let mut keepalive = TcpKeepalive::new();
        keepalive = wanted.idle.into_iter().fold(keepalive, TcpKeepalive::with_time);
        keepalive = wanted.interval.into_iter().fold(keepalive, TcpKeepalive::with_interval);
        keepalive = wanted.count.into_iter().fold(keepalive, TcpKeepalive::with_retries);
        socket.set_tcp_keepalive(&keepalive)?;
    }
    #[cfg(target_os = "linux")]
    if params.tcp_user_timeout.is_some() {
        socket.set_tcp_user_timeout(params.tcp_user_timeout)?;
    }
    Ok(socket)
}

/// Connects at once or, while the listener's queue is full, blocks until there is room: a Unix socket has no event for that,
/// and the queue is full for moments only.
fn connect_unix(path: &Path) -> io::Result<socket2::Socket> {
    let address = match path.to_str().and_then(|text| text.strip_prefix('@')) {
        // For the system, names in the abstract namespace begin with a zero byte.
        Some(name) => SockAddr::unix(format!("\0{name}"))?,
        None => SockAddr::unix(path)?,
    };
    let socket = socket2::Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.connect(&address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_of_a_unix_listener_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = socket2::Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        listener.bind(&SockAddr::unix(&path).unwrap()).unwrap();
        listener.listen(0).unwrap();
        let client = std::thread::spawn(move || (0..5).map(|_| connect_unix(&path)).collect::<io::Result<Vec<_>>>());
        for _ in 0..5 {
            listener.accept().unwrap();
        }
        assert_eq!(client.join().unwrap().unwrap().len(), 5);
    }
}
