//! A client's socket, of whichever family.

use std::io::{self, Read, Write};

use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};

/// A non-blocking socket.
pub enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Has the poll tell when it can be read and, with `writable`, when it can be written.
    pub fn register(&mut self, registry: &Registry, token: Token, writable: bool) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => registry.register(stream, token, interest(writable)),
            Socket::Unix(stream) => registry.register(stream, token, interest(writable)),
        }
    }

    /// Changes what [`Socket::register`] asked for.
    pub fn reregister(&mut self, registry: &Registry, token: Token, writable: bool) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => registry.reregister(stream, token, interest(writable)),
            Socket::Unix(stream) => registry.reregister(stream, token, interest(writable)),
        }
    }

    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(buffer),
            Socket::Unix(stream) => stream.read(buffer),
        }
    }

    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(bytes),
            Socket::Unix(stream) => stream.write(bytes),
        }
    }
}

/// Writability is only asked for while something is unsent: each answer that a client takes would wake us otherwise.
fn interest(writable: bool) -> Interest {
    if writable { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE }
}
