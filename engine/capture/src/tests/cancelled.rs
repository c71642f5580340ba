//! Tests of statements that were cancelled.

use super::{left_out, sessions};

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
