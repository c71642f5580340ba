//! The server's answer to a script's request: read up to its end, of which only errors and wanted rows are kept.

use super::error::{ConnectionError, ServerError};
use super::frames::{Flow, HEADER, Sink};
use super::noted::Noted;
use super::prepared::Prepared;
use super::request::Request;
use super::rows::ResultSet;
use crate::Rows;
use ground::output::print_stderr;

/// What the answer to Bind, Execute and Sync begins with.
pub(super) const BIND_COMPLETE: [u8; HEADER] = [b'2', 0, 0, 0, 4];

/// ReadyForQuery up to the status, and its length with it.
pub(super) const READY: [u8; HEADER] = [b'Z', 0, 0, 0, 5];
pub(super) const READY_LENGTH: usize = HEADER + 1;

/// The server's answer to one request.
#[derive(Debug)]
pub struct Reply {
    /// `I` idle, `T` in a transaction, `E` in a failed transaction.
    pub status: u8,
    pub error: Option<StatementError>,
}

/// What went wrong in a request.
#[derive(Debug)]
pub struct StatementError {
    pub error: Box<ServerError>,
    /// Which of a query's statements it was, counted from 0.
    pub query: u32,
}

/// The status in which a usual reply ends, if `bytes` are the whole of one: BindComplete, rows that nobody wants,
/// CommandComplete and, as the last, a ReadyForQuery.
#[inline(always)]
pub fn status_of_usual(bytes: &[u8]) -> Option<u8> {
    let (before, last) = bytes.split_last_chunk::<READY_LENGTH>()?;
    let [ready @ .., status] = last;
    if *ready != READY {
        return None;
    }
    let mut at = if before.first_chunk() == Some(&BIND_COMPLETE) { HEADER } else { 0 };
    while let Some([kind, length @ ..]) = before.get(at..).and_then(<[u8]>::first_chunk::<HEADER>) {
        if *kind != b'D' && *kind != b'C' {
            return None;
        }
        // A length below four is none, and becomes one that is too long.
        at += HEADER + u32::from_be_bytes(*length).wrapping_sub(4) as usize;
    }
    (at == before.len()).then_some(*status)
}

/// What has come in of an answer.
#[derive(Default)]
pub struct Answer {
    /// How many ReadyForQuery are still to come.
    pub awaited: u32,
    /// Results of the request that are complete; of a pipeline only the end of a part counts, up to the next result.
    complete: u32,
    /// The first error.
    error: Option<StatementError>,
    /// What is wanted of rows, and what has come of those that are kept.
    rows: Rows,
    results: Vec<ResultSet>,
    /// Of rows that are counted or handed on.
    pub noted: Noted,
}

impl Answer {
    /// Begins the answer to a request that ends in one ReadyForQuery.
    #[inline]
    pub fn expect(&mut self, rows: Rows) {
        self.awaited = 1;
        self.complete = 0;
        self.rows = rows;
    }

    /// Whether an answer is awaited of which nothing has come.
    pub fn is_fresh(&self) -> bool {
        self.awaited == 1 && self.complete == 0 && self.error.is_none()
    }

    /// Whether an error has come that was not taken.
    pub fn has_error(&self) -> bool {
        self.error.is_some()
    }

    /// The status in which a usual reply ends, if `bytes` are the whole of one. The end of a reply whose error came
    /// before, as servers send it at once, is none.
    #[inline(always)]
    pub fn status_of_whole(&mut self, bytes: &[u8]) -> Option<u8> {
        if self.awaited != 1 || self.rows != Rows::Skipped || self.error.is_some() {
            return self.status_of_noted(bytes);
        }
        let status = status_of_usual(bytes)?;
        self.awaited = 0;
        Some(status)
    }

    /// The same where it is noted what came; a Query message's answer names the columns first.
    fn status_of_noted(&mut self, bytes: &[u8]) -> Option<u8> {
        if self.awaited != 1 || !self.rows.are_noted() || self.error.is_some() || !self.noted.is_fresh() {
            return None;
        }
        let status = self.noted.take_whole(bytes, self.rows == Rows::Handed)?;
        self.awaited = 0;
        Some(status)
    }

    /// The results of a request whose rows are kept.
    pub fn take_results(&mut self) -> Vec<ResultSet> {
        std::mem::take(&mut self.results)
    }

    /// The error so far.
    #[inline]
    pub fn take_error(&mut self) -> Option<StatementError> {
        self.error.take()
    }

