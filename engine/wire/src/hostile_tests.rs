//! Tests of sessions with servers that are broken, hostile, or not PostgreSQL at all. Each session must end with an
//! error message, and none may hang.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use ground::poll::{Poll, Token};
use proptest::prelude::*;

use super::session::{Fill, Session};
use super::target::Target;
use super::{BUFFER_SIZE, Connection};
use crate::error::ConnectionError;
use crate::params;
use crate::params::{Environment, Given};

/// A machine without environment variables and files.
struct Bare;

impl Environment for Bare {
    fn var(&self, _name: &str) -> Option<String> {
        None
    }
    fn user_name(&self) -> Option<String> {
        Some("user".to_owned())
    }
    fn home(&self) -> Option<PathBuf> {
        None
    }
}

/// Starts a server that calls `behave` for each connection. After each call the receiver gets all bytes that the client
/// of that connection has sent.
fn serve(behave: impl Fn(&mut TcpStream) + Send + 'static) -> (u16, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (heard, hears) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            behave(&mut stream);
            // The client may have disconnected by now. The bytes that it sent can be read nevertheless.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let mut said = Vec::new();
            let _ = stream.read_to_end(&mut said);
            if heard.send(said).is_err() {
                return;
            }
        }
    });
    (port, hears)
}

fn target(port: u16, options: &str) -> Arc<Target> {
    let dbname = format!("host=127.0.0.1 port={port} user=u dbname=d password=secret {options}");
    let given = Given { dbname: Some(dbname), ..Given::default() };
    Arc::new(Target::resolve(params::resolve(&given, &Bare).unwrap()))
}

fn open(port: u16, options: &str) -> Result<Session, String> {
    let prefix = format!("connection to server at \"127.0.0.1\", port {port} failed: ");
    Session::open(&target(port, options)).map_err(|error| error.message.replace(&prefix, ""))
}

/// Returns the error of a session with a server that writes these bytes and ignores the bytes that the client sends.
fn error_of(bytes: impl Into<Vec<u8>>, options: &str) -> String {
    let bytes = bytes.into();
    let (port, _heard) = serve(move |stream| stream.write_all(&bytes).unwrap());
    open(port, options).err().unwrap_or_else(|| "no error".to_owned())
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
}

fn welcome() -> Vec<u8> {
    [message(b'R', &[0; 4]), message(b'S', b"server_version\x0018.6\0"), message(b'Z', b"I")].concat()
}

#[test]
fn an_answer_to_the_tls_request_that_is_none() {
    assert_eq!(error_of(b"X", "sslmode=require"), "received invalid response to SSL negotiation: X");
    assert_eq!(error_of(b"N", "sslmode=require"), "server does not support SSL, but SSL was required");
    assert_eq!(error_of(b"EFATAL", "sslmode=require"), "server sent an error response during SSL exchange");
    let garbage = error_of(b"S and then no TLS at all, but so much text that it cannot be", "sslmode=require");
    assert!(garbage.starts_with("SSL error: "), "{garbage}");
    assert_eq!(error_of(b"S", "sslmode=require"), "SSL error: unexpected eof while reading");
    assert!(error_of(b"HTTP/1.1 400", "sslmode=require sslnegotiation=direct").starts_with("SSL error: "));
}

#[test]
fn a_server_that_says_nothing() {
    let closed = "server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally\n\t\
                  before or while processing the request.";
    assert_eq!(error_of(b"", "sslmode=disable"), closed);
    assert_eq!(error_of(b"", "sslmode=require"), closed);
    assert_eq!(error_of(b"R\0\0\0\x08\0\0", "sslmode=disable"), closed);
    assert_eq!(error_of(b"E\0\0\0\xffSFATAL\0", "sslmode=disable"), closed);
}

