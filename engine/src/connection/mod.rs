//! Connections: carry a statement to the server and its reply back, over protocol 3, without ever blocking.

mod authentication;
mod cursor;
pub mod error;
mod frames;
#[cfg(test)]
mod hostile;
mod opening;
pub mod params;
pub mod session;
mod session_kind;
mod startup;
pub mod statement;
mod stream;
pub mod target;
mod tls;

use std::io;
use std::sync::Arc;
use std::time::Instant;

use mio::{Registry, Token};

use crate::program::value::Value;
use error::{ConnectionError, ServerError};
use frames::{Flow, Rest, Sink};
use opening::Opening;
pub use startup::ServerInfo;
use statement::{QueryMode, Statement};
use stream::Stream;
use target::Target;

/// Size of the buffer that connections of one thread share for reading, bytes.
pub const BUFFER_SIZE: usize = 64 * 1024;

/// One client's connection.
pub struct Connection {
    stream: Stream,
    rest: Rest,
    /// What the socket has not taken yet.
    unsent: Vec<u8>,
    /// Which statements this session has parsed, a bit for each.
    prepared: Vec<u64>,
    request: Request,
    /// An error of the reply that is being received.
    error: Option<Box<ServerError>>,
    opening: Option<Box<Opening>>,
    waits_for_write: bool,
}

/// The last request, kept as it was sent if it holds the text of a statement: an error may point into it.
#[derive(Default)]
struct Request {
    bytes: Vec<u8>,
    has_text: bool,
}

/// How far a connection has come.
#[derive(Debug)]
pub enum Progress {
    /// Waiting for the server.
    Pending,
    /// Another socket is being tried: it must be registered.
    Reopened,
    /// Ready for statements.
    Ready(ServerInfo),
}

/// The server's answer to one request.
#[derive(Debug)]
pub struct Reply {
    /// `I` idle, `T` in a transaction, `E` in a failed transaction.
    pub status: u8,
    pub error: Option<Box<ServerError>>,
}

/// Why no attempt led to a session: libpq's lines, and the SQLSTATE of the last.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct OpenError {
    pub message: String,
    pub sqlstate: String,
}

impl Connection {
    /// Starts connecting to `target`.
    pub fn open(target: &Arc<Target>) -> Result<Self, OpenError> {
        Opening::begin(target).map(Self::from_opening)
    }

    fn from_opening((opening, stream): (Opening, Stream)) -> Self {
        Self {
            stream,
            rest: Rest::default(),
            unsent: Vec::new(),
            prepared: Vec::new(),
            request: Request::default(),
            error: None,
            opening: Some(Box::new(opening)),
            waits_for_write: true,
        }
    }

    /// When the attempt that is being made will be given up; [`Connection::advance`] does that.
    pub fn deadline(&self) -> Option<Instant> {
        self.opening.as_ref()?.deadline()
    }

