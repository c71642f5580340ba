//! A non-blocking socket to a server, plain or under TLS.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection};

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
    /// Starts connecting. A full queue of a Unix socket's listener shows as `WouldBlock`: try again later.
    pub fn connect(address: &SocketAddress) -> io::Result<Self> {
        let socket = match address {
            SocketAddress::Tcp(address) => {
                let stream = TcpStream::connect(*address)?;
                stream.set_nodelay(true)?;
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

    /// Reads what is there. `Ok(0)` is the end; `WouldBlock` means wait.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.read(buffer),
            Some(tls) => read_tls(tls, &mut self.socket, buffer),
        }
    }

    /// Writes what the socket takes. `WouldBlock` means wait.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.write(bytes),
            Some(tls) => {
                let taken = tls.writer().write(bytes)?;
                send_tls(tls, &mut self.socket)?;
                Ok(taken)
            }
        }
    }

    /// Sends TLS records that the socket did not take before; true when nothing is left.
    pub fn flush(&mut self) -> io::Result<bool> {
        match &mut self.tls {
            None => Ok(true),
            Some(tls) => {
                send_tls(tls, &mut self.socket)?;
                Ok(!tls.wants_write())
            }
        }
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

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(buffer),
            Socket::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(bytes),
            Socket::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    if let Some(name) = path.as_os_str().to_str().and_then(|text| text.strip_prefix('@')) {
        return connect_abstract(name);
    }
    UnixStream::connect(path)
}

#[cfg(target_os = "linux")]
fn connect_abstract(name: &str) -> io::Result<UnixStream> {
    use std::os::linux::net::SocketAddrExt;
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
    UnixStream::connect_addr(&address)
}

#[cfg(not(target_os = "linux"))]
fn connect_abstract(_name: &str) -> io::Result<UnixStream> {
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
