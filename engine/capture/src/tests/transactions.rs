//! Tests of transactions whose BEGIN is not in the log.

use super::{Line, made};

/// Makes a csvlog of one session. Each line has the number of the transaction, the severity with the SQLSTATE, the
/// message and, after an error, the statement.
fn csv(lines: &[(u32, &str, &str, &str)]) -> Vec<u8> {
    let row = |(at, (transaction, severity, message, statement)): (usize, &(u32, &str, &str, &str))| {
        format!(
            "2026-11-23 08:00:00.{at:03} UTC,\"me\",\"db\",7,,6560a1b2.7,{at},,2026-11-23 07:59:00 UTC,25/{transaction},0,\
             {severity},\"{message}\",,,,,,\"{statement}\",,,\"app\",\"client backend\",,0\n"
        )
    };
    lines.iter().enumerate().map(row).collect::<String>().into_bytes()
}

/// Captures a log of one session. Returns the session's statements without their times, and the counts of
/// `capture.json`, such as the number of transactions to which a BEGIN was added.
fn replayed(log: &[u8]) -> (Vec<Line>, Vec<(String, u64)>) {
    let made = made(log, false).unwrap();
    let text = |line: &Line| line.split_once(' ').unwrap().1.replace(" -", "");
    let counts = made.about.left_out.into_iter().map(|left_out| (left_out.reason, left_out.count));
    (made.sessions.concat().iter().map(text).collect(), counts.collect())
}

fn begin_added(count: u64) -> Vec<(String, u64)> {
    vec![("begin-added".to_owned(), count)]
}

const LOG: &str = "LOG,00000";

#[test]
fn a_batch_is_one_transaction() {
    let execute = |number: u32| (number, LOG, "execute <unnamed>: insert into a values (1)", "");
    let (statements, counts) = replayed(&csv(&[
        (3, LOG, "execute <unnamed>: select 1", ""),
        execute(4),
        execute(4),
        execute(4),
        (5, LOG, "statement: select 2", ""),
        execute(6),
        execute(6),
        execute(7),
    ]));
    let insert = "insert into a values (1)";
    let batches = [
        &["select 1", "BEGIN", insert, insert, insert, "COMMIT", "select 2"][..],
        &["BEGIN", insert, insert, "COMMIT", insert],
    ];
    assert_eq!((statements, counts), (batches.concat().into_iter().map(str::to_owned).collect(), begin_added(2)));
}

#[test]
fn a_batch_that_failed_is_undone() {
    let (statements, _) = replayed(&csv(&[
        (4, LOG, "execute S_1: insert into a values (1)", ""),
        (4, LOG, "execute S_1: insert into a values (2)", ""),
        (4, "ERROR,23505", "duplicate key value", "insert into a values (2)"),
        (5, LOG, "execute S_1: insert into a values (3)", ""),
    ]));
    let expected = ["BEGIN", "insert into a values (1)", "insert into a values (2) 1000 23505", "ROLLBACK"];
    assert_eq!(statements, [&expected[..], &["insert into a values (3)"]].concat());
}

#[test]
fn a_transaction_whose_begin_is_in_the_log_stays_as_it_is() {
    // In the simple protocol the duration is logged after the end of a statement. Outside of a block there is no
    // transaction at that time.
    let timed = |number: u32, text: &'static str| (number, LOG, text, "");
    let lines = [
        timed(4, "duration: 0.1 ms  statement: BEGIN"),
        timed(4, "duration: 0.1 ms  statement: update a set b = 1"),
        timed(4, "duration: 0.1 ms  execute <unnamed>: update a set b = 2"),
        timed(0, "duration: 0.1 ms  statement: COMMIT"),
        timed(0, "duration: 0.1 ms  statement: update a set b = 3"),
        timed(0, "duration: 0.1 ms  statement: update a set b = 3"),
        timed(9, "duration: 0.1 ms  execute <unnamed>: BEGIN"),
        timed(9, "duration: 0.1 ms  execute <unnamed>: update a set b = 4"),
        timed(9, "duration: 0.1 ms  execute <unnamed>: COMMIT"),
    ];
    let (statements, counts) = replayed(&csv(&lines));
    assert_eq!((statements.len(), counts), (lines.len(), vec![]));
}

#[test]
fn a_transaction_that_began_before_the_log_begins_with_it() {
    let (statements, counts) = replayed(&csv(&[
        (4, LOG, "statement: update a set b = 1", ""),
        (4, LOG, "statement: update a set b = 2", ""),
        (4, LOG, "statement: COMMIT", ""),
        (5, LOG, "statement: update a set b = 3", ""),
    ]));
    let expected = ["BEGIN", "update a set b = 1", "update a set b = 2", "COMMIT", "update a set b = 3"];
    assert_eq!((statements, counts), (expected.map(str::to_owned).to_vec(), begin_added(1)));
}

#[test]
fn other_formats_have_the_number_too() {
    let object = |text: &str| {
        format!(
            "{{\"timestamp\":\"2026-11-23 08:00:00.000 UTC\",\"pid\":7,\"vxid\":\"3/9\",\"error_severity\":\"LOG\",\
             \"message\":\"execute a: {text}\"}}\n"
        )
    };
    let (statements, _) = replayed((object("delete from a") + &object("delete from b")).as_bytes());
    assert_eq!(statements, ["BEGIN", "delete from a", "delete from b", "COMMIT"]);
}

#[test]
fn what_may_be_a_batch_is_counted_where_the_log_has_no_transactions() {
    let line = |text: &str| format!("2026-11-23 08:00:00.000 UTC [7] LOG:  {text}\n");
    let log: String = [
        "execute a: delete from b",
        "execute a: delete from b",
        "execute a: delete from b",
        "execute b: select 1",
        "execute b: select 1",
        "statement: delete from b",
        "statement: delete from b",
        "execute c: begin",
        "execute a: delete from b",
        "execute a: delete from b",
        "execute c: commit",
    ]
    .map(line)
    .concat();
    let (statements, counts) = replayed(log.as_bytes());
    assert_eq!((statements.len(), counts), (11, vec![("batch-unknown".to_owned(), 2)]));
}
