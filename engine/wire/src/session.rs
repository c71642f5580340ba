//! A session that waits for its answers: for the work around a run (versions, counts, vacuum, loading data).

use std::io;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use mio::{Events, Poll, Token};
use postgres_protocol::message::frontend;

use super::error::{ConnectionError, ServerError};
use super::frames::{Flow, Sink};
use super::reply::notice;
use super::startup::INVALID_PASSWORD;
use super::target::Target;
use super::{BUFFER_SIZE, Connection, OpenError, Progress, ServerInfo};
use crate::Rows;

const TOKEN: Token = Token(0);

/// One row of a result; NULL is `None`.
pub type Row = Vec<Option<String>>;

/// What follows a message of COPY data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    More,
    Done,
    /// The data is given up, and so is the statement.
    GiveUp,
}

/// Why a COPY failed.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// Before it took data.
    #[error("{0}")]
    Refused(ConnectionError),
    /// When it had begun to take data.
    #[error("{0}")]
    Failed(ConnectionError),
}

/// A blocking session.
pub struct Session {
    connection: Connection,
    poll: Poll,
    buffer: Vec<u8>,
    /// What the server said when the session started.
    pub server: ServerInfo,
}

impl Session {
    /// Connects to `target`; the error has libpq's lines. Where a password is needed, none is known and there is a
    /// terminal, the user is asked for it, and all later connections to `target` use it.
    pub fn open(target: &Arc<Target>) -> Result<Self, OpenError> {
        match Self::connect(target) {
            Err(error) if error.sqlstate == INVALID_PASSWORD && target.ask_for_password() => Self::connect(target),
            done => done,
        }
    }

    /// The same, and nobody is asked for a password.
    pub fn connect(target: &Arc<Target>) -> Result<Self, OpenError> {
        let io_error = |error: io::Error| OpenError { message: error.to_string(), sqlstate: "08001".to_owned() };
        let mut poll = Poll::new().map_err(io_error)?;
        let mut buffer = vec![0; BUFFER_SIZE];
        let mut connection = Connection::open(target)?;
        connection.register(poll.registry(), TOKEN).map_err(io_error)?;
        let mut events = Events::with_capacity(4);
        loop {
            match connection.advance(&mut buffer, poll.registry(), TOKEN)? {
                Progress::Ready(server) => return Ok(Self { connection, poll, buffer, server }),
                Progress::Reopened => {
                    connection.register(poll.registry(), TOKEN).map_err(io_error)?;
                    continue;
                }
                Progress::Pending => {}
            }
            let patience = connection.deadline().map(|end| end.saturating_duration_since(Instant::now()));
            match poll.poll(&mut events, patience) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(io_error(error)),
                _ => {}
            }
        }
    }

    /// Runs `sql` (one or more statements) and returns the rows of all results. A server error ends it.
    pub fn query(&mut self, sql: &str) -> Result<Vec<Row>, ConnectionError> {
        let mut sink = RowSink::default();
        self.send_query(&mut sink, sql)?;
        self.wait(&mut sink, |sink| sink.ready)?;
        self.outcome(sink)
    }

    /// Runs `COPY ... FROM STDIN`: `fill` appends one message's data to the buffer and says whether more will follow.
    pub fn copy_in(&mut self, sql: &str, mut fill: impl FnMut(&mut Vec<u8>) -> Fill) -> Result<(), CopyError> {
        let mut sink = RowSink::default();
        let refused = |error| CopyError::Refused(error);
        self.send_query(&mut sink, sql).map_err(refused)?;
        self.wait(&mut sink, |sink| sink.ready || sink.copying).map_err(refused)?;
        if !sink.copying {
            return self.outcome(sink).map(drop).map_err(refused);
        }
        match self.send_copy_data(&mut sink, &mut fill) {
            Err(error) => Err(self.last_word(&mut sink, error)),
            Ok(()) => self.wait(&mut sink, |sink| sink.ready).and_then(|()| self.outcome(sink).map(drop)),
        }
        .map_err(CopyError::Failed)
    }

    fn send_query(&mut self, sink: &mut RowSink, sql: &str) -> Result<(), ConnectionError> {
        let sent = self.connection.send_query(sql, Rows::Skipped);
        sent.map_err(|error| self.last_word(sink, error))
    }

    /// Why the socket is broken: a server that ends the session may have said so before.
    fn last_word(&mut self, sink: &mut RowSink, error: ConnectionError) -> ConnectionError {
        if !matches!(error, ConnectionError::Closed | ConnectionError::Send(_)) {
            return error;
        }
        self.wait(sink, |sink| sink.ready).err().unwrap_or(error)
    }

    /// The rows, or the error with the statement it is about.
    fn outcome(&self, sink: RowSink) -> Result<Vec<Row>, ConnectionError> {
        match sink.error {
            None => Ok(sink.rows),
            Some(error) => Err(ConnectionError::Server(Box::new(error.of(self.connection.request.statement())))),
        }
    }

    /// Sends data until there is no more or the server has reported an error; it skips what comes after that.
    fn send_copy_data(
        &mut self,
        sink: &mut RowSink,
        fill: &mut impl FnMut(&mut Vec<u8>) -> Fill,
    ) -> Result<(), ConnectionError> {
        let mut message = Vec::with_capacity(BUFFER_SIZE * 2);
        while sink.error.is_none() {
            message.clear();
            message.extend_from_slice(b"d\0\0\0\0");
            let next = fill(&mut message);
            let length = (message.len() - 1) as u32;
            message[1..5].copy_from_slice(&length.to_be_bytes());
            let mut end = BytesMut::new();
            match next {
                Fill::More => {}
                Fill::Done => frontend::copy_done(&mut end),
                Fill::GiveUp => {
                    message.clear();
                    frontend::copy_fail("given up", &mut end)?;
                }
            }
            message.extend_from_slice(&end);
            self.send_all(&message)?;
            if next != Fill::More {
                break;
            }
            self.take(sink)?;
        }
        Ok(())
    }

    /// Takes what the server has sent, without waiting.
    fn take(&mut self, sink: &mut RowSink) -> Result<(), ConnectionError> {
        let connection = &mut self.connection;
        connection.rest.receive(&mut connection.stream, &mut self.buffer, sink).map(drop).map_err(|error| {
            match (error, sink.error.take()) {
                (ConnectionError::Closed, Some(last)) => ConnectionError::Server(last),
                (error, _) => error,
            }
        })
    }

    fn send_all(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        self.connection.send_bytes(bytes)?;
        let mut events = Events::with_capacity(4);
        while self.connection.has_unsent() {
            self.connection.watch_unsent(self.poll.registry(), TOKEN)?;
            self.poll_once(&mut events)?;
            self.connection.flush()?;
        }
        Ok(self.connection.watch_unsent(self.poll.registry(), TOKEN)?)
    }

    fn wait(&mut self, sink: &mut RowSink, done: impl Fn(&RowSink) -> bool) -> Result<(), ConnectionError> {
        let mut events = Events::with_capacity(4);
        loop {
            let connection = &mut self.connection;
            let flow = connection.rest.receive(&mut connection.stream, &mut self.buffer, sink);
            match flow {
                Err(ConnectionError::Closed) if sink.error.is_some() => {
                    return Err(sink.error.take().map_or(ConnectionError::Closed, ConnectionError::Server));
                }
                Err(error) => return Err(error),
                Ok(_) if done(sink) => return Ok(()),
                Ok(Flow::Stop) => {}
                Ok(Flow::Continue) => self.poll_once(&mut events)?,
            }
        }
    }

    fn poll_once(&mut self, events: &mut Events) -> Result<(), ConnectionError> {
        match self.poll.poll(events, None) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error.into()),
            _ => Ok(()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.connection.terminate();
    }
}

