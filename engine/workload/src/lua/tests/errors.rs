//! Checks the messages about errors of scripts.

use super::*;

/// Returns the last line of the message with which a client was aborted.
fn said(seen: &[Seen]) -> &str {
    match seen.last() {
        Some(Seen::Abort(lines)) => lines.last().map_or("", String::as_str),
        other => panic!("not given up: {other:?}"),
    }
}

fn said_of_load(source: &str) -> String {
    let (script, directory) = load(source, "run");
    let fatal = script.err().expect("the script cannot be loaded");
    fatal.lines.join("\n").replace(&format!("{}/", directory.path().display()), "")
}

#[test]
fn an_error_of_a_query_has_its_place_in_the_script() {
    let mut hand = Hand::body("local con = sysbench.sql.driver():connect()\ncon:query('q')").connected();
    assert_eq!(hand.next(), text("q"));
    hand.fail("42P01", "relation \"nix\" does not exist");
    let seen = [hand.next()];
    let line = said(&seen);
    assert!(line.starts_with("`prepare' function failed: "), "{line}");
    assert!(
        line.ends_with("t.lua:3: SQL error, errno = 0, state = '42P01': relation \"nix\" does not exist"),
        "{line}"
    );
}

#[test]
fn an_error_of_a_query_can_be_caught() {
    let mut hand = Hand::body(
        "local con = sysbench.sql.driver():connect()
         local ok, problem = pcall(con.query, con, 'q')
         con:query(tostring(ok) .. require('ffi').string(con.sql_state) .. tostring(con.error == sysbench.sql.error.FATAL))",
    )
    .connected();
    hand.next();
    hand.fail("42P01", "no");
    assert_eq!(hand.next(), text("false42P01true"));
}

#[test]
fn a_lost_connection_is_an_error_of_the_query() {
    let mut hand = Hand::body("local con = sysbench.sql.driver():connect()\ncon:query('q')").connected();
    hand.next();
    hand.program.complete(ActionResult::Lost(&wire::error::ConnectionError::Closed));
    let seen = [hand.next()];
    assert!(said(&seen).contains("state = '08006': server closed the connection unexpectedly"), "{seen:?}");
}

#[test]
fn a_text_without_a_statement_is_an_error_of_the_interface() {
    let mut hand = Hand::body("local con = sysbench.sql.driver():connect()\ncon:query('')").connected();
    hand.next();
    hand.done(&Answered { kind: QueryKind::Nothing, ..Answered::default() });
    let seen = [hand.next()];
    assert_eq!(said(&seen).rsplit('/').next(), Some("t.lua:3: SQL API error"));
}

#[test]
fn a_refused_connection_is_an_error_of_its_caller() {
    let mut hand = Hand::body("sysbench.sql.driver():connect()");
    assert_eq!(hand.next(), Seen::Connect(0));
    let error = wire::OpenError { message: "no server".to_owned(), sqlstate: "08001".to_owned() };
    hand.program.complete(ActionResult::Refused(&error));
    let seen = [hand.next()];
    assert!(said(&seen).ends_with("t.lua:2: connection creation failed"), "{seen:?}");
}

#[test]
fn a_statement_that_could_not_be_prepared_cannot_be_executed() {
    let mut hand = Hand::body(
        "local con = sysbench.sql.driver():connect()
         local stmt = con:prepare('?')
         local p = stmt:bind_create(sysbench.sql.type.INT)
         assert(stmt:bind_param(p, p) == 1 and stmt:bind_param() == nil and stmt:bind_param(p) == 1)
         stmt:execute()",
    )
    .connected();
    hand.next();
    hand.fail("42P01", "no");
    let seen = [hand.next()];
    assert!(said(&seen).ends_with("t.lua:6: SQL API error"), "{seen:?}");
}

#[test]
fn functions_are_named_in_what_is_said_of_them() {
    let failing = |source: &str| {
        let mut hand = Hand::events(source);
        let mut seen = hand.rest();
        if seen.last() == Some(&Seen::End) {
            hand.begin();
            seen = hand.rest();
        }
        said(&seen).to_owned()
    };
    let line = failing("function thread_init() error('ti') end function event() end");
    assert!(line.starts_with("`thread_init' function failed: ") && line.ends_with("t.lua:1: ti"), "{line}");
    let line = failing("function event() error('ev') end");
    assert!(line.starts_with("`thread_run' function failed: ") && line.ends_with("t.lua:1: ev"), "{line}");
    assert_eq!(failing("function event() error({}) end"), "`thread_run' function failed: (not a string)");
    let line = failing("function event() coroutine.yield(1) end");
    assert!(line.contains("t.lua:1: attempt to yield across C-call boundary (outside"), "{line}");
}

#[test]
fn a_query_within_a_callback_of_the_library_is_refused_in_words() {
    let mut hand = Hand::body(
        "local con = sysbench.sql.driver():connect()
         string.gsub('x', 'x', function() con:query('q') end)",
    )
    .connected();
    let seen = hand.rest();
    assert!(
        said(&seen).contains("the server cannot be asked within a function that Lua's library calls back"),
        "{seen:?}"
    );
}

#[test]
fn an_error_after_the_last_event_does_not_end_the_run() {
    let mut hand = Hand::events("function event() end function thread_done() error('td') end");
    hand.rest();
    hand.program.stop();
    assert_eq!(hand.rest(), [Seen::End]);
}

#[test]
fn scripts_that_cannot_be_loaded_say_where_they_are_wrong() {
    assert_eq!(said_of_load("x = = 1"), "t.lua:1: unexpected symbol near '='");
    assert_eq!(said_of_load("\nlocal function f() error('boo') end f()"), "t.lua:2: boo");
    assert_eq!(said_of_load("error({1})"), "(not a string)");
    let line = said_of_load("sysbench.cmdline.options = {a = 1}");
    assert!(line.starts_with("`sysbench.cmdline.read_cmdline_options' function failed: "), "{line}");
    assert!(line.ends_with("wrong table structure in sysbench.cmdline.options"), "{line}");
}

#[test]
fn init_needs_an_event_and_may_fail() {
    let init = |source: &str| {
        let (script, _directory) = load(source, "run");
        let script = script.unwrap();
        script.configure(settings(), Shard::WHOLE).unwrap();
        script.init().err().map(|fatal| fatal.lines.join("\n"))
    };
    assert_eq!(init("function event() end"), None);
    assert_eq!(init("x = 1").unwrap(), "cannot find the event() function in t.lua");
    assert!(init("function init() error('in') end function event() end").unwrap().ends_with("t.lua:1: in"));
}