/// Starts a server that answers a query only when a cancel request for its session has arrived. The receiver gets the
/// cancel request.
fn serve_until_cancelled() -> (u16, Receiver<()>, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let ((begins, begun), (heard, hears)) = (channel(), channel());
    thread::spawn(move || {
        let (mut session, _) = listener.accept().unwrap();
        let key = message(b'K', &[0, 0, 0, 7, 1, 2, 3, 4]);
        session.write_all(&[message(b'R', &[0; 4]), key, message(b'Z', b"I")].concat()).unwrap();
        let mut said = Vec::new();
        while !said.ends_with(b"select pg_sleep(1000)\0") {
            let mut byte = [0];
            session.read_exact(&mut byte).unwrap();
            said.extend_from_slice(&byte);
        }
        begins.send(()).unwrap();
        let (mut request, _) = listener.accept().unwrap();
        let mut said = Vec::new();
        while said.len() < 16 {
            let mut buffer = [0; 16];
            let count = request.read(&mut buffer).unwrap();
            said.extend_from_slice(&buffer[..count]);
        }
        drop(request);
        heard.send(said).unwrap();
        session.write_all(&[message(b'E', b"SERROR\0C57014\0Mcancelled\0\0"), message(b'Z', b"I")].concat()).unwrap();
        // The server closes the next attempt to connect without answering it.
        let (mut attempt, _) = listener.accept().unwrap();
        let _ = attempt.read_to_end(&mut Vec::new());
        let _ = session.read_to_end(&mut Vec::new());
    });
    (port, begun, hears)
}

#[test]
fn an_interrupted_session_has_its_statement_cancelled() {
    let (port, begun, hears) = serve_until_cancelled();
    let (target, interrupt) = (target(port, "sslmode=disable"), Arc::new(AtomicBool::new(false)));
    target.obey(&interrupt);
    let mut session = Session::open(&target).unwrap();
    let waiting = thread::spawn(move || {
        let error = session.query("select pg_sleep(1000)").unwrap_err().to_string();
        (error, session.query("select 1").unwrap_err().to_string())
    });
    begun.recv().unwrap();
    interrupt.store(true, Ordering::Relaxed);
    assert_eq!(waiting.join().unwrap(), ("ERROR:  cancelled".to_owned(), "interrupted".to_owned()));
    assert_eq!(Session::open(&target).err().unwrap().message, "interrupted");
    let request = [&[0, 0, 0, 16][..], &80_877_102u32.to_be_bytes(), &[0, 0, 0, 7, 1, 2, 3, 4]].concat();
    assert_eq!(hears.recv().unwrap(), request);
}

#[test]
fn an_interrupt_reaches_a_session_whose_server_has_stopped_reading() {
    let (ends, ended) = channel::<()>();
    let (port, _heard) = serve(move |stream| {
        let copies = message(b'G', &[0; 3]);
        stream.write_all(&[welcome(), copies].concat()).unwrap();
        // The server reads nothing more until the client has given up.
        let _ = ended.recv();
    });
    let (target, interrupt) = (target(port, "sslmode=disable"), Arc::new(AtomicBool::new(false)));
    target.obey(&interrupt);
    let mut session = Session::open(&target).unwrap();
    let sent = Arc::new(AtomicUsize::new(0));
    let sending = thread::spawn({
        let sent = Arc::clone(&sent);
        move || {
            let fill = |data: &mut Vec<u8>| {
                sent.fetch_add(1, Ordering::Relaxed);
                data.extend_from_slice(&[b'x'; BUFFER_SIZE]);
                Fill::More
            };
            session.copy_in("copy t from stdin", fill).unwrap_err().to_string()
        }
    });
    // Wait until the socket accepts no more data.
    let mut before = 0;
    while before == 0 || sent.load(Ordering::Relaxed) != before {
        before = sent.load(Ordering::Relaxed);
        thread::sleep(Duration::from_millis(300));
    }
    interrupt.store(true, Ordering::Relaxed);
    assert_eq!(sending.join().unwrap(), "interrupted");
    drop(ends);
}

#[test]
fn a_unix_listener_with_a_full_queue_is_given_up_when_the_time_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let listener = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
    listener.bind(&socket2::SockAddr::unix(folder.path().join(".s.PGSQL.5432")).unwrap()).unwrap();
    listener.listen(0).unwrap();
    let dbname = format!("host={} user=u dbname=d connect_timeout=1", folder.path().display());
    let given = Given { dbname: Some(dbname), ..Given::default() };
    let target = Arc::new(Target::resolve(params::resolve(&given, &Bare).unwrap()));
    // The first connection fits into the listening socket's queue, but no server accepts it.
    for _ in 0..2 {
        let error = Session::open(&target).err().unwrap().message;
        assert!(error.ends_with("failed: timeout expired"), "{error}");
    }
}

