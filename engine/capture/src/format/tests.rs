//! Tests that write captures, read them, and damage their files.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use tempfile::TempDir;

use super::checked::CheckedWriter;
use super::*;

/// 2026-11-23 08:00 UTC, in microseconds since 1970.
const EIGHT: Micros = 1_795_420_800_000_000;

type Parameter = Option<String>;

/// A statement with its parameters, and the session that sent it.
#[derive(Debug, Clone)]
struct Sent {
    session: usize,
    statement: RecordedStatement,
    parameters: Vec<Parameter>,
}

fn template_of(count: usize) -> (u32, TemplateShape<'static>) {
    let shape = TemplateShape {
        protocol: Protocol::Extended,
        text: "select",
        parameters: Parameterization::Bound(count as u32),
    };
    (count as u32, shape)
}

fn sent() -> impl Strategy<Value = Sent> {
    let failure = prop_oneof![
        3 => Just(None),
        1 => Just(Some(StatementFailure::Unstated)),
        1 => Just(Some(StatementFailure::Code(*b"23505"))),
        1 => Just(Some(StatementFailure::Cancelled(*b"55P03"))),
    ];
    let parameters = prop::collection::vec(prop::option::of(".{0,40}"), 0..4);
    let numbers = (0..5_usize, 0..9_000_000_000_u64, prop::option::of(any::<u32>()), prop::option::of(any::<u64>()));
    (numbers, failure, parameters).prop_map(|((session, start, duration, rows), failure, parameters)| {
        let (template, duration) = (parameters.len() as u32, duration.map(Micros::from));
        let statement = RecordedStatement { start: EIGHT + start, duration, template, failure, rows };
        Sent { session, statement, parameters }
    })
}

/// Writes a capture with the statements of five sessions.
fn write(directory: &Path, all: &[Sent]) -> About {
    let mut writer = Writer::create(directory).unwrap();
    for count in 0..4 {
        let (id, shape) = template_of(count);
        assert_eq!(writer.template(&shape).unwrap(), id);
    }
    let ids: Vec<SessionId> = (0..5).map(|_| writer.begin_session(EIGHT + 500).unwrap()).collect();
    for sent in all {
        writer.statement(ids[sent.session], &sent.statement, &sent.parameters).unwrap();
    }
    writer.session_mut(ids[3]).user = Some("me".to_owned());
    writer.end_session(ids[3]).unwrap();
    writer.finish(Origin::default()).unwrap()
}

fn read_all(capture: &Capture, session: &RecordedSession) -> Result<Vec<(RecordedStatement, Vec<Parameter>)>, Error> {
    let (mut reader, mut all) = (capture.read(session), Vec::new());
    while reader.advance()? {
        let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
        all.push((reader.statement(), reader.parameters().map(|value| value.map(text)).collect()));
    }
    Ok(all)
}

fn new_directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

proptest! {
    #[test]
    fn what_is_written_is_read(all in prop::collection::vec(sent(), 0..200)) {
        let directory = new_directory();
        let about = write(directory.path(), &all);
        let capture = Capture::open(directory.path()).unwrap();
        prop_assert_eq!(capture.about(), &about);
        prop_assert_eq!(about.statements, all.len() as u64);
        prop_assert_eq!(about.failed, all.iter().filter(|sent| sent.statement.failure.is_some()).count() as u64);
        let begin = all.iter().map(|sent| sent.statement.start).chain([EIGHT + 500]).min().unwrap();
        prop_assert_eq!(about.begin_us, begin);
        let sessions: Vec<RecordedSession> = capture.sessions().unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(sessions.len(), 5);
        prop_assert!(sessions.is_sorted_by_key(|session| session.start));
        for session in &sessions {
            let expected: Vec<_> = all.iter().filter(|sent| sent.session == session.number as usize).map(|sent| {
                (RecordedStatement { start: sent.statement.start - begin, ..sent.statement }, sent.parameters.clone())
            }).collect();
            prop_assert_eq!(session.statements, expected.len() as u64);
            prop_assert_eq!(session.user.as_deref(), (session.number == 3).then_some("me"));
            prop_assert_eq!(read_all(&capture, session).unwrap(), expected);
        }
    }
}

