//! A non-blocking socket to a server, plain or under TLS.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection};
use socket2::{SockRef, TcpKeepalive};

use super::params::Params;

/// A peer that has gone is an error of the call, not a signal; where the flag is unknown the socket option says so.
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

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The socket, and the TLS session on it if there is one.
pub struct Stream {
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
}

impl Stream {
    /// Starts connecting.
    pub fn connect(address: &SocketAddress, params: &Params) -> io::Result<Self> {
        let socket = match address {
            SocketAddress::Tcp(address) => {
                let stream = TcpStream::connect(*address)?;
                stream.set_nodelay(true)?;
                watch_peer(SockRef::from(&stream), params)?;
                Socket::Tcp(stream)
            }
            SocketAddress::Unix(path) => Socket::Unix(connect_unix(path)?),
        };
        Ok(Self { socket, tls: None })
    }

    /// Whether the connection stands: `Ok(false)` while it is being made, an error if it failed.
    pub fn is_connected(&self) -> io::Result<bool> {
        match &self.socket {
            Socket::Unix(stream) => stream.take_error()?.map_or(Ok(true), Err),
            Socket::Tcp(stream) => {
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

    /// Puts TLS on the socket; the handshake happens in the reads and writes that follow.
    pub fn start_tls(&mut self, config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<(), rustls::Error> {
        self.tls = Some(Box::new(ClientConnection::new(config, name)?));
        Ok(())
    }

    /// Drives the TLS handshake; true when it is over or there is none.
    pub fn handshake(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.is_handshaking() {
            send_tls(tls, &mut self.socket)?;
            match receive_tls(tls, &mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        send_tls(tls, &mut self.socket)?;
        Ok(true)
    }

    /// The server's certificate, for channel binding.
    pub fn peer_certificate(&self) -> Option<&CertificateDer<'static>> {
        self.tls.as_ref()?.peer_certificates()?.first()
    }

    /// The protocol that the TLS handshake agreed on.
    pub fn alpn_protocol(&self) -> Option<&[u8]> {
        self.tls.as_ref()?.alpn_protocol()
    }

    /// Reads what is there. `Ok(0)` is the end; `WouldBlock` means wait.
    #[inline(always)]
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.read(buffer),
            Some(tls) => read_tls(tls, &mut self.socket, buffer),
        }
    }

    /// Writes what the socket takes. `WouldBlock` means wait.
    #[inline(always)]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.write(bytes),
            Some(tls) => {
                let taken = tls.writer().write(bytes)?;
                send_tls(tls, &mut self.socket)?;
                // Its buffer is full of records that the socket does not take.
                if taken == 0 && !bytes.is_empty() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(taken) }
            }
        }
    }

    /// Sends TLS records that the socket did not take before.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            None => Ok(()),
            Some(tls) => send_tls(tls, &mut self.socket),
        }
    }

    /// Whether TLS is on the socket.
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether TLS records wait for the socket to take them.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Has the poll tell when this socket can be read and, with `writable`, when it can be written. Asking for the latter
    /// only while something is unsent matters: each request taken by the server would wake us otherwise.
    pub fn register(&mut self, registry: &Registry, token: Token, writable: bool) -> io::Result<()> {
        let interest = interest(writable);
        match &mut self.socket {
            Socket::Tcp(stream) => registry.register(stream, token, interest),
            Socket::Unix(stream) => registry.register(stream, token, interest),
        }
    }

    /// Changes what [`Stream::register`] asked for.
    pub fn reregister(&mut self, registry: &Registry, token: Token, writable: bool) -> io::Result<()> {
        let interest = interest(writable);
        match &mut self.socket {
            Socket::Tcp(stream) => registry.reregister(stream, token, interest),
            Socket::Unix(stream) => registry.reregister(stream, token, interest),
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

/// The system's call without the C library around it, which in a program of several threads makes each call a point of
/// cancellation: a tenth of all that a transaction costs.
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

/// Has the system notice a peer that has gone, as the keepalive parameters say.
fn watch_peer(socket: SockRef<'_>, params: &Params) -> io::Result<()> {
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

/// Connects at once or, while the listener's queue is full, as soon as there is room: for a Unix socket there is no
/// event to wait for, and the queue is full for moments only.
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

fn read_tls(tls: &mut ClientConnection, socket: &mut Socket, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match tls.reader().read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
        if receive_tls(tls, socket)? == 0 {
            return Ok(0);
        }
    }
}

/// Takes records from the socket; an alert that they provoke is sent before the error is returned.
fn receive_tls(tls: &mut ClientConnection, socket: &mut Socket) -> io::Result<usize> {
    let taken = tls.read_tls(socket)?;
    let state = tls.process_new_packets();
    send_tls(tls, socket)?;
    state.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(taken)
}

/// Sends pending records; a socket that takes no more is no error.
fn send_tls(tls: &mut ClientConnection, socket: &mut Socket) -> io::Result<()> {
    while tls.wants_write() {
        match tls.write_tls(socket) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
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
