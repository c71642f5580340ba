//! The reply to a request, read up to its last ReadyForQuery. Only errors and wanted rows are kept.

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

/// The error that a request ended with.
#[derive(Debug)]
pub struct StatementError {
    pub error: Box<ServerError>,
    /// The index of the request's statement that failed.
    pub query: u32,
}

/// Returns true if these rows become an [`Answered`].
#[inline(always)]
fn is_answer(rows: Rows) -> bool {
    matches!(rows, Rows::Counted | Rows::Hashed | Rows::Handed)
}

/// The state of a COPY statement, for which clients of a load have no data. The session ends with the reply to it.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum CopyState {
    #[default]
    None,
    /// The server waits for the end of the data.
    AwaitsEnd,
    /// The end has been sent, or the data come from the server.
    Ending,
}

/// A session's current request and what has come of its reply.
#[derive(Default)]
pub struct Exchange {
    pub(crate) request: Request,
    rows: Rows,
    order: Order,
    /// The statement of the request and the form of its reply, as long as the reply may be compared with the
    /// statement's usual one: nobody wants the rows, and no message of the reply has been taken.
    usual: Option<(usize, Form)>,
    status: u8,
    is_pipeline: bool,
    /// The number of ReadyForQuery messages that are still to come.
    awaited: u32,
    /// The number of complete results of the request. In a pipeline only the end of a part counts, until its next
    /// result, as in pgbench.
    complete: u32,
    /// The first error of the reply.
    error: Option<StatementError>,
    copy: CopyState,
    results: Vec<ResultSet>,
    answering: Answering,
    /// The function that gets notices.
    tell: Option<fn(&str)>,
}

impl Exchange {
    /// Makes the exchange of a session; `tell` is called with each notice of the server.
    pub(crate) fn telling(tell: fn(&str)) -> Self {
        Self { tell: Some(tell), ..Self::default() }
    }

    /// Begins a request whose reply is of this kind and ends with one ReadyForQuery.
    #[inline(always)]
    pub fn expect(&mut self, rows: Rows, order: Order) {
        self.rows = rows;
        self.order = order;
        self.usual = None;
        self.is_pipeline = false;
        self.awaited = 1;
        self.complete = 0;
        if rows == Rows::Kept {
            // An error leaves the results before it, which nobody has taken.
            self.results.clear();
        }
        if is_answer(rows) {
            self.answering.expect(order.is_described());
        }
    }

    /// Begins a request for a statement whose reply may be compared with the statement's usual one.
    #[inline(always)]
    pub fn expect_of(&mut self, statement: usize, rows: Rows, form: Form) {
        self.expect(rows, Order::of(form));
        if rows == Rows::Skipped {
            self.usual = Some((statement, form));
        }
    }

    /// Begins a pipeline, which has no parts yet.
    pub(crate) fn expect_pipeline(&mut self) {
        self.expect(Rows::Skipped, Order::of_preparation());
        self.is_pipeline = true;
        self.awaited = 0;
        self.request.forget_text();
    }

    /// Notes that another statement was added to the pipeline, so that its result is expected.
    pub(crate) fn expect_execution(&mut self, describes: bool) {
        self.order.expect_execution(describes);
    }

    /// Notes that a Sync was added to the pipeline, so that another ReadyForQuery is expected.
    pub(crate) fn expect_part(&mut self) {
        self.awaited += 1;
    }

    /// Returns the reply, after [`Flow::Stop`].
    #[inline(always)]
    pub fn take_reply(&mut self) -> Reply {
        self.request.forget_pending();
        self.answering.answered.in_transaction = self.status != b'I';
        Reply { status: self.status, error: self.error.take() }
    }

    /// Returns the reason for which the session ends after reading failed with `error`. If the server sent an error
    /// before, that error is the reason.
    #[cold]
    pub(crate) fn failure(&mut self, error: ConnectionError) -> ConnectionError {
        match self.error.take() {
            _ if self.copy != CopyState::None => ConnectionError::Copy,
            Some(failed) => ConnectionError::Server(failed.error),
            None => error,
        }
    }

    /// Returns true if the server waits for the end of data to copy, which must be sent now. No other part of a
    /// pipeline ends: the server has passed over their Sync messages as parts of the data.
    pub(crate) fn begins_to_end_copy(&mut self) -> bool {
        let begins = self.copy == CopyState::AwaitsEnd;
        if begins {
            self.copy = CopyState::Ending;
            self.awaited = 1;
        }
        begins
    }

    /// Begins a COPY: the rest of the reply is read message by message, and is not counted as a success even if it ends
    /// normally.
    fn begin_copy(&mut self, state: CopyState) {
        self.copy = state;
        self.rows = Rows::Kept;
    }

    /// Returns true if a part of the reply is still to come.
    pub(crate) fn is_awaiting(&self) -> bool {
        self.awaited > 0
    }

    pub(crate) fn has_error(&self) -> bool {
        self.error.is_some()
    }

    /// Returns the results of [`Rows::Kept`].
    pub(crate) fn take_results(&mut self) -> Vec<ResultSet> {
        std::mem::take(&mut self.results)
    }

    /// Returns the answer of [`Rows::Counted`], [`Rows::Hashed`] and [`Rows::Handed`].
    pub(crate) fn answered(&self) -> &Answered {
        &self.answering.answered
    }

    fn is_answering(&self) -> bool {
        is_answer(self.rows)
    }

    /// Returns the result that is being received.
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
            // Who wants the answers of statements alone gets no notices.
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
    /// Takes a whole reply in one step if it is equal to one of the `usual` replies, or can be kept as one. The effect
    /// is that of taking its messages one by one. Returns false, and has no effect, for other bytes.
    #[inline(always)]
    pub(crate) fn take_usual(&mut self, bytes: &[u8], usual: &mut UsualReplies) -> bool {
        let Some((statement, form)) = self.usual else { return false };
        let Some(status) = usual.status(statement, form, bytes) else { return false };
        self.usual = None;
        self.status = status;
        self.awaited = 0;
        true
    }

    /// Does what a message asks for, and says whether to go on reading.
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

/// Receives the reply to a request with the usual replies at hand.
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