/// Makes a capture whose first session has several chunks.
fn example() -> (TempDir, About) {
    let directory = new_directory();
    let statement = |index: u64| Sent {
        session: (index % 2) as usize,
        statement: RecordedStatement { start: EIGHT + index * 1000, template: 1, ..RecordedStatement::default() },
        parameters: vec![Some(format!("{index:0100}"))],
    };
    let about = write(directory.path(), &(0..200).map(statement).collect::<Vec<_>>());
    (directory, about)
}

fn error(directory: &TempDir) -> String {
    let read = || -> Result<(), Error> {
        let capture = Capture::open(directory.path())?;
        for session in capture.sessions()? {
            read_all(&capture, &session?)?;
        }
        Ok(())
    };
    read().unwrap_err().to_string()
}

#[test]
fn a_session_is_read_in_chunks_that_stay_small() {
    let (directory, about) = example();
    assert_eq!((about.statements, about.commonest[0]), (200, Usage { template: 1, statements: 200 }));
    let capture = Capture::open(directory.path()).unwrap();
    let session = capture.sessions().unwrap().next().unwrap().unwrap();
    let mut reader = capture.read(&session);
    let mut most = 0;
    while reader.advance().unwrap() {
        most = most.max(reader.memory());
    }
    assert!((2048..4096).contains(&most), "{most}");
    assert_eq!(reader.memory(), 0);
}

#[test]
fn memory_of_a_long_statement_is_given_back() {
    let directory = new_directory();
    let statement = |length: usize| Sent {
        session: 0,
        statement: RecordedStatement { start: EIGHT, template: 1, ..RecordedStatement::default() },
        parameters: vec![Some("x".repeat(length))],
    };
    let all: Vec<Sent> = [vec![statement(1 << 20)], vec![statement(100); 30]].concat();
    write(directory.path(), &all);
    let capture = Capture::open(directory.path()).unwrap();
    let session = capture.sessions().unwrap().next().unwrap().unwrap();
    let mut reader = capture.read(&session);
    assert!(reader.advance().unwrap() && reader.memory() > 1 << 20);
    assert!(reader.advance().unwrap() && reader.memory() < 4096);
}

/// Replaces the content of a file, and its checksum in `capture.json`.
fn forge(directory: &TempDir, name: &str, content: &[u8]) {
    let mut about = About::read(directory.path()).unwrap();
    let mut file = CheckedWriter::create(directory.path().join(name)).unwrap();
    file.write(content).unwrap();
    let checked = file.finish().unwrap();
    *(if name == "sessions.idx" { &mut about.files.index } else { &mut about.files.templates }) = checked;
    about.write(directory.path()).unwrap();
}

#[test]
fn counts_are_bounded_by_the_size_of_the_capture_before_memory_is_taken() {
    let (directory, about) = example();
    let index = fs::read(directory.path().join("sessions.idx")).unwrap();
    // An entry begins with its length, the session's number, its start and its end. The number of statements follows.
    let mut statements = vec![0, 0, 0];
    varint::put(&mut statements, about.files.sessions_bytes + 1);
    statements.extend_from_slice(&[0; 4]);
    statements.insert(0, statements.len() as u8);
    for forged in [[&[0xff, 0xff, 0xff, 0xff, 0x7f][..], &index].concat(), statements] {
        forge(&directory, "sessions.idx", &forged);
        let message = error(&directory);
        assert!(message.contains("is damaged (an entry cannot be read)"), "{message}");
    }
    forge(&directory, "sessions.idx", &index);
    let templates = String::from_utf8(fs::read(directory.path().join("templates.jsonl")).unwrap()).unwrap();
    let (first, rest) = templates.split_once('\n').unwrap();
    let many = r#"{"id":0,"protocol":"prepared","parameters":4000000000,"text":"select 1"}"#;
    forge(&directory, "templates.jsonl", format!("{many}\n{rest}").as_bytes());
    assert!(error(&directory).contains("is damaged (line 1)"), "{first}");
}

