//! One request's reply: read up to its last ReadyForQuery. Only errors and wanted rows are kept.

use crate::error::{ConnectionError, ServerError};
use crate::frame::{Flow, Visitor};
use crate::order::Order;
use crate::request::Request;
use crate::results::{Answered, Answering, ResultSet, Rows};
use crate::usual::UsualReplies;

/// The server's complete reply to one request.
#[derive(Debug)]
pub struct Reply {
    /// `I` idle, `T` in a transaction, `E` in a failed transaction.
    pub status: u8,
    pub error: Option<StatementError>,
}

/// The error that a request ended with.
#[derive(Debug)]
pub struct StatementError {
    pub error: Box<ServerError>,
    /// Index of the request's statement that failed.
    pub query: u32,
}

/// Whether these rows become an [`Answered`].
#[inline(always)]
fn is_answer(rows: Rows) -> bool {
    matches!(rows, Rows::Counted | Rows::Hashed | Rows::Handed)
}

/// How far a statement has come that copies data, for which a client has no means. The session ends with its reply.
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
    /// The statement whose usual reply may come: nobody wants its rows, and no message of the reply was taken.
    usual: Option<u32>,
    status: u8,
    is_pipeline: bool,
    /// ReadyForQuery messages that are still to come.
    awaited: u32,
    /// Complete results of the request. In a pipeline only the end of a part counts, until its next result, as in pgbench.
    complete: u32,
    /// The first error.
    error: Option<StatementError>,
    copy: CopyState,
    results: Vec<ResultSet>,
    answering: Answering,
}

impl Exchange {
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

    /// The same for a statement that may have a usual reply.
    #[inline(always)]
    pub fn expect_of(&mut self, statement: usize, rows: Rows, order: Order) {
        self.expect(rows, order);
        if rows == Rows::Skipped {
            self.usual = u32::try_from(statement).ok();
        }
    }

    /// Begins a pipeline, which has no parts yet.
    pub(crate) fn expect_pipeline(&mut self) {
        self.expect(Rows::Skipped, Order::of_preparation());
        self.is_pipeline = true;
        self.awaited = 0;
        self.request.forget_text();
    }

    /// Another statement of the pipeline.
    pub(crate) fn expect_execution(&mut self, describes: bool) {
        self.order.expect_execution(describes);
    }

    /// Another part of the pipeline ends.
    pub(crate) fn expect_part(&mut self) {
        self.awaited += 1;
    }

    /// The reply, after [`Flow::Stop`].
    #[inline(always)]
    pub fn take_reply(&mut self) -> Reply {
        self.request.forget_pending();
        Reply { status: self.status, error: self.error.take() }
    }

    /// Why the session ends where reading failed with `error`: an error that the server sent before goes first.
    #[cold]
    pub(crate) fn failure(&mut self, error: ConnectionError) -> ConnectionError {
        match self.error.take() {
            _ if self.copy != CopyState::None => ConnectionError::Copy,
            Some(failed) => ConnectionError::Server(failed.error),
            None => error,
        }
    }

    /// Whether the server waits for the end of data to copy, which is to be sent now. Of a pipeline's parts no other ends:
    /// the server has passed over their Sync messages as parts of the data.
    pub(crate) fn begins_to_end_copy(&mut self) -> bool {
        let begins = self.copy == CopyState::AwaitsEnd;
        if begins {
            self.copy = CopyState::Ending;
            self.awaited = 1;
        }
        begins
    }

    /// The rest of the reply is read message by message: its usual end is no success.
    fn begin_copy(&mut self, state: CopyState) {
        self.copy = state;
        self.rows = Rows::Kept;
    }

    /// Whether a part of the reply is still to come.
    pub(crate) fn is_awaiting(&self) -> bool {
        self.awaited > 0
    }

    pub(crate) fn has_error(&self) -> bool {
        self.error.is_some()
    }

    /// The results of [`Rows::Kept`].
    pub(crate) fn take_results(&mut self) -> Vec<ResultSet> {
        std::mem::take(&mut self.results)
    }

    /// The answer of [`Rows::Counted`], [`Rows::Hashed`] and [`Rows::Handed`].
    pub(crate) fn answered(&self) -> &Answered {
        &self.answering.answered
    }

    fn is_answering(&self) -> bool {
        is_answer(self.rows)
    }

    /// The result that is being received.
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
            // sysbench silences notices.
            b'N' if !self.is_answering() => ServerError::print_notice(body, self.request.text()),
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
    /// Takes a whole reply if it is one of the `usual` ones or becomes one of them. It has the effect of its messages, one by
    /// one; without any effect for other bytes.
    #[inline(always)]
    pub(crate) fn take_usual(&mut self, bytes: &[u8], usual: &mut UsualReplies) -> bool {
        let Some(statement) = self.usual else { return false };
        let Some(status) = usual.status(statement, self.order, bytes) else { return false };
        self.usual = None;
        self.status = status;
        self.awaited = 0;
        true
    }

