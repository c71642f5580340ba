//! A non-blocking socket to a server, over TCP or in the file system.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net;
use std::path::{Path, PathBuf};

use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use socket2::{SockRef, TcpKeepalive};

use crate::params::Params;

/// A write to a closed peer is an error of the call, not a signal. Systems without the flag have a socket option, which the
/// standard library sets.
#[cfg(not(any(target_vendor = "apple", windows)))]
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;
#[cfg(any(target_vendor = "apple", windows))]
const SEND_FLAGS: SendFlags = SendFlags::empty();

/// Where a socket leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocketAddress {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// A socket that is connecting or connected.
pub enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Starts connecting.
    pub fn connect(address: &SocketAddress, params: &Params) -> io::Result<Self> {
        match address {
            SocketAddress::Tcp(address) => {
                let stream = TcpStream::connect(*address)?;
                stream.set_nodelay(true)?;
                set_keepalive(SockRef::from(&stream), params)?;
                Ok(Self::Tcp(stream))
            }
            SocketAddress::Unix(path) => Ok(Self::Unix(connect_unix(path)?)),
        }
    }

    /// Whether the socket is connected: `Ok(false)` while it is connecting, an error if that failed.
    pub fn is_connected(&self) -> io::Result<bool> {
        match self {
            Self::Unix(stream) => stream.take_error()?.map_or(Ok(true), Err),
            Self::Tcp(stream) => {
                if let Some(error) = stream.take_error()? {
                    return Err(error);
                }
                match stream.peer_addr() {
                    Ok(_) => Ok(true),
                    Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Registers the socket for events on readability and, with `writable`, on writability. Asking for the latter only while
    /// something is unsent matters: otherwise each request that the server takes would wake the client.
    pub fn register(&mut self, registry: &Registry, token: Token, writable: bool) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => registry.register(stream, token, interest(writable)),
            Self::Unix(stream) => registry.register(stream, token, interest(writable)),
        }
    }

    /// Changes what [`Socket::register`] asked for.
    pub fn reregister(&mut self, registry: &Registry, token: Token, writable: bool) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => registry.reregister(stream, token, interest(writable)),
            Self::Unix(stream) => registry.reregister(stream, token, interest(writable)),
        }
    }
}

fn interest(writable: bool) -> Interest {
    if writable { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE }
}

impl AsFd for Socket {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        }
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

/// Sets TCP keepalives and the time limit of sent data, as the parameters say.
fn set_keepalive(socket: SockRef<'_>, params: &Params) -> io::Result<()> {
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
    Ok(())
}

/// Connects at once or, while the listener's queue is full, blocks until there is room: a Unix socket has no event for that,
/// and the queue is full for moments only.
fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    let address = unix_address(path)?;
    match UnixStream::connect_addr(&address) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let stream = net::UnixStream::connect_addr(&address)?;
            stream.set_nonblocking(true)?;
            Ok(UnixStream::from_std(stream))
        }
        done => done,
    }
}

fn unix_address(path: &Path) -> io::Result<net::SocketAddr> {
    match path.as_os_str().to_str().and_then(|text| text.strip_prefix('@')) {
        Some(name) => abstract_address(name),
        None => net::SocketAddr::from_pathname(path),
    }
}

#[cfg(target_os = "linux")]
fn abstract_address(name: &str) -> io::Result<net::SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    net::SocketAddr::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn abstract_address(_name: &str) -> io::Result<net::SocketAddr> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "abstract Unix sockets exist on Linux only"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, SockAddr, Type};

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