    /// The result that is being received.
    fn current(&mut self) -> &mut ResultSet {
        while self.results.len() <= self.complete as usize {
            self.results.push(ResultSet::default());
        }
        &mut self.results[self.complete as usize]
    }
}

/// Prints a notice as libpq's default does.
pub fn notice(body: &[u8], statement: Option<&str>) {
    // The context is for errors only.
    let notice = ServerError { context: None, ..ServerError::parse(body).of(statement) };
    print_stderr(format_args!("{notice}\n"));
}

/// Reads up to the last ReadyForQuery.
pub struct ReplySink<'a> {
    pub status: u8,
    pub answer: &'a mut Answer,
    pub prepared: &'a mut Prepared,
    pub request: &'a Request,
}

impl Sink for ReplySink<'_> {
    #[inline]
    fn wants(&self, kind: u8) -> bool {
        match kind {
            b'Z' | b'E' | b'N' => true,
            b'T' | b'D' => matches!(self.answer.rows, Rows::Kept | Rows::Handed),
            b'C' => self.answer.rows.are_noted(),
            _ => false,
        }
    }

    #[inline]
    fn frame(&mut self, kind: u8, body: &[u8]) -> Result<Flow, ConnectionError> {
        match kind {
            b'2' => {}
            b'D' if self.answer.rows == Rows::Skipped => {}
            b'C' if self.answer.rows == Rows::Skipped => self.complete(),
            b'T' | b'D' | b'C' if self.answer.rows.are_noted() => {
                self.answer.noted.take(kind, body, self.answer.rows == Rows::Handed);
                if kind == b'C' {
                    self.complete();
                }
            }
            b'Z' => {
                self.status = body.first().copied().unwrap_or(0);
                self.answer.awaited = self.answer.awaited.saturating_sub(1);
                if self.answer.awaited == 0 {
                    return Ok(Flow::Stop);
                }
                self.answer.complete = 1;
            }
            _ => self.unusual_frame(kind, body)?,
        }
        Ok(Flow::Continue)
    }
}

