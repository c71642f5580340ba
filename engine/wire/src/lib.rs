//! Connections: carry a statement to the server and its reply back, over protocol 3, without ever blocking.

pub mod answer;
mod authentication;
mod cursor;
pub mod error;
mod executing;
mod frames;
#[cfg(test)]
mod hostile;
pub mod int_field;
pub mod measured;
pub mod message;
mod noted;
mod opening;
pub mod params;
mod prepared;
mod reply;
mod request;
pub mod rows;
pub mod session;
mod session_kind;
mod startup;
pub mod statement;
mod stream;
pub mod target;
mod tls;
pub mod value;

use std::io;
use std::sync::Arc;
use std::time::Instant;

use mio::{Registry, Token};

pub use answer::{Answered, QueryKind, Rows};
use error::ConnectionError;
use executing::Plain;
pub use executing::{Again, Received};
use frames::{Flow, Rest};
use opening::Opening;
use prepared::Prepared;
use reply::{Answer, ReplySink};
pub use reply::{Reply, StatementError};
use request::Request;
use rows::ResultSet;
pub use startup::ServerInfo;
use statement::{SYNC, Statement};
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
    prepared: Prepared,
    request: Request,
    /// Whether requests are collected until the pipeline's end.
    in_pipeline: bool,
    answer: Answer,
    opening: Option<Box<Opening>>,
    waits_for_write: bool,
    plain: Plain,
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
            prepared: Prepared::default(),
            request: Request::default(),
            in_pipeline: false,
            answer: Answer::default(),
            opening: Some(Box::new(opening)),
            waits_for_write: true,
            plain: Plain::No,
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
        // What the server has said in time counts, even if we come to read it late.
        let progress = match opening.startup.advance(&mut self.stream, &mut self.rest, buffer) {
            Ok(None) if opening.deadline().is_some_and(|deadline| Instant::now() >= deadline) => {
                Err(ConnectionError::Timeout)
            }
            progress => progress,
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
                    message: ground::output::plain_io_message(&error),
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

    /// Has the server parse those of `statements` that are new to it; false if there are none.
    pub fn prepare(&mut self, statements: &[Statement]) -> Result<bool, ConnectionError> {
        let mut messages = Vec::new();
        for statement in statements {
            if !self.prepared.has(statement.id) {
                messages.extend_from_slice(statement.parse_message());
                self.prepared.expect(statement.id);
            }
        }
        if messages.is_empty() {
            return Ok(false);
        }
        messages.extend_from_slice(&SYNC);
        self.answer.expect(Rows::Skipped);
        let sent = self.send_bytes(&messages);
        self.request = Request { bytes: messages, has_text: true };
        sent.map(|()| true)
    }

    /// Collects the requests that follow, until [`Connection::end_pipeline`].
    pub fn start_pipeline(&mut self) {
        self.plain = Plain::No;
        self.in_pipeline = true;
        self.answer.expect(Rows::Skipped);
        self.answer.awaited = 0;
        self.request.has_text = false;
    }

    /// Ends a part of the pipeline.
    pub fn sync_pipeline(&mut self) {
        self.unsent.extend_from_slice(&SYNC);
        self.answer.awaited += 1;
    }

    /// Sends what the pipeline holds; the reply is that to all of it.
    pub fn end_pipeline(&mut self) -> Result<(), ConnectionError> {
        self.sync_pipeline();
        self.in_pipeline = false;
        self.flush()
    }

    /// Whether requests are being collected.
    #[inline]
    pub fn in_pipeline(&self) -> bool {
        self.in_pipeline
    }

    /// The text that was sent with the last request, if any was.
    pub fn sent_text(&self) -> Option<&str> {
        self.request.statement()
    }

    /// The results of the last query whose rows were to be kept.
    pub fn take_results(&mut self) -> Vec<ResultSet> {
        self.answer.take_results()
    }

    /// Sends one simple query without values.
    pub fn send_query(&mut self, sql: &str, rows: Rows) -> Result<(), ConnectionError> {
        let mut message = bytes::BytesMut::new();
        postgres_protocol::message::frontend::query(sql, &mut message)?;
        self.request = Request { bytes: message.to_vec(), has_text: true };
        self.answer.noted.expect(true);
        self.answer.expect(rows);
        self.send_bytes(&message)
    }

    /// Has the server parse and describe `statement`, whatever this session knows of it.
    pub fn send_prepare(&mut self, statement: &Statement) -> Result<(), ConnectionError> {
        let mut messages = statement.parse_message().to_vec();
        self.prepared.expect(statement.id);
        messages.extend_from_slice(&statement.describe_message());
        messages.extend_from_slice(&SYNC);
        self.answer.noted.expect(true);
        self.answer.expect(Rows::Handed);
        self.request = Request { bytes: messages.clone(), has_text: true };
        self.send_bytes(&messages)
    }

    /// Gives back the memory that only preparing needs.
    pub fn trim(&mut self) {
        self.request = Request::default();
        self.prepared.trim();
    }

    /// What the answer was to a request whose rows are counted or handed on.
    pub fn answered(&self) -> &Answered {
        self.answer.noted.answered()
    }

    /// Sends what is not known to be plain.
    fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        self.plain = Plain::No;
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

    /// The reply to the last request, if it is complete; `received` is what has been read of it by now. The error is the
    /// server's last word where it left one.
    pub fn receive(
        &mut self,
        received: Received,
        buffer: &mut [u8],
        registry: &Registry,
        token: Token,
    ) -> Result<Option<Reply>, ConnectionError> {
        if self.plain == Plain::Counted {
            // Of the answer before, which went the short way.
            self.answer.noted.clear();
        }
        self.plain = Plain::No;
        // A server that takes no more may have said why: what it said is read first.
        let flushed = if !self.unsent.is_empty() || self.waits_for_write {
            self.flush().and_then(|()| Ok(self.update_interest(registry, token)?))
        } else {
            Ok(())
        };
        let mut sink =
            ReplySink { status: 0, answer: &mut self.answer, prepared: &mut self.prepared, request: &self.request };
        let flow = match received {
            Received::Nothing => self.rest.receive(&mut self.stream, buffer, &mut sink),
            Received::Some(read) => self.rest.receive_more(Ok(read), &mut self.stream, buffer, &mut sink),
            Received::Failed(error) => self.rest.receive_more(Err(error), &mut self.stream, buffer, &mut sink),
            Received::Whole(_) => Ok(Flow::Continue),
        };
        match flow {
            Ok(Flow::Stop) => {
                let status = sink.status;
                self.prepared.forget_pending();
                Ok(Some(Reply { status, error: self.answer.take_error() }))
            }
            Ok(Flow::Continue) => flushed.map(|()| None),
            Err(error) => Err(match self.answer.take_error() {
                Some(last) => ConnectionError::Server(last.error),
                None => error,
            }),
        }
    }

    /// Whether the server has said that it ends the session of a connection that waits for no answer: there is no other
    /// error that nobody asked for. It hangs up when it has tidied up, which may take long.
    pub fn is_dismissed(&self) -> bool {
        self.answer.has_error()
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