    /// Has the poll tell of this connection under `token`.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.stream.register(registry, token, self.waits_for_write)
    }

    /// Asks for writability only while something is unsent.
    fn update_interest(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let wanted = match &self.opening {
            Some(opening) => opening.startup.wants_write() || self.stream.has_unsent(),
            None => self.has_unsent(),
        };
        if wanted != self.waits_for_write {
            self.waits_for_write = wanted;
            self.stream.reregister(registry, token, wanted)?;
        }
        Ok(())
    }

    /// Goes on with the session's start; for connections that are not ready.
    pub fn advance(&mut self, buffer: &mut [u8], registry: &Registry, token: Token) -> Result<Progress, OpenError> {
        let Some(mut opening) = self.opening.take() else { return Ok(Progress::Ready(ServerInfo::default())) };
        let progress = if opening.deadline().is_some_and(|deadline| Instant::now() >= deadline) {
            Err(ConnectionError::Timeout)
        } else {
            opening.startup.advance(&mut self.stream, &mut self.rest, buffer)
        };
        match progress {
            Ok(ready) => {
                let progress = match ready {
                    Some(server) => Progress::Ready(server),
                    None => {
                        self.opening = Some(opening);
                        Progress::Pending
                    }
                };
                self.update_interest(registry, token).map_err(|error| OpenError {
                    message: target::plain_io_message(&error),
                    sqlstate: "08006".to_owned(),
                })?;
                Ok(progress)
            }
            Err(error) => {
                if matches!(error, ConnectionError::WrongSession(_)) {
                    self.terminate();
                }
                *self = opening.fail(&error).map(Self::from_opening)?;
                Ok(Progress::Reopened)
            }
        }
    }

    /// Sends a statement with its values. `scratch` is the thread's buffer for encoding.
    #[inline]
    pub fn send(
        &mut self,
        statement: &Statement,
        mode: QueryMode,
        values: &[Value],
        scratch: &mut Vec<u8>,
    ) -> Result<(), ConnectionError> {
        scratch.clear();
        let (word, bit) = (statement.id / 64, 1u64 << (statement.id % 64));
        let prepared = self.prepared.get(word).is_some_and(|bits| bits & bit != 0);
        statement.encode(mode, prepared, values, scratch);
        if !prepared && mode == QueryMode::Prepared {
            if self.prepared.len() <= word {
                self.prepared.resize(word + 1, 0);
            }
            self.prepared[word] |= bit;
        }
        let sent = self.send_bytes(scratch);
        self.request.has_text = !prepared || mode != QueryMode::Prepared;
        if self.request.has_text {
            std::mem::swap(&mut self.request.bytes, scratch);
        }
        sent
    }

    /// Sends one simple query without values.
    pub fn send_query(&mut self, sql: &str) -> Result<(), ConnectionError> {
        let mut message = bytes::BytesMut::new();
        postgres_protocol::message::frontend::query(sql, &mut message)?;
        self.request = Request { bytes: message.to_vec(), has_text: true };
        self.send_bytes(&message)
    }

    #[inline]
    fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(bytes);
            return self.flush();
        }
        let mut sent = 0;
        while sent < bytes.len() {
            match self.stream.write(&bytes[sent..]) {
                Ok(written) => sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.unsent.extend_from_slice(&bytes[sent..]);
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ConnectionError> {
        let waiting = std::mem::take(&mut self.unsent);
        self.send_bytes(&waiting)?;
        Ok(self.stream.flush()?)
    }

    /// The reply to the last request, if it is complete. The error is the server's last word where it left one.
    #[inline]
    pub fn receive(
        &mut self,
        buffer: &mut [u8],
        registry: &Registry,
        token: Token,
    ) -> Result<Option<Reply>, ConnectionError> {
        if !self.unsent.is_empty() || self.waits_for_write {
            self.flush()?;
            self.update_interest(registry, token)?;
        }
        let mut sink = ReplySink { status: 0, error: &mut self.error, request: &self.request };
        match self.rest.receive(&mut self.stream, buffer, &mut sink) {
            Ok(Flow::Stop) => Ok(Some(Reply { status: sink.status, error: self.error.take() })),
            Ok(Flow::Continue) => Ok(None),
            Err(error) => Err(match self.error.take() {
                Some(last) => ConnectionError::Server(last),
                None => error,
            }),
        }
    }

    /// Whether part of a request waits for the socket.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty() || self.stream.has_unsent()
    }

    /// Has the poll tell when the socket takes more, if something is unsent.
    pub fn watch_unsent(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.update_interest(registry, token)
    }

    /// Says good-bye; the socket closes when the connection is dropped.
    pub fn terminate(&mut self) {
        // The server ends the session on the closed socket too, so a failure changes nothing.
        let _ = self.send_bytes(&[b'X', 0, 0, 0, 4]);
    }
}

impl Request {
    /// The statement's text: of a Query message, or of a Parse message, where it follows the statement's name.
    fn statement(&self) -> Option<&str> {
        let (header, body) = self.bytes.split_at_checked(frames::HEADER).filter(|_| self.has_text)?;
        let mut texts = body.split(|byte| *byte == 0);
        let text = if header[0] == b'P' { texts.nth(1) } else { texts.next() };
        std::str::from_utf8(text?).ok()
    }
}

/// Prints a notice as libpq's default does.
fn notice(body: &[u8], statement: Option<&str>) {
    // The context is for errors only.
    eprintln!("{}", ServerError { context: None, ..ServerError::parse(body).of(statement) });
}

/// Reads up to ReadyForQuery and keeps only an error; rows and tags are skipped unread.
struct ReplySink<'a> {
    status: u8,
    error: &'a mut Option<Box<ServerError>>,
    request: &'a Request,
}

impl Sink for ReplySink<'_> {
    #[inline]
    fn wants(&self, kind: u8) -> bool {
        matches!(kind, b'Z' | b'E' | b'N')
    }

    #[inline]
    fn frame(&mut self, kind: u8, body: &[u8]) -> Result<Flow, ConnectionError> {
        match kind {
            b'Z' => {
                self.status = body.first().copied().unwrap_or(0);
                return Ok(Flow::Stop);
            }
            b'E' => *self.error = Some(Box::new(ServerError::parse(body).of(self.request.statement()))),
            b'N' => notice(body, self.request.statement()),
            b'G' | b'W' => {
                return Err(ConnectionError::Protocol("unexpected COPY from a script's statement".to_owned()));
            }
            _ => {}
        }
        Ok(Flow::Continue)
    }
}