#[test]
fn every_damaged_byte_is_found_or_harmless() {
    let (directory, _) = example();
    for name in ["sessions.bin", "sessions.idx", "templates.jsonl"] {
        let path = directory.path().join(name);
        let whole = fs::read(&path).unwrap();
        for at in (0..whole.len()).step_by(whole.len() / 200 + 1) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            fs::write(&path, &damaged).unwrap();
            let message = error(&directory);
            assert!(message.contains(name) && message.contains("is damaged ("), "{at}: {message}");
        }
        fs::write(&path, &whole).unwrap();
    }
}

#[test]
fn a_file_that_is_cut_short_is_named_with_both_sizes() {
    for name in ["sessions.bin", "sessions.idx", "templates.jsonl"] {
        let (directory, _) = example();
        let path = directory.path().join(name);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        let expected = format!(
            "\"{}\" is cut short: it has {} bytes of {}. Copy the capture again or make it again from the logs",
            path.display(),
            whole.len() - 5,
            whole.len()
        );
        assert_eq!(error(&directory), expected);
    }
}

#[test]
fn a_newer_capture_is_refused_whatever_else_it_has() {
    let (directory, _) = example();
    fs::write(directory.path().join("capture.json"), "{\"format\": 7, \"new\": {}}").unwrap();
    let expected = format!(
        "the capture in \"{}\" has format 7, and this release reads formats up to 1. Use a newer pgtrial",
        directory.path().display()
    );
    assert_eq!(error(&directory), expected);
}

#[test]
fn a_capture_without_its_end_was_not_finished_and_is_begun_again() {
    let (directory, about) = example();
    fs::remove_file(directory.path().join("capture.json")).unwrap();
    assert!(error(&directory).ends_with("was not finished. Make it again from the logs"));
    let again = write(directory.path(), &[]);
    assert_eq!((about.sessions, again.statements), (5, 0));
    assert!(Capture::open(directory.path()).is_ok());
}

#[test]
fn another_directory_is_no_capture_and_is_not_written_to() {
    let directory = new_directory();
    assert!(error(&directory).contains("is not a capture: it has no capture.json"));
    fs::write(directory.path().join("thesis.txt"), "").unwrap();
    let Err(error) = Writer::create(directory.path()) else { panic!("the directory is used") };
    assert!(error.to_string().ends_with("is not empty. Name a new directory for the capture"));
    let (finished, _) = example();
    assert!(matches!(Writer::create(finished.path()), Err(Error::Occupied(_))));
}

#[test]
fn a_template_is_written_once() {
    let directory = new_directory();
    let mut writer = Writer::create(directory.path()).unwrap();
    let literals = Parameterization::Literals { places: &[7], first: 1 };
    let shapes = [
        TemplateShape { protocol: Protocol::Simple, text: "select $1", parameters: literals },
        TemplateShape { protocol: Protocol::Extended, text: "select $1", parameters: literals },
        TemplateShape { protocol: Protocol::Extended, text: "select $1", parameters: Parameterization::Bound(1) },
        TemplateShape { protocol: Protocol::Prepared, text: "select $1", parameters: Parameterization::Bound(1) },
    ];
    for _ in 0..2 {
        let ids = shapes.map(|shape| writer.template(&shape).unwrap());
        assert_eq!(ids, [0, 1, 2, 3]);
    }
    writer.finish(Origin::default()).unwrap();
    let capture = Capture::open(directory.path()).unwrap();
    let has_literals: Vec<bool> = capture.templates().iter().map(Template::has_literals).collect();
    assert_eq!(has_literals, [true, true, false, false]);
    let mut text = Vec::new();
    capture.templates()[0].write_text([Some(&b"'x'"[..])], &mut text);
    assert_eq!(text, b"select 'x'");
}
