//! Receives the reply to a request up to its last ReadyForQuery message. Only errors and the rows that the caller asks
//! for are kept.

use crate::error::{ConnectionError, ServerError};
use crate::frame::{Flow, Visitor};
use crate::order::{Form, Order};
use crate::request::Request;
use crate::results::{Answered, Answering, ResultSet, Rows};
use crate::usual::UsualReplies;

/// The server's complete reply to one request.
#[derive(Debug)]
pub struct Reply {
    /// The transaction status: `I` idle, `T` in a transaction, `E` in a failed transaction.
    pub status: u8,
    pub error: Option<StatementError>,
}

/// The error with which a request ended.
#[derive(Debug)]
pub struct StatementError {
    pub error: Box<ServerError>,
    /// The index of the statement that failed, among the statements of the request.
    pub query: u32,
}

/// Returns true if rows that are used in this way are described by an [`Answered`].
#[inline(always)]
fn is_answer(rows: Rows) -> bool {
    matches!(rows, Rows::Counted | Rows::Hashed | Rows::Handed)
}

/// The state of a COPY statement in a load, whose clients have no data for it. The session ends after the reply to such
/// a statement.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum CopyState {
    #[default]
    None,
    /// The server waits until the client ends the data.
    AwaitsEnd,
    /// No data of the client is missing: the client has ended the data, or the COPY sends data from the server to the
    /// client.
    Ending,
}

/// A session's current request, and the part of its reply that has been received.
#[derive(Default)]
pub struct Exchange {
    pub(crate) request: Request,
    rows: Rows,
    order: Order,
    /// The index of the request's statement and the form of its reply. They are kept as long as the reply may be
    /// compared with the statement's usual reply, which is stored from an earlier execution: no caller wants the rows,
    /// and no message of the reply has been processed.
    usual: Option<(usize, Form)>,
    status: u8,
    is_pipeline: bool,
    /// The number of ReadyForQuery messages that have not arrived yet.
    awaited: u32,
    /// The number of complete results of the request, which tells the index of the statement that fails next. In a
    /// pipeline it is set to 1 by each Sync and to 0 by each result, so that errors have the index that pgbench
    /// reports.
    complete: u32,
    /// The first error of the reply.
    error: Option<StatementError>,
    copy: CopyState,
    results: Vec<ResultSet>,
    answering: Answering,
    /// The function that receives the server's notices.
    tell: Option<fn(&str)>,
}

impl Exchange {
    /// Makes the state of a session in which no request has been sent. `tell` is called with each notice of the server.
    pub(crate) fn telling(tell: fn(&str)) -> Self {
        Self { tell: Some(tell), ..Self::default() }
    }

    /// Begins a request whose reply ends with one ReadyForQuery. `rows` says how its rows are used, and `order` which
    /// messages are allowed.
    #[inline(always)]
    pub fn expect(&mut self, rows: Rows, order: Order) {
        self.rows = rows;
        self.order = order;
        self.usual = None;
        self.is_pipeline = false;
        self.awaited = 1;
        self.complete = 0;
        if rows == Rows::Kept {
            // An error in the last request may have left results that the caller has not taken.
            self.results.clear();
        }
        if is_answer(rows) {
            self.answering.expect(order.is_described());
        }
    }

    /// Begins a request for a statement. If the caller does not use the rows, the reply may be compared with the
    /// statement's usual reply, which is stored from an earlier execution.
    #[inline(always)]
    pub fn expect_of(&mut self, statement: usize, rows: Rows, form: Form) {
        self.expect(rows, Order::of(form));
        if rows == Rows::Skipped {
            self.usual = Some((statement, form));
        }
    }

    /// Begins a pipeline, to which no statement and no Sync have been added yet.
    pub(crate) fn expect_pipeline(&mut self) {
        self.expect(Rows::Skipped, Order::of_preparation());
        self.is_pipeline = true;
        self.awaited = 0;
        self.request.forget_text();
    }

    /// Records that another statement was added to the pipeline, so that the reply has another result.
    pub(crate) fn expect_execution(&mut self, describes: bool) {
        self.order.expect_execution(describes);
    }

