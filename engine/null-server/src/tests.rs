//! Tests of sessions with clients of every kind. The answers must not depend on the pieces in which the bytes arrive,
//! and no client may break a session.

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use proptest::prelude::*;

use super::delay::Delay;
use super::messages::EncodedRows;
use super::session::{ClientSession, ServerAction, Setup};

fn setup(delay: &str) -> Setup {
    Setup { rows: EncodedRows::new(), delay: Delay::parse(delay).unwrap(), seed: 1 }
}

/// Passes bytes to a session in pieces of `size` bytes. Returns the session's answer, the delays for which it asks (the
/// test does not wait for them), and true if it closes the connection.
fn answer(bytes: &[u8], size: usize, setup: &Setup) -> (Vec<u8>, Vec<u64>, bool) {
    let mut session = ClientSession::new(0, setup, false);
    let (mut kept, mut holds) = (Vec::new(), Vec::new());
    for chunk in bytes.chunks(size) {
        kept.extend_from_slice(chunk);
        loop {
            let (used, turn) = session.answer(&kept, setup);
            kept.drain(..used);
            match turn {
                ServerAction::Go => break,
                ServerAction::Hold(time) => holds.push(time),
                ServerAction::Close => return (session.out, holds, true),
            }
        }
    }
    (session.out, holds, false)
}

/// Returns a summary of the messages after the start of the session: their types, with the status of ReadyForQuery and
/// the tag of CommandComplete.
fn summary(out: &[u8]) -> String {
    let mut words = Vec::new();
    for (kind, body) in wire::frame::messages(out) {
        let body = String::from_utf8_lossy(body);
        words.push(match kind {
            b'Z' => format!("Z{body}"),
            b'C' => format!("C({})", body.trim_end_matches('\0')),
            kind => char::from(kind).to_string(),
        });
    }
    words.join(" ").split_once("ZI ").map_or_else(String::new, |(_, after)| after.to_owned())
}

fn message(build: impl FnOnce(&mut BytesMut)) -> Vec<u8> {
    let mut out = BytesMut::new();
    build(&mut out);
    out.to_vec()
}

fn startup() -> Vec<u8> {
    message(|out| frontend::startup_message([("user", "u")], out).unwrap())
}

fn query(text: &str) -> Vec<u8> {
    message(|out| frontend::query(text, out).unwrap())
}

fn parse(name: &str, text: &str) -> Vec<u8> {
    message(|out| frontend::parse(name, text, [], out).unwrap())
}

fn bind(name: &str) -> Vec<u8> {
    let value = |value: &str, out: &mut BytesMut| {
        out.extend_from_slice(value.as_bytes());
        Ok(IsNull::No)
    };
    message(|out| assert!(frontend::bind("", name, [], ["17"], value, [0], out).is_ok()))
}

fn execute() -> Vec<u8> {
    message(|out| frontend::execute("", 0, out).unwrap())
}

fn describe(kind: u8, name: &str) -> Vec<u8> {
    message(|out| frontend::describe(kind, name, out).unwrap())
}

fn sync() -> Vec<u8> {
    message(frontend::sync)
}

fn copy_data(data: &str) -> Vec<u8> {
    message(|out| frontend::CopyData::new(data.as_bytes()).unwrap().write(out))
}

/// Returns conversations: the bytes that a client sends after its start-up packet, and the summary of the server's
/// answer.
fn conversations() -> Vec<(Vec<u8>, &'static str)> {
    let copy_done = || message(frontend::copy_done);
    let copy_fail = || message(|out| frontend::copy_fail("no", out).unwrap());
    vec![
        (query("select 1"), "T D C(SELECT 1) ZI"),
        (query(" ; -- nothing"), "I ZI"),
        (query("begin; update a set b = 1; select 1;"), "C(BEGIN) C(UPDATE 1) T D C(SELECT 1) ZT"),
        ([query("begin"), query("rollback")].concat(), "C(BEGIN) ZT C(ROLLBACK) ZI"),
        ([parse("", "begin"), bind(""), execute(), sync()].concat(), "1 2 C(BEGIN) ZT"),
        (
            [parse("p", "select $1"), bind("p"), describe(b'P', ""), execute(), bind("p"), execute(), sync()].concat(),
            "1 2 T D C(SELECT 1) 2 D C(SELECT 1) ZI",
        ),
        ([parse("p", "update a set b = $2"), describe(b'S', "p"), sync()].concat(), "1 t n ZI"),
        // After an error all messages up to Sync are skipped.
        ([bind("missing"), execute(), sync(), query("select 1")].concat(), "E ZI T D C(SELECT 1) ZI"),
        // A failed transaction accepts only the statement that ends it.
        (
            [query("begin"), bind("missing"), sync(), query("select 1"), query("end")].concat(),
            "C(BEGIN) ZT E ZE E ZE C(ROLLBACK) ZI",
        ),
        (
            [query("copy a from stdin; select 1"), copy_data("1\n2\n"), copy_data("3\n"), copy_done()].concat(),
            "G C(COPY 3) T D C(SELECT 1) ZI",
        ),
        ([query("copy a from stdin; select 1"), copy_fail()].concat(), "G E ZI"),
        (
            [parse("", "copy a from stdin"), bind(""), execute(), sync(), copy_data("1\n"), copy_done(), sync()]
                .concat(),
            "1 2 G C(COPY 1) ZI",
        ),
        (query("copy a to stdout"), "H c C(COPY 0) ZI"),
    ]
}

