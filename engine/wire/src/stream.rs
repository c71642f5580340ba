//! The bytes and messages of a connection: the socket, TLS if the session is encrypted, the bytes that the socket has
//! not accepted yet, and the incomplete message at the end of the received bytes.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection};

use crate::error::ConnectionError;
use crate::frame::{Flow, Reader, Visitor};
use crate::network::Transport;

/// The state of messages after an attempt to send them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    Whole,
    /// A part of the messages was sent. The rest is sent when the socket can be written:
    /// [`crate::Connection::watch_unsent`].
    InPart,
    /// The messages are stored until the pipeline ends.
    Collected,
}

/// A non-blocking stream of messages to and from a server.
pub struct Stream<T> {
    pub socket: T,
    tls: Option<Box<ClientConnection>>,
    unsent: Vec<u8>,
    reader: Reader,
}

impl<T: Transport> Stream<T> {
    /// Makes a stream without TLS.
    pub fn new(socket: T) -> Self {
        Self { socket, tls: None, unsent: Vec::new(), reader: Reader::default() }
    }

    /// Starts TLS on the socket. The handshake happens in [`Stream::handshake`].
    pub fn start_tls(&mut self, config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<(), rustls::Error> {
        self.tls = Some(Box::new(ClientConnection::new(config, name)?));
        Ok(())
    }

    /// Goes on with the TLS handshake. Returns true when the handshake is complete, or if the stream has no TLS.
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

    /// Returns the server's certificate, which channel binding needs.
    pub fn peer_certificate(&self) -> Option<&CertificateDer<'static>> {
        self.tls.as_ref()?.peer_certificates()?.first()
    }

    /// Returns the application protocol that client and server have agreed on in the TLS handshake (ALPN).
    pub fn alpn_protocol(&self) -> Option<&[u8]> {
        self.tls.as_ref()?.alpn_protocol()
    }

    /// Reads bytes and passes the messages to the visitor, until it stops or no more bytes have arrived. All
    /// connections of a thread share `buffer`.
    #[inline(always)]
    pub fn receive<V: Visitor>(&mut self, buffer: &mut [u8], visitor: &mut V) -> Result<Flow, ConnectionError> {
        if self.reader.has_kept() && self.visit_kept(visitor)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
        loop {
            match self.read(buffer) {
                Ok(0) => return Err(ConnectionError::Closed),
                Ok(count) => {
                    if self.reader.take(&buffer[..count], visitor)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Flow::Continue),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ConnectionError::receiving(error)),
            }
        }
    }

    #[cold]
    fn visit_kept<V: Visitor>(&mut self, visitor: &mut V) -> Result<Flow, ConnectionError> {
        self.reader.take(&[], visitor)
    }

    /// Sends messages. Bytes that the socket does not accept are stored for [`Stream::flush`].
    #[inline(always)]
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<Sent> {
        if self.unsent.is_empty() && self.tls.is_none() {
            match self.socket.write(bytes) {
                Ok(written) if written == bytes.len() => return Ok(Sent::Whole),
                written => return self.send_rest(written, bytes),
            }
        }
        self.send_rest(Ok(0), bytes)
    }

    #[cold]
    fn send_rest(&mut self, written: io::Result<usize>, bytes: &[u8]) -> io::Result<Sent> {
        let written = match written {
            Ok(written) => written,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => 0,
            Err(error) => return Err(error),
        };
        self.queue(&bytes[written..]);
        self.flush()
    }

    /// Stores messages for the next [`Stream::flush`]. Returns the number of stored bytes.
    pub fn queue(&mut self, bytes: &[u8]) -> usize {
        self.unsent.extend_from_slice(bytes);
        self.unsent.len()
    }

    /// Sends the stored bytes, as far as the socket accepts them.
    pub fn flush(&mut self) -> io::Result<Sent> {
        let mut sent = 0;
        while sent < self.unsent.len() {
            match write(&mut self.tls, &mut self.socket, &self.unsent[sent..]) {
                Ok(written) => sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.unsent.drain(..sent);
        if let Some(tls) = &mut self.tls {
            send_tls(tls, &mut self.socket)?;
        }
        Ok(if self.has_unsent() { Sent::InPart } else { Sent::Whole })
    }

    /// Returns true if messages or TLS records are stored that the socket has not accepted yet.
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty() || self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Reads the bytes that have arrived. `Ok(0)` is the end of the stream; `WouldBlock` means that no bytes have
    /// arrived.
    #[inline(always)]
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.read(buffer),
            Some(tls) => read_tls(tls, &mut self.socket, buffer),
        }
    }
}

fn write<T: Transport>(tls: &mut Option<Box<ClientConnection>>, socket: &mut T, bytes: &[u8]) -> io::Result<usize> {
    match tls {
        None => socket.write(bytes),
        Some(tls) => write_tls(tls, socket, bytes),
    }
}

fn read_tls<T: Transport>(tls: &mut ClientConnection, socket: &mut T, buffer: &mut [u8]) -> io::Result<usize> {
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

/// Writes bytes to the TLS session. `WouldBlock` means that the session is full of records that the socket does not
/// accept.
fn write_tls<T: Transport>(tls: &mut ClientConnection, socket: &mut T, bytes: &[u8]) -> io::Result<usize> {
    let taken = tls.writer().write(bytes)?;
    send_tls(tls, socket)?;
    if taken == 0 && !bytes.is_empty() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(taken) }
}

/// Reads TLS records from the socket. If the records cause an alert, it is sent before the error is returned.
fn receive_tls<T: Transport>(tls: &mut ClientConnection, socket: &mut T) -> io::Result<usize> {
    let taken = tls.read_tls(socket)?;
    let state = tls.process_new_packets();
    send_tls(tls, socket)?;
    state.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(taken)
}

/// Sends pending TLS records. It is not an error if the socket accepts no more bytes.
fn send_tls<T: Transport>(tls: &mut ClientConnection, socket: &mut T) -> io::Result<()> {
    while tls.wants_write() {
        match tls.write_tls(socket) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