    /// Does what a message asks for.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{self, Reader};
    use crate::results::QueryKind;
    use proptest::prelude::*;

    fn expecting(rows: Rows) -> Exchange {
        let mut exchange = Exchange::default();
        exchange.expect(rows, Order::of_anything());
        exchange
    }

    fn visit(exchange: &mut Exchange, kind: u8, body: &[u8]) -> Result<Flow, ConnectionError> {
        if exchange.wants(kind) { exchange.message(kind, body) } else { exchange.left_out(kind) }
    }

    fn feed(exchange: &mut Exchange, messages: &[(u8, &[u8])]) -> Result<Option<u8>, ConnectionError> {
        for (kind, body) in messages {
            if visit(exchange, *kind, body)? == Flow::Stop {
                return Ok(Some(exchange.status));
            }
        }
        Ok(None)
    }

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        frame::write(&mut bytes, kind, |out| out.extend_from_slice(body));
        bytes
    }

    const COLUMN_A: &[u8] = b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
    const ROW_7: &[u8] = b"\0\x01\0\0\0\x017";
    const ROW_NULL: &[u8] = b"\0\x01\xff\xff\xff\xff";

    #[test]
    fn an_error_that_came_before_the_end_of_the_reply_is_part_of_it() {
        let mut exchange = expecting(Rows::Skipped);
        assert_eq!(feed(&mut exchange, &[(b'E', b"SERROR\0C42703\0\0")]).unwrap(), None);
        assert!(exchange.has_error());
        assert_eq!(feed(&mut exchange, &[(b'Z', b"I")]).unwrap(), Some(b'I'));
        assert!(exchange.take_reply().error.is_some());
        exchange.expect(Rows::Skipped, Order::of_preparation());
        assert_eq!(feed(&mut exchange, &[(b'Z', b"I")]).unwrap(), Some(b'I'));
        assert!(exchange.take_reply().error.is_none());
    }

    #[test]
    fn of_each_result_the_columns_and_the_last_row_are_kept() {
        let mut exchange = expecting(Rows::Kept);
        let messages: [(u8, &[u8]); 8] = [
            (b'C', b"SELECT 1\0"),
            (b'T', COLUMN_A),
            (b'D', ROW_7),
            (b'D', ROW_NULL),
            (b'C', b"SELECT 1\0"),
            (b'T', COLUMN_A),
            (b'C', b"SELECT 1\0"),
            (b'Z', b"T"),
        ];
        assert_eq!(feed(&mut exchange, &messages).unwrap(), Some(b'T'));
        let columns = vec![b"a".to_vec()];
        assert_eq!(
            exchange.take_results(),
            [
                ResultSet::default(),
                ResultSet { columns: columns.clone(), rows: 2, last: vec![None] },
                ResultSet { columns, rows: 0, last: vec![] },
            ]
        );
    }

    #[test]
    fn an_empty_text_is_no_statement() {
        let mut exchange = expecting(Rows::Handed);
        assert_eq!(feed(&mut exchange, &[(b'I', b""), (b'Z', b"I")]).unwrap(), Some(b'I'));
        assert_eq!(exchange.answered().kind, QueryKind::Nothing);
        let mut exchange = expecting(Rows::Handed);
        assert_eq!(feed(&mut exchange, &[(b'I', b""), (b'C', b"BEGIN\0"), (b'Z', b"T")]).unwrap(), Some(b'T'));
        assert_eq!(exchange.answered().kind, QueryKind::Other);
    }

    #[test]
    fn the_first_error_counts_and_names_its_statement() {
        let mut exchange = expecting(Rows::Skipped);
        let messages: [(u8, &[u8]); 4] =
            [(b'C', b"SELECT 1\0"), (b'E', b"C22012\0\0"), (b'E', b"C57P01\0\0"), (b'Z', b"I")];
        assert_eq!(feed(&mut exchange, &messages).unwrap(), Some(b'I'));
        let found = exchange.take_reply().error.unwrap();
        assert_eq!((found.query, found.error.sqlstate.as_str()), (1, "22012"));
    }

    #[test]
    fn a_pipeline_ends_with_its_last_part() {
        let mut exchange = Exchange::default();
        exchange.expect_pipeline();
        exchange.expect_part();
        exchange.expect_part();
        assert_eq!(feed(&mut exchange, &[(b'C', b"SELECT 1\0"), (b'Z', b"I")]).unwrap(), None);
        assert_eq!(feed(&mut exchange, &[(b'C', b"SELECT 1\0"), (b'Z', b"I")]).unwrap(), Some(b'I'));
    }

    #[test]
    fn a_reply_is_complete_with_its_last_byte_and_no_earlier() {
        let usual =
            [message(b'2', b""), message(b'D', ROW_7), message(b'C', b"SELECT 1\0"), message(b'Z', b"T")].concat();
        let (mut reader, mut exchange) = (Reader::default(), expecting(Rows::Skipped));
        assert_eq!(reader.take(&usual, &mut exchange).unwrap(), Flow::Stop);
        assert_eq!(exchange.take_reply().status, b'T');
        for end in 0..usual.len() {
            let (mut reader, mut exchange) = (Reader::default(), expecting(Rows::Skipped));
            assert_eq!(reader.take(&usual[..end], &mut exchange).unwrap(), Flow::Continue, "cut at {end}");
            assert_eq!(reader.take(&usual[end..], &mut exchange).unwrap(), Flow::Stop, "cut at {end}");
            assert_eq!(exchange.take_reply().status, b'T');
        }
        for surprise in [message(b'E', b"C22012\0\0"), message(b'N', b"\0"), message(b'1', b""), message(b'I', b"")] {
            let (mut reader, mut exchange) = (Reader::default(), expecting(Rows::Skipped));
            assert_eq!(reader.take(&[&surprise[..], &usual].concat(), &mut exchange).unwrap(), Flow::Stop);
            assert_eq!(exchange.take_reply().error.is_some(), surprise[0] == b'E');
        }
    }

    #[test]
    fn a_statement_that_copies_fails_with_the_end_of_its_reply() {
        let usual = [message(b'C', b"COPY 0\0"), message(b'Z', b"I")].concat();
        for (kind, from_client) in [(b'G', true), (b'W', true), (b'H', false)] {
            let (mut reader, mut exchange) = (Reader::default(), expecting(Rows::Skipped));
            assert_eq!(reader.take(&message(kind, b"\0\0\0"), &mut exchange).unwrap(), Flow::Continue);
            assert_eq!(exchange.begins_to_end_copy(), from_client);
            assert!(!exchange.begins_to_end_copy());
            let error = reader.take(&usual, &mut exchange).unwrap_err();
            assert!(matches!(error, ConnectionError::Copy), "{error}");
            assert!(matches!(exchange.failure(ConnectionError::Closed), ConnectionError::Copy));
        }
    }

    /// A request whose reply ends in an error leaves nothing to the next one.
    fn read_after(exchange: &mut Exchange, rows: Rows, messages: &[(u8, Vec<u8>)]) -> Option<String> {
        exchange.expect(rows, Order::of_anything());
        for (kind, body) in messages.iter().chain(&[(b'Z', b"I".to_vec())]) {
            // The connection of a reply that is no reply is closed.
            visit(exchange, *kind, body).ok()?;
        }
        let reply = exchange.take_reply();
        let results = exchange.take_results();
        Some(format!("{reply:?} {results:?} {:?}", exchange.answered()))
    }

    /// Reads a reply of which the caller takes the error only; false if the connection is closed.
    fn read_after_error(exchange: &mut Exchange, rows: Rows, messages: &[(u8, Vec<u8>)]) -> bool {
        exchange.expect(rows, Order::of_anything());
        let ready = [(b'Z', b"I".to_vec())];
        let mut messages = messages.iter().chain(&ready);
        let is_read = messages.all(|(kind, body)| visit(exchange, *kind, body).is_ok());
        is_read && exchange.take_reply().error.is_some()
    }

    fn any_message() -> impl Strategy<Value = (u8, Vec<u8>)> {
        prop::sample::select(vec![
            (b'1', Vec::new()),
            (b'2', Vec::new()),
            (b'T', COLUMN_A.to_vec()),
            (b'D', ROW_7.to_vec()),
            (b'D', ROW_NULL.to_vec()),
            (b'C', b"INSERT 0 1\0".to_vec()),
            (b'I', Vec::new()),
            (b's', Vec::new()),
            (b'n', Vec::new()),
            (b'E', b"C22012\0\0".to_vec()),
        ])
    }

    proptest! {
        #[test]
        fn a_reply_after_any_error_is_read_as_on_a_fresh_connection(
            before in prop::collection::vec(any_message(), 0..6),
            after in prop::collection::vec(any_message(), 0..6),
            rows in prop::sample::select(vec![Rows::Skipped, Rows::Kept, Rows::Counted, Rows::Hashed, Rows::Handed]),
        ) {
            let mut exchange = Exchange::default();
            let failing = [&before[..], &[(b'E', b"C40001\0\0".to_vec())]].concat();
            if read_after_error(&mut exchange, rows, &failing) {
                let expected = read_after(&mut Exchange::default(), rows, &after);
                prop_assert_eq!(read_after(&mut exchange, rows, &after), expected);
            }
        }

        #[test]
        fn any_message_is_taken_or_refused(
            kind: u8,
            body in prop::collection::vec(any::<u8>(), 0..60),
            rows in prop::sample::select(vec![Rows::Skipped, Rows::Kept, Rows::Counted, Rows::Hashed, Rows::Handed]),
        ) {
            let _ = feed(&mut expecting(rows), &[(kind, &body)]);
        }
    }
}