#[test]
fn a_server_that_keeps_silent_is_given_up_when_the_time_is_over() {
    let (port, _heard) = serve(|_| thread::sleep(Duration::from_secs(600)));
    assert_eq!(open(port, "sslmode=disable connect_timeout=1").err().unwrap(), "timeout expired");
}

#[test]
fn an_answer_in_time_counts_even_if_it_is_read_late() {
    let (written, answer) = channel();
    let (port, _heard) = serve(move |stream| {
        stream.write_all(&welcome()).unwrap();
        written.send(()).unwrap();
    });
    let poll = Poll::new().unwrap();
    let target = target(port, "sslmode=disable connect_timeout=1");
    let mut connection = Connection::open(&target, &poll, Token(0)).unwrap();
    answer.recv().unwrap();
    thread::sleep(connection.deadline().unwrap().saturating_duration_since(Instant::now()));
    let progress = connection.advance(&mut [0; BUFFER_SIZE], &poll, Token(0)).unwrap();
    assert!(progress.as_ref().is_some_and(|server| server.version == "18.6"), "{progress:?}");
}

#[test]
fn a_query_that_the_socket_takes_only_in_part_is_sent_whole() {
    const LONG: usize = 32 << 20;
    let (port, _heard) = serve(|stream| {
        stream.write_all(&welcome()).unwrap();
        stream.read_exact(&mut vec![0; LONG]).unwrap();
        stream.write_all(&[message(b'C', b"SELECT 0\0"), message(b'Z', b"I")].concat()).unwrap();
    });
    let mut session = open(port, "sslmode=disable").unwrap();
    assert_eq!(session.query(&"x".repeat(LONG)).unwrap().len(), 0);
}

/// Starts a server on a Unix socket that accepts one session and, if `welcomed` is true, reports that it is ready. When
/// the returned function is called, the server sends an error and closes the session; then the function returns. A
/// client that writes to the session afterwards gets an error from its first write.
fn leaving(welcomed: bool) -> (tempfile::TempDir, Arc<Target>, impl FnOnce()) {
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
    let ((told, tells), (left, leaves)) = (channel(), channel());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        if welcomed {
            stream.write_all(&welcome()).unwrap();
        }
        tells.recv().unwrap();
        stream.write_all(&message(b'E', b"SFATAL\0C57P01\0Mthe server leaves\0\0")).unwrap();
        drop(stream);
        left.send(()).unwrap();
    });
    let dbname = format!("host={} port=5432 user=u dbname=d", folder.path().display());
    let given = Given { dbname: Some(dbname), ..Given::default() };
    let target = Arc::new(Target::resolve(params::resolve(&given, &Bare).unwrap()));
    let leave = move || {
        told.send(()).unwrap();
        leaves.recv().unwrap();
    };
    (folder, target, leave)
}

#[test]
fn the_last_word_is_heard_even_if_the_socket_breaks_first() {
    let (_folder, target, leave) = leaving(false);
    let poll = Poll::new().unwrap();
    let mut connection = Connection::open(&target, &poll, Token(0)).unwrap();
    leave();
    let error = connection.advance(&mut [0; BUFFER_SIZE], &poll, Token(0)).unwrap_err();
    assert!(error.message.ends_with("failed: FATAL:  the server leaves"), "{error}");

    let (_folder, target, leave) = leaving(true);
    let mut session = Session::open(&target).unwrap();
    leave();
    let last_words = format!("FATAL:  the server leaves\n{}", ConnectionError::Closed);
    assert_eq!(session.query("select 1").unwrap_err().to_string(), last_words);

    let (_folder, target, leave) = leaving(true);
    let mut session = Session::open(&target).unwrap();
    leave();
    let error = session.copy_in("copy t from stdin", |_| Fill::Done).unwrap_err();
    assert_eq!(error.to_string(), last_words);
}