impl ReplySink<'_> {
    /// A result is complete. pgbench counts those of one query, and takes the end of a pipeline's part for one.
    fn complete(&mut self) {
        self.answer.complete = if self.request.has_text { self.answer.complete + 1 } else { 0 };
    }

    #[cold]
    fn unusual_frame(&mut self, kind: u8, body: &[u8]) -> Result<(), ConnectionError> {
        match kind {
            b'1' => self.prepared.note_parsed(),
            // Complete, empty, or with more rows to come.
            b'C' | b'I' | b's' => {
                if self.answer.rows == Rows::Kept {
                    self.answer.current();
                }
                self.complete();
            }
            b'T' if self.answer.rows == Rows::Kept => self.answer.current().set_columns(body)?,
            b'D' => self.answer.current().add_row(body)?,
            b'E' => {
                let statement = self.request.current_statement(self.prepared.pending());
                let error = Box::new(ServerError::parse(body).of(statement));
                let query = self.answer.complete;
                self.answer.error.get_or_insert(StatementError { error, query });
            }
            // sysbench silences them.
            b'N' if self.answer.rows.are_noted() => {}
            b'N' => notice(body, self.request.statement()),
            b'G' | b'H' | b'W' => return Err(ConnectionError::Copy),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn feed(answer: &mut Answer, frames: &[(u8, &[u8])]) -> Result<Option<u8>, ConnectionError> {
        let (mut prepared, request) = (Prepared::default(), Request { bytes: Vec::new(), has_text: true });
        let mut sink = ReplySink { status: 0, answer, prepared: &mut prepared, request: &request };
        for (kind, body) in frames {
            let body = if sink.wants(*kind) { *body } else { b"" };
            if sink.frame(*kind, body)? == Flow::Stop {
                return Ok(Some(sink.status));
            }
        }
        Ok(None)
    }

    const COLUMN_A: &[u8] = b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
    const ROW_7: &[u8] = b"\0\x01\0\0\0\x017";
    const ROW_NULL: &[u8] = b"\0\x01\xff\xff\xff\xff";

    #[test]
    fn the_end_of_a_reply_is_not_taken_for_all_of_it_after_an_error() {
        const READY: &[u8] = b"Z\0\0\0\x05I";
        let mut answer = Answer::default();
        answer.expect(Rows::Skipped);
        feed(&mut answer, &[(b'E', b"SERROR\0C42703\0\0")]).unwrap();
        assert_eq!(answer.status_of_whole(READY), None);
        assert!(answer.take_error().is_some());
        answer.expect(Rows::Skipped);
        assert_eq!(answer.status_of_whole(READY), Some(b'I'));
    }

    #[test]
    fn of_each_result_the_columns_and_the_last_row_are_kept() {
        let mut answer = Answer::default();
        answer.expect(Rows::Kept);
        let frames: [(u8, &[u8]); 8] = [
            (b'C', b""),
            (b'T', COLUMN_A),
            (b'D', ROW_7),
            (b'D', ROW_NULL),
            (b'C', b""),
            (b'T', COLUMN_A),
            (b'C', b""),
            (b'Z', b"T"),
        ];
        assert_eq!(feed(&mut answer, &frames).unwrap(), Some(b'T'));
        let columns = vec![b"a".to_vec()];
        assert_eq!(
            answer.take_results(),
            [
                ResultSet::default(),
                ResultSet { columns: columns.clone(), rows: 2, last: vec![None] },
                ResultSet { columns, rows: 0, last: vec![] },
            ]
        );
    }

    #[test]
    fn the_first_error_counts_and_names_its_statement() {
        let mut answer = Answer::default();
        answer.expect(Rows::Skipped);
        let frames: [(u8, &[u8]); 4] = [(b'C', b""), (b'E', b"C22012\0\0"), (b'E', b"C57P01\0\0"), (b'Z', b"I")];
        assert_eq!(feed(&mut answer, &frames).unwrap(), Some(b'I'));
        let found = answer.take_error().unwrap();
        assert_eq!((found.query, found.error.sqlstate.as_str()), (1, "22012"));
    }

    #[test]
    fn a_pipeline_ends_with_its_last_part() {
        let mut answer = Answer { awaited: 2, ..Answer::default() };
        assert_eq!(feed(&mut answer, &[(b'C', b""), (b'Z', b"I")]).unwrap(), None);
        assert_eq!(feed(&mut answer, &[(b'C', b""), (b'Z', b"I")]).unwrap(), Some(b'I'));
    }

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
    }

    #[test]
    fn only_a_complete_reply_without_surprises_is_taken_as_a_whole() {
        let usual =
            [message(b'2', b""), message(b'D', ROW_7), message(b'C', b"SELECT 1\0"), message(b'Z', b"T")].concat();
        let taken = |bytes: &[u8]| {
            let mut answer = Answer::default();
            answer.expect(Rows::Skipped);
            answer.status_of_whole(bytes)
        };
        assert_eq!(taken(&usual), Some(b'T'));
        for end in 0..usual.len() {
            assert_eq!(taken(&usual[..end]), None, "cut at {end}");
        }
        assert_eq!(taken(&[&usual[..], &message(b'N', b"")].concat()), None);
        for surprise in [message(b'E', b"C22012\0\0"), message(b'N', b"\0"), message(b'1', b""), message(b'I', b"")] {
            assert_eq!(taken(&[surprise, usual.clone()].concat()), None);
        }
    }

    proptest! {
        /// One by one is the plain way; as a whole must come to the same.
        #[test]
        fn taken_as_a_whole_or_one_by_one_is_the_same(
            kinds in prop::collection::vec(prop::sample::select(b"2DCZEIN1".to_vec()), 1..6),
            damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        ) {
            let mut bytes: Vec<u8> = kinds.iter().flat_map(|kind| message(*kind, b"T")).collect();
            if let Some((at, byte)) = damage {
                *at.get_mut(&mut bytes) = byte;
            }
            let (mut answer, request) = (Answer::default(), Request::default());
            answer.expect(Rows::Skipped);
            if let Some(status) = answer.status_of_whole(&bytes) {
                let (mut plain, mut prepared) = (Answer::default(), Prepared::default());
                plain.expect(Rows::Skipped);
                let mut sink = ReplySink { status: 0, answer: &mut plain, prepared: &mut prepared, request: &request };
                let (used, flow) = super::super::frames::Rest::default().consume(&bytes, &mut sink).unwrap();
                prop_assert_eq!((used, flow, sink.status), (bytes.len(), Flow::Stop, status));
                prop_assert!(plain.take_error().is_none());
            }
        }

        #[test]
        fn any_message_is_taken_or_refused(
            kind: u8,
            body in prop::collection::vec(any::<u8>(), 0..60),
            rows in prop::sample::select(vec![Rows::Skipped, Rows::Kept, Rows::Counted, Rows::Handed]),
        ) {
            let mut answer = Answer::default();
            answer.expect(rows);
            let _ = feed(&mut answer, &[(kind, &body)]);
        }
    }
}
