//! Runs clients of a replay step by step, on captures that the tests write.

use std::path::Path;
use std::sync::Arc;

use super::{Choice, Replay};
use crate::program::{Action, ActionResult, Program, RecordedRequest, ReplayActions, SessionStep, Workload};
use crate::recorded::{Micros, Recorded, Scheduled, StatementFailure};
use capture::format::{Origin, Parameterization, Protocol, RecordedStatement, TemplateShape, Writer};
use ground::random::Random;
use wire::error::ConnectionError;
use wire::value::Value;

const ALL: Choice = Choice { share: 1.0, seed: 0, copies: 1 };

/// A statement of a session: its start, the protocol and text of its template, and its parameters. Parameters in quotes
/// are literals.
type Line<'a> = (Micros, Protocol, &'a str, &'a [Option<&'a str>]);

/// Writes a capture. Each session is given with its start.
fn write(directory: &Path, sessions: &[(Micros, &[Line<'_>])]) {
    let mut writer = Writer::create(directory).unwrap();
    for (start, lines) in sessions {
        let session = writer.begin_session(*start).unwrap();
        for (start, protocol, text, values) in *lines {
            let places: Vec<_> = text.match_indices('$').map(|(place, _)| place as u32).collect();
            let is_literal = values.iter().flatten().any(|value| value.starts_with('\''));
            let parameters = if is_literal {
                Parameterization::Literals { places: &places, first: 1 }
            } else {
                Parameterization::Bound(values.len() as u32)
            };
            let template = writer.template(&TemplateShape { protocol: *protocol, text, parameters }).unwrap();
            let failure = text.starts_with("fail").then_some(StatementFailure::Code(*b"23505"));
            let statement = RecordedStatement { start: *start, template, failure, ..RecordedStatement::default() };
            writer.statement(session, &statement, values).unwrap();
        }
        writer.end_session(session).unwrap();
    }
    writer.finish(Origin::default()).unwrap();
}

fn replay(sessions: &[(Micros, &[Line<'_>])], choice: Choice) -> Arc<Replay> {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), sessions);
    Arc::new(Replay::open(directory.path(), choice).unwrap())
}

/// Returns a description of the client's next action.
fn step(client: &mut dyn Program<ReplayActions>) -> String {
    match client.next_action() {
        Action::Step(SessionStep::Schedule(Scheduled { at, statement: None })) => format!("session at {at}"),
        Action::Step(SessionStep::Schedule(Scheduled { at, statement: Some(expected) })) => {
            let failure = if expected.is_failure("23505") { ", fails" } else { "" };
            let end = if expected.ends_block { ", ends a block" } else { "" };
            format!("statement of {} at {at}{failure}{end}", expected.account)
        }
        Action::Request(RecordedRequest { recorded: Recorded::Query(text), .. }) => {
            String::from_utf8(text.to_vec()).unwrap()
        }
        Action::Request(RecordedRequest { recorded: Recorded::Unnamed(text), .. }) => {
            format!("unnamed {}", String::from_utf8_lossy(text))
        }
        Action::Request(RecordedRequest { recorded: Recorded::Values { statement, mode, values }, .. }) => {
            format!("{} {:?} {values:?}", mode.name(), statement.text().unwrap())
        }
        Action::Step(SessionStep::Connect) => "connect".to_owned(),
        Action::Step(SessionStep::Disconnect) => "disconnect".to_owned(),
        Action::Step(SessionStep::Leave) => "leave".to_owned(),
        other => format!("{other:?}"),
    }
}

fn steps(client: &mut dyn Program<ReplayActions>, count: usize) -> Vec<String> {
    (0..count).map(|_| step(client)).collect()
}

const SHOP: &[(Micros, &[Line<'_>])] = &[
    (
        1_000_000,
        &[
            (1_000_100, Protocol::Simple, "select $1", &[Some("'a'")]),
            (1_000_300, Protocol::Prepared, "fail($1, $2)", &[Some("7"), None]),
            (1_000_400, Protocol::Simple, "commit", &[]),
        ],
    ),
    (
        1_000_200,
        &[
            (1_000_200, Protocol::Extended, "select $1", &[Some("x")]),
            (1_000_500, Protocol::Extended, "select $1", &[Some("'b'")]),
        ],
    ),
];

#[test]
fn a_client_runs_one_session_after_the_other_in_the_order_of_their_starts() {
    let replay = replay(SHOP, ALL);
    let mut client = replay.client(0, Random::seeded(1));
    assert_eq!(
        steps(&mut *client, 18),
        [
            "session at 0",
            "connect",
            "statement of 0 at 100",
            "select 'a'",
            "statement of 1 at 300, fails",
            &*format!("prepared \"fail($1, $2)\" {:?}", [Value::Text((*b"7").into()), Value::Unset]),
            "statement of 2 at 400, ends a block",
            "commit",
            "disconnect",
            "session at 200",
            "connect",
            "statement of 3 at 200",
            &*format!("extended \"select $1\" {:?}", [Value::Text((*b"x").into())]),
            "statement of 4 at 500",
            "unnamed select 'b'",
            "disconnect",
            "leave",
            "leave",
        ]
    );
}

#[test]
fn a_session_stays_in_utf8_whichever_encoding_the_application_chose() {
    let replay = replay(
        &[(
            0,
            &[
                (0, Protocol::Simple, "SET client_encoding TO $1", &[Some("'LATIN1'")]),
                (1, Protocol::Extended, "set names $1", &[Some("'sjis'")]),
                (2, Protocol::Prepared, "SET client_encoding = LATIN1", &[]),
                (3, Protocol::Simple, "select set_config($1, $2, false)", &[Some("'client_encoding'"), Some("'SJIS'")]),
                (4, Protocol::Simple, "select set_config($1, $2, false)", &[Some("'work_mem'"), Some("'1MB'")]),
                (5, Protocol::Simple, "set datestyle = $1; set names $2", &[Some("'ISO'"), Some("'SJIS'")]),
                (6, Protocol::Extended, "select set_config($1, $2, false)", &[Some("client_encoding"), Some("SJIS")]),
                (7, Protocol::Extended, "select set_config($1, $2, false)", &[Some("work_mem"), Some("1MB")]),
            ],
        )],
        ALL,
    );
    let bound = |name: &str, value: &str| {
        let values = [name, value].map(|text| Value::Text(text.as_bytes().into()));
        format!("extended \"select set_config($1, $2, false)\" {values:?}")
    };
    let mut client = replay.client(0, Random::seeded(1));
    let sent: Vec<_> = steps(&mut *client, 18).into_iter().skip(3).step_by(2).collect();
    assert_eq!(
        sent,
        [
            "SET client_encoding TO 'UTF8'",
            "unnamed set names 'UTF8'",
            "prepared \"SET client_encoding = 'UTF8'\" []",
            "select set_config('client_encoding', 'UTF8', false)",
            "select set_config('work_mem', '1MB', false)",
            "set datestyle = 'ISO'; set names 'UTF8'",
            &*bound("client_encoding", "UTF8"),
            &*bound("work_mem", "1MB"),
        ]
    );
}

#[test]
fn clients_share_the_sessions() {
    let replay = replay(SHOP, ALL);
    let (mut one, mut other) = (replay.client(0, Random::seeded(1)), replay.client(1, Random::seeded(1)));
    assert_eq!([step(&mut *one), step(&mut *other)], ["session at 0", "session at 200"]);
    assert_eq!(steps(&mut *other, 7).last().unwrap(), "leave");
}

#[test]
fn copies_of_a_session_are_sessions_of_the_same_time() {
    let replay = replay(SHOP, Choice { copies: 2, ..ALL });
    let mut clients: Vec<_> = (0..5).map(|number| replay.client(number, Random::seeded(1))).collect();
    let first: Vec<_> = clients.iter_mut().map(|client| step(&mut **client)).collect();
    assert_eq!(first, ["session at 0", "session at 0", "session at 200", "session at 200", "leave"]);
    let survey = replay.survey();
    assert_eq!((survey.sessions, survey.statements, survey.most_at_once), (4, 10, 4));
}

#[test]
fn a_session_that_is_lost_or_stopped_is_over() {
    let replay = replay(SHOP, ALL);
    let mut client = replay.client(0, Random::seeded(1));
    assert_eq!(steps(&mut *client, 3).last().unwrap(), "statement of 0 at 100");
    client.complete(ActionResult::Lost(&ConnectionError::Closed));
    assert_eq!(steps(&mut *client, 3), ["session at 200", "connect", "statement of 3 at 200"]);
    client.stop();
    assert_eq!(steps(&mut *client, 2), ["disconnect", "leave"]);
}

#[test]
fn templates_are_counted_in_accounts_of_their_own() {
    let replay = replay(SHOP, ALL);
    let texts: Vec<_> = replay.templates().map(|template| template.text.as_str()).collect();
    assert_eq!(texts, ["select $1", "fail($1, $2)", "commit", "select $1", "select $1"]);
    assert_eq!((replay.other_templates(), replay.about().statements), (0, 5));
}

#[test]
fn what_cannot_be_read_ends_the_client_with_a_sentence() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), SHOP);
    let replay = Arc::new(Replay::open(directory.path(), ALL).unwrap());
    let path = directory.path().join("sessions.bin");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.iter_mut().skip(8).for_each(|byte| *byte ^= 0xff);
    std::fs::write(&path, bytes).unwrap();
    let mut client = replay.client(0, Random::seeded(1));
    let last = steps(&mut *client, 3).pop().unwrap();
    assert!(last.starts_with("Abort(Script { reason: ") && last.contains("sessions.bin"), "{last}");
    let missing = Replay::open(&directory.path().join("none"), ALL).map(drop).unwrap_err().to_string();
    assert!(missing.contains("is not a capture"), "{missing}");
}