#[test]
fn an_error_instead_of_an_authentication_request() {
    let error = message(b'E', b"SFATAL\0C53300\0Mtoo many clients already\0\0");
    assert_eq!(error_of(error, "sslmode=disable"), "FATAL:  too many clients already");
}

#[test]
fn a_server_of_another_kind() {
    let unexpected = "expected authentication request from server, but received ";
    assert_eq!(error_of(b"HTTP/1.1 400 Bad Request\r\n", "sslmode=disable"), format!("{unexpected}H"));
    assert_eq!(error_of(b"SSH-2.0-OpenSSH_9.2\r\n", "sslmode=disable"), format!("{unexpected}S"));
    assert_eq!(error_of(b"Z\0\0\0\x05I", "sslmode=disable"), format!("{unexpected}Z"));
    assert_eq!(error_of(b"\xff\xff\xff\xff\xff\xff", "sslmode=disable"), format!("{unexpected}\\xff"));
}

#[test]
fn a_length_beyond_all_measure() {
    let invalid = "received invalid authentication request";
    assert_eq!(error_of(b"R\x7f\xff\xff\xff\0\0\0\0", "sslmode=disable"), invalid);
    assert_eq!(error_of(b"R\0\0\0\x04", "sslmode=disable"), invalid);
    let after_welcome = b"R\0\0\0\x08\0\0\0\0S\x3f\xff\xff\xff";
    assert_eq!(
        error_of(after_welcome, "sslmode=disable"),
        "lost synchronization with server: got message type \"S\", length 1073741823"
    );
}

#[test]
fn messages_in_single_bytes_are_messages() {
    let (port, _heard) = serve(|stream| {
        stream.set_nodelay(true).unwrap();
        for byte in welcome() {
            stream.write_all(&[byte]).unwrap();
            thread::yield_now();
        }
    });
    assert_eq!(open(port, "sslmode=disable").unwrap().server.version, "18.6");
}

#[test]
fn a_server_without_tls_is_taken_on_the_same_socket() {
    let (port, heard) = serve(|stream| {
        let mut request = [0; 8];
        stream.read_exact(&mut request).unwrap();
        stream.write_all(b"N").unwrap();
        stream.write_all(&welcome()).unwrap();
    });
    let session = open(port, "sslmode=prefer").unwrap();
    drop(session);
    let said = heard.recv().unwrap();
    assert!(said.windows(4).any(|bytes| bytes == b"user"));
    assert!(heard.try_recv().is_err());
}

#[test]
fn the_password_goes_to_nobody_who_may_not_have_it() {
    for (request, options, error) in [
        (
            &[0, 0, 0, 3][..],
            "channel_binding=require",
            "channel binding required but not supported by server's authentication request",
        ),
        (
            &[0, 0, 0, 5, 1, 2, 3, 4],
            "channel_binding=require",
            "channel binding required but not supported by server's authentication request",
        ),
        (
            &[0, 0, 0, 0],
            "channel_binding=require",
            "channel binding required, but server authenticated client without channel binding",
        ),
        (
            &[0, 0, 0, 3],
            "require_auth=scram-sha-256",
            "authentication method requirement \"scram-sha-256\" failed: server requested a cleartext password",
        ),
        (
            &[0, 0, 0, 5, 1, 2, 3, 4],
            "require_auth=!md5",
            "authentication method requirement \"!md5\" failed: server requested a hashed password",
        ),
        (
            &[0, 0, 0, 0],
            "require_auth=scram-sha-256",
            "authentication method requirement \"scram-sha-256\" failed: server did not complete authentication",
        ),
        (&[0, 0, 0, 7], "", "GSSAPI authentication not supported"),
        (&[0, 0, 0, 99], "", "authentication method 99 not supported"),
        (b"\0\0\0\x0aOAUTHBEARER\0\0", "", "none of the server's SASL authentication mechanisms are supported"),
        (&[0, 0, 0, 12], "", "received the end of SASL authentication before it was requested"),
    ] {
        let bytes = message(b'R', request);
        let (port, heard) = serve(move |stream| stream.write_all(&bytes).unwrap());
        assert_eq!(open(port, &format!("sslmode=disable {options}")).err().unwrap(), error);
        let said = String::from_utf8_lossy(&heard.recv().unwrap()).into_owned();
        assert!(!said.contains("secret") && !said.contains("md5"), "{said}");
    }
}

