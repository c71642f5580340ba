//! Statements out and their answers in: the short way of usual ones, and the longer one of all others.

use std::io;

use super::Connection;
use super::error::ConnectionError;
use super::message::Message;
use super::reply::status_of_usual;
use super::statement::{DESCRIBE_PORTAL, EXECUTE_SYNC, QueryMode, SYNC, Statement};
use crate::Rows;
use crate::value::Value;

/// How much of a pipeline is collected before it is sent, bytes, as in libpq.
const LONGEST_PIPELINE_PIECE: usize = 64 * 1024;

/// Whether the last request was a prepared statement, all of it was sent, nothing of an earlier answer is left, and no TLS
/// is between: then the answer may go the short way, and so may the next request of the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    No,
    /// Of [`Rows::Skipped`].
    Skipped,
    /// Of [`Rows::Counted`].
    Counted,
}

impl Plain {
    /// What a request is that wants these rows.
    #[inline(always)]
    fn of(rows: Rows) -> Self {
        match rows {
            Rows::Skipped => Self::Skipped,
            Rows::Counted => Self::Counted,
            Rows::Kept | Rows::Handed => Self::No,
        }
    }
}

/// What became of [`Connection::send_again`].
pub enum Again {
    Sent,
    /// The socket did not take all of it.
    InPart(Result<(), ConnectionError>),
    /// Nothing has been sent: it has to go the longer way.
    No,
}

/// What [`Connection::receive_whole`] came upon.
pub enum Received {
    /// The whole of a usual reply, that ends in this status.
    Whole(u8),
    /// So many bytes of something else.
    Some(usize),
    /// It has not read: there is something to be finished before.
    Nothing,
    Failed(io::Error),
}

impl Connection {
    /// Sends a statement that this session has prepared with its values, which nearly always are short whole numbers, if
    /// the request before went the same way: what is known of the connection still holds, and needs no noting again.
    #[inline(always)]
    pub fn send_again(&mut self, statement: &Statement, values: &[Value], rows: Rows, scratch: &mut Message) -> Again {
        if self.plain == Plain::No || self.plain != Plain::of(rows) || !self.prepared.has(statement.id) {
            return Again::No;
        }
        let Some(bytes) = statement.encode_short(values, scratch.short()) else { return Again::No };
        match self.stream.write(bytes) {
            Ok(written) if written == bytes.len() => Again::Sent,
            written => self.send_rest(written, bytes),
        }
    }

    #[cold]
    fn send_rest(&mut self, written: io::Result<usize>, bytes: &[u8]) -> Again {
        self.plain = Plain::No;
        let left = match written {
            Ok(written) => bytes.get(written..).unwrap_or_default(),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => bytes,
            Err(error) => return Again::InPart(Err(error.into())),
        };
        Again::InPart(self.send_bytes(left))
    }

    /// Sends a statement with its values, or adds it to the pipeline. `scratch` is the thread's buffer for encoding.
    #[inline(never)]
    pub fn send(
        &mut self,
        statement: &Statement,
        mode: QueryMode,
        values: &[Value],
        rows: Rows,
        scratch: &mut Message,
    ) -> Result<(), ConnectionError> {
        match self.send_again(statement, values, rows, scratch) {
            Again::Sent => return Ok(()),
            Again::InPart(sent) => return sent,
            Again::No => {}
        }
        scratch.clear();
        let prepared = mode == QueryMode::Prepared && self.prepared.has(statement.id);
        statement.encode(mode, prepared, values, scratch);
        if rows.are_noted() {
            self.answer.noted.expect(mode == QueryMode::Simple);
        }
        if !prepared || Plain::of(rows) == Plain::No || self.in_pipeline {
            return self.send_unusual(statement, mode, rows, scratch);
        }
        self.request.has_text = false;
        self.answer.expect(rows);
        self.send_bytes(scratch.as_bytes())?;
        let is_plain = self.answer.is_fresh()
            && self.rest.is_empty()
            && self.unsent.is_empty()
            && !self.waits_for_write
            && !self.stream.is_encrypted();
        self.plain = if is_plain { Plain::of(rows) } else { Plain::No };
        Ok(())
    }

    /// Sends a statement that is new to the server, whose rows are kept or handed on, or that is part of a pipeline.
    fn send_unusual(
        &mut self,
        statement: &Statement,
        mode: QueryMode,
        rows: Rows,
        scratch: &mut Message,
    ) -> Result<(), ConnectionError> {
        let is_new = mode == QueryMode::Prepared && !self.prepared.has(statement.id);
        if is_new {
            self.prepared.expect(statement.id);
        }
        if self.in_pipeline {
            scratch.cut(SYNC.len());
            self.unsent.extend_from_slice(scratch.as_bytes());
            return if self.unsent.len() > LONGEST_PIPELINE_PIECE { self.flush() } else { Ok(()) };
        }
        self.answer.expect(rows);
        if rows == Rows::Handed && mode == QueryMode::Prepared && !is_new {
            self.request.has_text = false;
            return self.send_bytes(scratch.as_bytes());
        }
        if rows == Rows::Kept && mode != QueryMode::Simple {
            scratch.cut(EXECUTE_SYNC.len());
            scratch.extend(&DESCRIBE_PORTAL);
            scratch.extend(&EXECUTE_SYNC);
        }
        self.request.has_text = true;
        self.request.bytes.clear();
        self.request.bytes.extend_from_slice(scratch.as_bytes());
        self.send_bytes(scratch.as_bytes())
    }

    /// Reads what is there. Nearly always that is the whole of a reply without surprises, and all that is to be known of
    /// it is the status; whatever else it is goes to [`Connection::receive`].
    #[inline(always)]
    pub fn receive_whole(&mut self, buffer: &mut [u8]) -> Received {
        if self.plain != Plain::Skipped {
            return self.receive_whole_noted(buffer);
        }
        match self.stream.read(buffer) {
            Ok(read) => match status_of_usual(&buffer[..read]) {
                Some(status) => Received::Whole(status),
                None => Received::Some(read),
            },
            Err(error) => Received::Failed(error),
        }
    }

    /// The same where it is noted what came, or after a request that went the longer way.
    fn receive_whole_noted(&mut self, buffer: &mut [u8]) -> Received {
        if self.waits_for_write || !self.rest.is_empty() || !self.unsent.is_empty() {
            return Received::Nothing;
        }
        let read = match self.stream.read(buffer) {
            Ok(read) => read,
            Err(error) => return Received::Failed(error),
        };
        let bytes = &buffer[..read];
        let status = match self.plain {
            Plain::Counted => self.answer.noted.take_counted(bytes),
            Plain::No | Plain::Skipped => self.answer.status_of_whole(bytes),
        };
        status.map_or(Received::Some(read), Received::Whole)
    }
}
