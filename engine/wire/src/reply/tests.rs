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
    let usual = [message(b'2', b""), message(b'D', ROW_7), message(b'C', b"SELECT 1\0"), message(b'Z', b"T")].concat();
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

/// Reads messages as the reply to a request, after an earlier reply that ended with an error. The earlier reply must
/// not affect the result.
fn read_after(exchange: &mut Exchange, rows: Rows, messages: &[(u8, Vec<u8>)]) -> Option<String> {
    exchange.expect(rows, Order::of_anything());
    for (kind, body) in messages.iter().chain(&[(b'Z', b"I".to_vec())]) {
        // If a reply does not fit the request, the connection is closed.
        visit(exchange, *kind, body).ok()?;
    }
    let reply = exchange.take_reply();
    let results = exchange.take_results();
    Some(format!("{reply:?} {results:?} {:?}", exchange.answered()))
}

/// Reads a reply of which the caller uses only the error. Returns false if reading ended the connection, or if the
/// reply has no error.
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