#[test]
fn answers_are_the_same_however_bytes_are_cut_and_delays_end_turns() {
    for (said, expected) in conversations() {
        let bytes = [startup(), said].concat();
        for delay in ["0", "1us"] {
            let setup = setup(delay);
            for size in 1..=bytes.len() {
                let (out, holds, closed) = answer(&bytes, size, &setup);
                assert_eq!(summary(&out), expected, "in pieces of {size}");
                assert!(!closed);
                assert_eq!(holds.is_empty(), delay == "0" || expected.starts_with("I ") || expected.starts_with("1 t"));
            }
        }
    }
}

#[test]
fn delays_are_drawn_in_order_for_each_connection() {
    let setup = setup("uniform:1us..1s");
    let bytes = [startup(), query("select 1; select 2"), query("select count(*) from pgbench_branches")].concat();
    let (_, holds, _) = answer(&bytes, bytes.len(), &setup);
    assert_eq!(holds.len(), 2, "the survey takes no time");
    assert_eq!(answer(&bytes, 3, &setup).1, holds);
    let mut other = ClientSession::new(1, &setup, false);
    assert!(matches!(other.answer(&bytes, &setup), (_, ServerAction::Hold(time)) if time != holds[0]));
}

#[test]
fn encryption_is_declined_and_the_session_begins_on_the_same_socket() {
    for code in [80_877_103u32, 80_877_104] {
        let request = [8u32.to_be_bytes(), code.to_be_bytes()].concat();
        let (out, _, closed) = answer(&[request, startup()].concat(), 1, &setup("0"));
        assert!(out.starts_with(b"NR") && !closed);
    }
}

#[test]
fn a_client_that_cannot_be_served_gets_the_reason() {
    let http = answer(b"GET / HTTP/1.1\r\n\r\n", 100, &setup("0"));
    assert!(String::from_utf8_lossy(&http.0).contains("invalid length of startup packet") && http.2);
    let old = [8u32.to_be_bytes(), (2u32 << 16).to_be_bytes()].concat();
    let old = answer(&old, 100, &setup("0"));
    assert!(String::from_utf8_lossy(&old.0).contains("unsupported frontend protocol 2.0") && old.2);
    let setup = setup("0");
    let mut refused = ClientSession::new(0, &setup, true);
    assert_eq!(refused.answer(&startup(), &setup).1, ServerAction::Close);
    assert!(String::from_utf8_lossy(&refused.out).contains("53300"));
}

#[test]
fn the_row_is_an_integer_in_the_format_asked_for() {
    let value = |value: &str, out: &mut BytesMut| {
        out.extend_from_slice(value.as_bytes());
        Ok(IsNull::No)
    };
    for (format, row) in [(0i16, &b"D\0\0\0\x0b\0\x01\0\0\0\x010"[..]), (1, b"D\0\0\0\x0e\0\x01\0\0\0\x04\0\0\0\0")] {
        let bound = message(|out| assert!(frontend::bind("", "", [], ["1"], value, [format], out).is_ok()));
        let (out, _, _) = answer(&[startup(), parse("", "select 1"), bound, execute()].concat(), 1000, &setup("0"));
        assert!(out.windows(row.len()).any(|bytes| bytes == row));
    }
}

fn frames() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop::sample::select(b"QPBDECHSFXdcfp\0".to_vec());
    let body = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..12),
        prop::sample::select(vec![
            b"begin;copy a from stdin;end;;'\0".to_vec(),
            b"\0\0\0\0\0\x01\0\0\0\x01x\0\0".to_vec(),
            b"\0select $1\0\0\0".to_vec(),
            b"S\0".to_vec(),
            b"P\0".to_vec(),
            b"\0\0\0\0\0".to_vec(),
        ]),
    ];
    prop::collection::vec((kind, body), 0..12).prop_map(|list| {
        list.iter()
            .flat_map(|(kind, body)| [&[*kind], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat())
            .collect()
    })
}

proptest! {
    #[test]
    fn whatever_a_client_sends_a_session_answers_or_closes(
        started: bool,
        bytes in prop_oneof![frames(), prop::collection::vec(any::<u8>(), 0..100)],
        size in 1usize..60,
        delay in prop::sample::select(vec!["0", "1us"]),
    ) {
        let bytes = if started { [startup(), bytes].concat() } else { bytes };
        let setup = setup(delay);
        let whole = answer(&bytes, bytes.len().max(1), &setup);
        prop_assert_eq!(answer(&bytes, size, &setup), whole);
    }
}
