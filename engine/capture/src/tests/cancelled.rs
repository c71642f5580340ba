//! Tests of statements that were cancelled.

use super::{left_out, log, made, sessions};

#[test]
fn a_cancelled_statement_has_the_time_until_then() {
    // The log has no SQLSTATE, so the text of the message shows the cancellation.
    let found = sessions(&[
        (0, 1, "LOG:  statement: select pg_sleep(20)"),
        (1000, 1, "ERROR:  canceling statement due to user request"),
        (1000, 1, "STATEMENT:  select pg_sleep(20)"),
        (1500, 1, "LOG:  statement: select pg_sleep(30)"),
        (2000, 1, "FATAL:  terminating connection due to administrator command"),
        (2000, 1, "STATEMENT:  select pg_sleep(30)"),
    ]);
    assert_eq!(found, [["0 select pg_sleep(20) 1000000 57014", "1500 select pg_sleep(30) 500000 57P01"]]);
}

#[test]
fn a_cancelled_statement_without_its_begin_is_left_out() {
    let lines = [
        (0, 1, "LOG:  duration: 0.1 ms  statement: select 1"),
        (1000, 1, "ERROR:  canceling statement due to statement timeout"),
        (1000, 1, "STATEMENT:  select pg_sleep(20)"),
        (2000, 1, "ERROR:  division by zero"),
        (2000, 1, "STATEMENT:  select 1 / 0"),
    ];
    assert_eq!(sessions(&lines), [["0 select 1 100", "2000 select 1 / 0 - failed"]]);
    assert_eq!(left_out(&lines), [("cancelled-unknown".to_owned(), 1)]);
}

#[test]
fn a_statement_that_a_time_limit_or_a_conflict_ended_was_cancelled() {
    for (message, code) in [
        ("ERROR:  canceling statement due to statement timeout", "57014"),
        ("ERROR:  canceling statement due to lock timeout", "55P03"),
        ("ERROR:  canceling statement due to conflict with recovery", "40001"),
        ("FATAL:  terminating connection due to conflict with recovery", "40001"),
        ("FATAL:  terminating connection due to transaction timeout", "25P04"),
        ("ERROR:  could not serialize access due to concurrent update", "failed"),
    ] {
        let lines =
            [(0, 1, "LOG:  statement: select a from t"), (1000, 1, message), (1000, 1, "STATEMENT:  select a from t")];
        let made = made(&log(&lines), false).unwrap();
        assert_eq!(made.sessions, [[format!("0 select a from t 1000000 {code}")]]);
        assert_eq!(made.cancelled, usize::from(code != "failed"), "{message}");
    }
}