    /// Records that a Sync was added to the pipeline, so that the reply has another ReadyForQuery.
    pub(crate) fn expect_part(&mut self) {
        self.awaited += 1;
    }

    /// Returns the reply. Called after [`Flow::Stop`], when the reply is complete.
    #[inline(always)]
    pub fn take_reply(&mut self) -> Reply {
        self.request.forget_pending();
        self.answering.answered.in_transaction = self.status != b'I';
        Reply { status: self.status, error: self.error.take() }
    }

    /// Returns the error with which the session ends after reading has failed with `error`. If the server has sent an
    /// error before, that error is returned; after a COPY it is [`ConnectionError::Copy`].
    #[cold]
    pub(crate) fn failure(&mut self, error: ConnectionError) -> ConnectionError {
        match self.error.take() {
            _ if self.copy != CopyState::None => ConnectionError::Copy,
            Some(failed) => ConnectionError::Server(failed.error),
            None => error,
        }
    }

    /// Returns true if the server waits for the end of the data of a COPY, which the caller must send now. Only one
    /// more ReadyForQuery is expected, since the server has ignored the Sync messages of the pipeline that it received
    /// as part of the data.
    pub(crate) fn begins_to_end_copy(&mut self) -> bool {
        let begins = self.copy == CopyState::AwaitsEnd;
        if begins {
            self.copy = CopyState::Ending;
            self.awaited = 1;
        }
        begins
    }

    /// Begins a COPY. The rest of the reply is read message by message, and does not count as a success even if it ends
    /// normally.
    fn begin_copy(&mut self, state: CopyState) {
        self.copy = state;
        self.rows = Rows::Kept;
    }

    /// Returns true if the reply is not complete yet.
    pub(crate) fn is_awaiting(&self) -> bool {
        self.awaited > 0
    }

    pub(crate) fn has_error(&self) -> bool {
        self.error.is_some()
    }

    /// Returns the results of a request with [`Rows::Kept`].
    pub(crate) fn take_results(&mut self) -> Vec<ResultSet> {
        std::mem::take(&mut self.results)
    }

    /// Returns the answer to a request with [`Rows::Counted`], [`Rows::Hashed`] or [`Rows::Handed`].
    pub(crate) fn answered(&self) -> &Answered {
        &self.answering.answered
    }

    fn is_answering(&self) -> bool {
        is_answer(self.rows)
    }

    /// Returns the result whose rows are being received.
    fn current(&mut self) -> &mut ResultSet {
        let at = self.complete as usize;
        if self.results.len() <= at {
            self.results.resize_with(at + 1, ResultSet::default);
        }
        &mut self.results[at]
    }

    #[inline(always)]
    fn complete_result(&mut self) {
        self.complete = if self.is_pipeline { 0 } else { self.complete + 1 };
    }

    #[cold]
    fn unusual_message(&mut self, kind: u8, body: &[u8]) -> Result<(), ConnectionError> {
        match kind {
            b'1' => self.request.parse_complete(),
            // EmptyQueryResponse
            b'I' => {
                match self.rows {
                    Rows::Kept => drop(self.current()),
                    _ if self.is_answering() => self.answering.complete_empty(),
                    Rows::Skipped | Rows::Counted | Rows::Hashed | Rows::Handed => {}
                }
                self.complete_result();
            }
            b'E' => {
                if self.copy != CopyState::None {
                    return Ok(());
                }
                let is_unprepared = self.request.is_parsing();
                if is_unprepared && self.error.is_none() {
                    self.request.note_rejection();
                }
                let error = ServerError { is_unprepared, ..ServerError::parse(body).of(self.request.current_text()) };
                self.error.get_or_insert(StatementError { error: Box::new(error), query: self.complete });
            }
            // Notices are not shown to callers that use only the answers of statements.
            b'N' if !self.is_answering() => {
                if let Some(tell) = self.tell {
                    tell(&ServerError::notice(body, self.request.text()));
                }
            }
            // CopyInResponse, CopyBothResponse
            b'G' | b'W' => self.begin_copy(CopyState::AwaitsEnd),
            // CopyOutResponse
            b'H' => self.begin_copy(CopyState::Ending),
            _ => {}
        }
        Ok(())
    }
}