/// Collects rows in text format.
#[derive(Default)]
struct RowSink {
    rows: Vec<Row>,
    error: Option<Box<ServerError>>,
    copying: bool,
    ready: bool,
}

impl Sink for RowSink {
    fn wants(&self, _kind: u8) -> bool {
        true
    }

    fn frame(&mut self, kind: u8, body: &[u8]) -> Result<Flow, ConnectionError> {
        match kind {
            b'D' => self.rows.push(parse_row(body).ok_or_else(|| {
                ConnectionError::Protocol("a row of the server's answer is shorter than it says".to_owned())
            })?),
            b'E' => self.error = Some(Box::new(ServerError::parse(body))),
            b'N' => notice(body, None),
            b'G' => {
                self.copying = true;
                return Ok(Flow::Stop);
            }
            b'Z' => {
                self.ready = true;
                return Ok(Flow::Stop);
            }
            _ => {}
        }
        Ok(Flow::Continue)
    }
}

/// The values of a DataRow message in text format; `None` if it is shorter than it says.
pub fn parse_row(body: &[u8]) -> Option<Row> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut row = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = i32::from_be_bytes(*length);
        if length < 0 {
            row.push(None);
            rest = after;
        } else {
            let (value, after) = after.split_at_checked(length as usize)?;
            row.push(Some(String::from_utf8_lossy(value).into_owned()));
            rest = after;
        }
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_with_nulls() {
        let body = [&[0, 2][..], &[0, 0, 0, 1], b"7", &(-1i32).to_be_bytes()].concat();
        assert_eq!(parse_row(&body), Some(vec![Some("7".to_owned()), None]));
    }

    #[test]
    fn short_rows_are_refused() {
        assert_eq!(parse_row(&[0]), None);
        assert_eq!(parse_row(&[0, 1, 0, 0, 0, 9, 1]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_row_or_not(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse_row(&bytes);
        }
    }
}
