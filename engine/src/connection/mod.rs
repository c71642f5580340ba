//! Connections: carry a statement to the server and its reply back, over protocol 3, without ever blocking.

pub mod error;
mod frames;
pub mod params;
pub mod session;
mod startup;
pub mod statement;
mod stream;
pub mod target;
mod tls;

use std::io;
use std::sync::Arc;

use mio::{Registry, Token};

use crate::program::value::Value;
use error::{ConnectionError, ServerError};
use frames::{Flow, Rest, Sink};
pub use startup::ServerInfo;
use startup::Startup;
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
    /// An error of the reply that is being received.
    error: Option<Box<ServerError>>,
    opening: Option<Box<Opening>>,
    waits_for_write: bool,
}

/// A connection that is not ready yet: the attempts that are left.
struct Opening {
    target: Arc<Target>,
    attempt: usize,
    startup: Startup,
    failures: Vec<String>,
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
        Self::open_from(target, 0, Vec::new())
    }

    fn open_from(target: &Arc<Target>, first: usize, mut failures: Vec<String>) -> Result<Self, OpenError> {
        let mut sqlstate = "08001".to_owned();
        for attempt in first..target.attempts.len() {
            match Stream::connect(&target.attempts[attempt].address) {
                Ok(stream) => {
                    let startup = Startup::new(Arc::clone(target), target.attempts[attempt].clone());
                    let opening = Opening { target: Arc::clone(target), attempt, startup, failures };
                    return Ok(Self {
                        stream,
                        rest: Rest::default(),
                        unsent: Vec::new(),
                        prepared: Vec::new(),
                        error: None,
                        opening: Some(Box::new(opening)),
                        waits_for_write: true,
                    });
                }
                Err(error) => {
                    let error = ConnectionError::Io(error);
                    sqlstate = error.sqlstate().to_owned();
                    failures.push(target.describe_failure(&target.attempts[attempt], &error));
                }
            }
        }
        Err(OpenError { message: failures.join("\n"), sqlstate })
    }

    /// Has the poll tell of this connection under `token`.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.stream.register(registry, token, self.waits_for_write)
    }

    /// Asks for writability only while something is unsent.
    fn update_interest(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let wanted = match &self.opening {
            Some(opening) => opening.startup.wants_write(),
            None => !self.unsent.is_empty(),
        };
        if wanted != self.waits_for_write {
            self.waits_for_write = wanted;
            self.stream.reregister(registry, token, wanted)?;
        }
        Ok(())
    }

    /// Goes on with the session's start; for connections that are not ready.
    pub fn advance(
        &mut self,
        buffer: &mut [u8],
        registry: &Registry,
        token: Token,
    ) -> Result<Progress, OpenError> {
        let Some(mut opening) = self.opening.take() else { return Ok(Progress::Ready(ServerInfo::default())) };
        match opening.startup.advance(&mut self.stream, &mut self.rest, buffer) {
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
                let Opening { target, attempt, mut failures, .. } = *opening;
                let attempted = &target.attempts[attempt];
                failures.push(target.describe_failure(attempted, &error));
                if !may_try_next(&target, attempt, &error) {
                    return Err(OpenError { message: failures.join("\n"), sqlstate: error.sqlstate().to_owned() });
                }
                *self = Self::open_from(&target, attempt + 1, failures)?;
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
        self.send_bytes(scratch)
    }

    /// Sends one simple query without values.
    pub fn send_query(&mut self, sql: &str) -> Result<(), ConnectionError> {
        let mut message = bytes::BytesMut::new();
        postgres_protocol::message::frontend::query(sql, &mut message)?;
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
        self.stream.flush()?;
        Ok(())
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
        let mut sink = ReplySink { status: 0, error: &mut self.error };
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
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
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

/// Whether another attempt makes sense: always after the network's failures; after the server's refusal only with the
/// other choice of TLS at the same server, as libpq does for `prefer` and `allow`.
fn may_try_next(target: &Target, attempt: usize, error: &ConnectionError) -> bool {
    let Some(next) = target.attempts.get(attempt + 1) else { return false };
    let failed = &target.attempts[attempt];
    let other_tls = next.endpoint == failed.endpoint && next.address == failed.address;
    match error {
        ConnectionError::Server(refusal) => other_tls && refusal.sqlstate.starts_with("28"),
        ConnectionError::Authentication(_) => false,
        ConnectionError::Io(_) => true,
        _ => other_tls || next.endpoint != failed.endpoint,
    }
}

/// Prints a notice as libpq's default does.
fn notice(body: &[u8]) {
    eprintln!("{}", ServerError::parse(body));
}

/// Reads up to ReadyForQuery and keeps only an error; rows and tags are skipped unread.
struct ReplySink<'a> {
    status: u8,
    error: &'a mut Option<Box<ServerError>>,
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
            b'E' => *self.error = Some(Box::new(ServerError::parse(body))),
            b'N' => notice(body),
            b'G' | b'W' => {
                return Err(ConnectionError::Protocol("unexpected COPY from a script's statement".to_owned()));
            }
            _ => {}
        }
        Ok(Flow::Continue)
    }
}