impl Visitor for Exchange {
    fn wants(&self, kind: u8) -> bool {
        match kind {
            b'D' => matches!(self.rows, Rows::Kept | Rows::Hashed | Rows::Handed),
            b'd' => false,
            _ => true,
        }
    }

    fn message(&mut self, kind: u8, body: &[u8]) -> Result<Flow, ConnectionError> {
        if self.error.is_none() {
            self.order.take(kind, Some(body))?;
        }
        self.apply(kind, body)
    }

    fn left_out(&mut self, kind: u8) -> Result<Flow, ConnectionError> {
        if self.error.is_none() {
            self.order.take(kind, None)?;
        }
        self.apply(kind, &[])
    }
}

impl Exchange {
    /// Processes a whole reply in one step if it has the same messages around its rows as an earlier correct reply to
    /// the statement (its usual reply, stored in `usual`), or if it is correct and becomes the usual reply. The effect
    /// is the same as processing its messages one by one. Returns false and has no effect for other bytes.
    #[inline(always)]
    pub(crate) fn take_usual(&mut self, bytes: &[u8], usual: &mut UsualReplies) -> bool {
        let Some((statement, form)) = self.usual else { return false };
        let Some(status) = usual.status(statement, form, bytes) else { return false };
        self.usual = None;
        self.status = status;
        self.awaited = 0;
        true
    }

    /// Processes one message of the reply. Returns whether the reader must go on.
    fn apply(&mut self, kind: u8, body: &[u8]) -> Result<Flow, ConnectionError> {
        self.usual = None;
        match kind {
            // BindComplete, NoData
            b'2' | b'n' => {}
            b'T' => match self.rows {
                Rows::Skipped => {}
                Rows::Counted | Rows::Hashed => self.answering.describe(body, false),
                Rows::Handed => self.answering.describe(body, true),
                Rows::Kept => self.current().set_columns(body)?,
            },
            b'D' => match self.rows {
                Rows::Skipped => {}
                Rows::Counted => self.answering.add_row(body, false),
                Rows::Hashed => self.answering.add_hashed_row(body),
                Rows::Handed => self.answering.add_row(body, true),
                Rows::Kept => self.current().add_row(body)?,
            },
            b'C' => {
                match self.rows {
                    Rows::Skipped => {}
                    Rows::Counted | Rows::Hashed | Rows::Handed => self.answering.complete(body),
                    Rows::Kept => drop(self.current()),
                }
                self.complete_result();
            }
            b'Z' => {
                self.status = body.first().copied().unwrap_or(0);
                self.awaited = self.awaited.saturating_sub(1);
                if self.awaited == 0 {
                    if self.copy != CopyState::None {
                        return Err(ConnectionError::Copy);
                    }
                    if self.error.is_none() && self.order.lacks_results() {
                        return Err(ConnectionError::NoResults);
                    }
                    return Ok(Flow::Stop);
                }
                self.complete = 1;
            }
            _ => self.unusual_message(kind, body)?,
        }
        Ok(Flow::Continue)
    }
}

/// Receives the reply to a request. Compares it with the usual reply of its statement, which is stored from an earlier
/// execution, to save most of the work of checking it.
pub struct Receiving<'a> {
    pub exchange: &'a mut Exchange,
    pub usual: &'a mut UsualReplies,
}

impl Visitor for Receiving<'_> {
    fn wants(&self, kind: u8) -> bool {
        self.exchange.wants(kind)
    }

    fn message(&mut self, kind: u8, body: &[u8]) -> Result<Flow, ConnectionError> {
        self.exchange.message(kind, body)
    }

    fn left_out(&mut self, kind: u8) -> Result<Flow, ConnectionError> {
        self.exchange.left_out(kind)
    }

    #[inline(always)]
    fn take_usual(&mut self, bytes: &[u8]) -> bool {
        self.exchange.take_usual(bytes, self.usual)
    }
}

#[cfg(test)]
mod tests;