#[test]
fn a_server_that_skips_the_proof_of_its_identity_is_refused() {
    let (port, _heard) = serve(|stream| {
        stream.write_all(&message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0")).unwrap();
        stream.write_all(&message(b'R', &[0; 4])).unwrap();
    });
    assert_eq!(open(port, "sslmode=disable").err().unwrap(), "server did not complete authentication");
}

#[test]
fn a_row_that_is_shorter_than_it_says_is_an_error() {
    let (port, _heard) = serve(|stream| {
        stream.write_all(&welcome()).unwrap();
        stream.write_all(&message(b'T', b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0")).unwrap();
        stream.write_all(&message(b'D', b"\0\x01\0\0\0\x09x")).unwrap();
    });
    let error = open(port, "sslmode=disable").unwrap().query("select 1").unwrap_err();
    assert_eq!(error.to_string(), "insufficient data in \"D\" message");
}

/// Generates messages that a server might send, and some that no server would send.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop::sample::select(b"REZSKNDTC1v2GWHdc\0".to_vec());
    let body = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..12),
        (0u8..14, prop::collection::vec(any::<u8>(), 0..12))
            .prop_map(|(code, rest)| [&[0, 0, 0, code], &rest[..]].concat()),
        Just(b"\0\0\0\x0aSCRAM-SHA-256\0\0".to_vec()),
    ];
    prop::collection::vec((kind, body), 0..8)
        .prop_map(|list| list.iter().flat_map(|(kind, body)| message(*kind, body)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_a_server_sends_a_session_ends(
        welcomed: bool,
        mut bytes in prop_oneof![messages(), prop::collection::vec(any::<u8>(), 0..100)],
        mode in prop::sample::select(vec!["disable", "prefer", "allow", "require"]),
        wanted in prop::sample::select(vec!["any", "read-write", "prefer-standby"]),
    ) {
        if welcomed {
            bytes = [welcome(), bytes].concat();
        }
        let (port, _heard) = serve(move |stream| {
            let _ = stream.write_all(&bytes);
        });
        if let Ok(mut session) = open(port, &format!("sslmode={mode} target_session_attrs={wanted}")) {
            let _ = session.query("select 1");
        }
    }
}

/// Reads until the client has sent Terminate.
fn hear_out(stream: &mut TcpStream) {
    let (mut said, mut buffer) = (Vec::new(), [0; 256]);
    while !said.ends_with(&[b'X', 0, 0, 0, 4]) {
        let read = stream.read(&mut buffer).unwrap();
        assert_ne!(read, 0, "the client left without a word");
        said.extend_from_slice(&buffer[..read]);
    }
}

#[test]
fn a_session_has_ended_on_the_server_too() {
    let (ended, ends) = channel();
    let (port, _heard) = serve(move |stream| {
        stream.write_all(&welcome()).unwrap();
        hear_out(stream);
        thread::sleep(Duration::from_millis(100));
        // The client may have disconnected by now.
        let _ = stream.write_all(&message(b'S', b"a\0b\0"));
        ended.send(()).unwrap();
    });
    // A client that does not wait for the end of its session disconnects each time before the server's pause is over. A
    // client that waits disconnects before that only if a busy machine stops the server for longer than the client is
    // willing to wait.
    let has_ended = (0..10).any(|_| {
        drop(open(port, "sslmode=disable").unwrap());
        let waited = ends.try_recv().is_ok();
        if !waited {
            ends.recv().unwrap();
        }
        waited
    });
    assert!(has_ended, "the client left before the server had ended the session");
}

#[test]
fn a_server_that_does_not_end_a_session_is_left_alone_with_it() {
    let (left, leaves) = channel::<()>();
    let (port, heard) = serve(move |stream| {
        stream.write_all(&welcome()).unwrap();
        hear_out(stream);
        leaves.recv().unwrap_err();
    });
    drop(open(port, "sslmode=disable").unwrap());
    drop(left);
    heard.recv().unwrap();
}
