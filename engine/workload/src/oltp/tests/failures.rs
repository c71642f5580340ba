//! Checks how the clients of tests handle errors.

use std::sync::Arc;

use super::{client, event, queries, text_of};
use crate::oltp::client::OltpClient;
use crate::program::{AbortReason, Action, ActionResult, Program, StagedRequest};
use ground::random::Random;
use wire::error::{ConnectionError, ServerError};
use wire::{Answered, Rows};

fn server_error(sqlstate: &str, message: &str) -> ServerError {
    ServerError { sqlstate: sqlstate.to_owned(), message: message.to_owned(), ..ServerError::default() }
}

fn aborted(client: &mut OltpClient) -> Vec<String> {
    match client.next_action() {
        Action::Abort(AbortReason::Fatal(lines)) => lines.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_event_in_the_way_of_others_starts_again() {
    for sqlstate in ["40P01", "40001", "23505"] {
        let mut client = client(&event("oltp_write_only", &[]), 0);
        client.begin(&mut Random::seeded(1));
        for _ in 0..3 {
            assert!(matches!(client.next_action(), Action::Query { .. }));
        }
        client.complete(ActionResult::Failed(&server_error(sqlstate, "in the way")));
        assert!(matches!(
            client.next_action(),
            Action::Request(StagedRequest::Text { sql: "ROLLBACK", rows: Rows::Skipped })
        ));
        client.complete(ActionResult::Done(&Answered::default()));
        match client.next_action() {
            Action::Query { statement, .. } => assert_eq!(text_of(statement), "BEGIN"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn other_errors_end_the_client_with_sysbenchs_lines() {
    let error = server_error("42P01", "relation \"sbtest1\" does not exist");
    let mut prepared = client(&event("oltp_point_select", &[]), 0);
    prepared.begin(&mut Random::seeded(1));
    assert!(matches!(prepared.next_action(), Action::Query { .. }));
    prepared.complete(ActionResult::Failed(&error));
    assert_eq!(
        aborted(&mut prepared),
        [
            "PQexecPrepared() failed: 7 relation \"sbtest1\" does not exist",
            "`thread_run' function failed: oltp_point_select: SQL error, errno = 0, state = '42P01': \
         relation \"sbtest1\" does not exist",
        ]
    );
    let mut sent = client(&event("oltp_insert", &[]), 0);
    let query = queries(&mut sent).remove(0).sent;
    sent.complete(ActionResult::Lost(&ConnectionError::Server(Box::new(error))));
    assert_eq!(
        aborted(&mut sent)[..2],
        ["PQexec() failed: 7 relation \"sbtest1\" does not exist".to_owned(), format!("failed query was: {query}"),]
    );
}

#[test]
fn tables_that_are_not_there_are_told_of_before_the_load() {
    let event = event("oltp_point_select", &[]);
    let mut client = OltpClient::new(Arc::clone(&event), 0, Random::seeded(1));
    assert!(matches!(client.next_action(), Action::Step(_)));
    client.complete(ActionResult::Done(&Answered::default()));
    assert!(
        matches!(client.next_action(), Action::Request(StagedRequest::PrepareAll { statements }) if statements.len() == 1)
    );
    let error = ServerError { severity: "ERROR".to_owned(), ..server_error("42P01", "no such relation") };
    client.complete(ActionResult::Failed(&error));
    assert_eq!(
        aborted(&mut client),
        [
            "PQprepare() failed: ERROR:  no such relation\n",
            "`thread_init' function failed: oltp_point_select: SQL API error"
        ]
    );
}
