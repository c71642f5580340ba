//! Checks the SQL functions that scripts call.

use super::*;

const CONNECT: &str = "local drv = sysbench.sql.driver() local con = drv:connect() ";

fn body(body: &str) -> Hand {
    Hand::body(&format!("{CONNECT} {body}")).connected()
}

#[test]
fn rows_are_fetched_one_by_one_and_null_is_nil() {
    let mut hand = body(
        "local rs = con:query('q')
         con:query(table.concat({rs.nrows, rs.nfields, rs:fetch_row()[1], tostring(rs:fetch_row()[1]),
                                 tostring(rs:fetch_row()), rs:fetch_fields()[1]}, ' '))",
    );
    assert_eq!(hand.next(), text("q"));
    hand.done(&rows(&[Some("a"), None]));
    assert_eq!(hand.next(), text("2 1 a nil nil name"));
}

#[test]
fn the_first_rows_values_are_returned_at_once() {
    let mut hand = body("con:query(tostring(con:query_row('q')) .. tostring(con:query_row('none')))");
    assert_eq!(hand.next(), text("q"));
    hand.done(&rows(&[Some("7"), Some("8")]));
    assert_eq!(hand.next(), text("none"));
    hand.done(&rows(&[]));
    assert_eq!(hand.next(), text("7nil"));
}

#[test]
fn statements_are_prepared_when_their_parameters_are_bound() {
    let mut hand = body(
        "local types = sysbench.sql.type
         local plain = con:prepare('BEGIN')
         local stmt = con:prepare('SELECT ?, ?, ?')
         local a, b, c = stmt:bind_create(types.INT), stmt:bind_create(types.VARCHAR, 3), stmt:bind_create(types.DOUBLE)
         assert(stmt:bind_param(a, b, c) == 0)
         a:set(1.9) b:set('abcd') c:set(2.5)
         stmt:execute()
         a:set(nil) b:set_rand_str('xx-##') c:set(3)
         stmt:execute()
         plain:execute()",
    );
    assert_eq!(hand.next(), Seen::Prepare("sbstmt0".to_owned()));
    hand.done(&Answered::default());
    assert_eq!(hand.next(), Seen::Prepare("sbstmt1".to_owned()));
    hand.done(&Answered::default());
    let values = vec![Value::Int(1), Value::Text((*b"abc").into()), Value::Text((*b"2.5").into())];
    assert_eq!(hand.next(), Seen::Query("sbstmt1".to_owned(), values));
    hand.done(&Answered::default());
    let values = vec![Value::Unset, Value::Text((*b"xx-").into()), Value::Int(3)];
    assert_eq!(hand.next(), Seen::Query("sbstmt1".to_owned(), values));
    hand.done(&Answered::default());
    assert_eq!(hand.rest(), [Seen::Query("sbstmt0".to_owned(), vec![]), Seen::End]);
}

#[test]
fn whole_numbers_of_64_bits_keep_all_their_digits() {
    let mut hand = body(
        "local stmt = con:prepare('SELECT ?')
         local p = stmt:bind_create(sysbench.sql.type.BIGINT)
         stmt:bind_param(p)
         p:set(9223372036854775807LL)
         stmt:execute()",
    );
    hand.next();
    hand.done(&Answered::default());
    let values = vec![Value::Text((*b"9223372036854775807").into())];
    assert_eq!(hand.next(), Seen::Query("sbstmt0".to_owned(), values));
}

#[test]
fn a_prepared_statements_rows_have_the_columns_that_it_was_described_with() {
    let mut hand = body(
        "local rs = con:prepare('q'):execute()
         con:query(rs.nrows .. rs.nfields .. rs:fetch_row()[1] .. rs:fetch_fields()[1])",
    );
    hand.next();
    hand.done(&rows(&[]));
    hand.next();
    hand.done(&Answered { columns: None, ..rows(&[Some("x")]) });
    assert_eq!(hand.next(), text("11xname"));
}

#[test]
fn without_server_side_preparing_values_are_written_into_the_text() {
    let mut hand = body(
        "sysbench.opt.db_ps_mode = 'disable'
         local types = sysbench.sql.type
         local stmt = con:prepare('f(?, ?, ?, ?)')
         local a, b, c = stmt:bind_create(types.INT), stmt:bind_create(types.CHAR, 9), stmt:bind_create(types.FLOAT)
         local d = stmt:bind_create(types.INT)
         stmt:bind_param(a, b, c, d)
         a:set(-5) b:set('it') c:set(0.5) d:set(nil)
         stmt:execute()",
    );
    assert_eq!(hand.next(), text("f(-5, 'it', 0.500000, NULL)"));
}

#[test]
fn bulk_inserts_are_sent_when_they_are_long_enough_or_done() {
    let mut hand = body(
        "con:bulk_insert_init('I')
         for i = 1, 3 do con:bulk_insert_next('(' .. string.rep('x', 200000) .. ')') end
         con:bulk_insert_next('(4)')
         con:bulk_insert_done()",
    );
    let Seen::Text(first) = hand.next() else { panic!("no insert") };
    assert!(first.starts_with("I(x") && first.matches("),(").count() == 1, "{}", first.len());
    hand.done(&Answered::default());
    let Seen::Text(second) = hand.next() else { panic!("no insert") };
    assert!(second.starts_with("I(x") && second.ends_with("x),(4)"), "{}", second.len());
    hand.done(&Answered::default());
    assert_eq!(hand.next(), Seen::End);
}

#[test]
fn each_connection_is_used_by_its_number() {
    let mut hand = body(
        "local other = drv:connect()
         con:query('a') other:query('b') other:query('c') con:query('d') other:disconnect() con:query('e')",
    );
    let expected = [
        Seen::Connect(1),
        Seen::Use(0),
        text("a"),
        Seen::Use(1),
        text("b"),
        text("c"),
        Seen::Use(0),
        text("d"),
        Seen::Disconnect(1),
        Seen::Use(0),
        text("e"),
        Seen::End,
    ];
    assert_eq!(hand.rest(), expected);
}

#[test]
fn connections_that_are_dropped_are_closed_before_the_next_one_is_made() {
    let mut hand = body("con = nil collectgarbage() collectgarbage() drv:connect()");
    assert_eq!(hand.rest(), [Seen::Disconnect(0), Seen::Connect(1), Seen::End]);
}

#[test]
fn a_connection_is_made_anew_under_its_number() {
    let mut hand = body("con:reconnect() con:query('a')");
    assert_eq!(hand.rest(), [Seen::Disconnect(0), Seen::Connect(0), text("a"), Seen::End]);
}

#[test]
fn coroutines_of_the_script_pass_requests_on() {
    let mut hand = body(
        "local walk = coroutine.wrap(function()
            for i = 1, 2 do con:query('inner ' .. i) coroutine.yield(i) end
         end)
         local first = walk()
         con:query('outer ' .. first)
         con:query('outer ' .. walk())
         local co = coroutine.create(function() con:query('third') error('oops') end)
         local ok, problem = coroutine.resume(co)
         con:query(tostring(ok) .. tostring(problem):match('oops'))",
    );
    let expected = ["inner 1", "outer 1", "inner 2", "outer 2", "third", "falseoops"].map(text);
    assert_eq!(hand.rest(), [&expected[..], &[Seen::End]].concat());
}

#[test]
fn files_may_ask_the_server_at_their_top_level() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("part.lua"), "con:query('part') return 5").unwrap();
    std::fs::write(path("mod.lua"), "con:query('module ' .. ...) return {six = 6}").unwrap();
    let mut hand = Hand::body(&format!(
        "con = sysbench.sql.driver():connect()
         package.path = '{}'
         local five = dofile('{}')
         local six = require('mod').six
         con:query(five .. six .. require('mod').six)",
        path("?.lua"),
        path("part.lua"),
    ))
    .connected();
    assert_eq!(hand.rest(), [text("part"), text("module mod"), text("566"), Seen::End]);
}

#[test]
fn a_text_ends_at_its_first_zero() {
    let mut hand = body("con:query('a\\0b')");
    assert_eq!(hand.next(), text("a"));
}

#[test]
fn the_functions_of_sysbench_0_5_work_over_one_connection() {
    let mut hand = Hand::body(
        "db_query('a')
         local values = {1, 'x'}
         local stmt = db_prepare('f(?, ?)')
         db_bind_param(stmt, values)
         values[1], values[2] = 2, 'yy'
         local rs = db_execute(stmt)
         db_free_results(rs)
         db_close(stmt)
         db_bulk_insert_init('I') db_bulk_insert_next('(1)') db_bulk_insert_next('(2)') db_bulk_insert_done()
         db_disconnect()
         assert(sb_rand_uniq(1, 2000000000) >= 1 and sb_rnd() >= 0 and thread_id == 0 and db_driver == 'pgsql')",
    );
    let expected = [
        Seen::Connect(0),
        text("a"),
        Seen::Prepare("sbstmt0".to_owned()),
        Seen::Query("sbstmt0".to_owned(), vec![Value::Int(2), Value::Text((*b"yy").into())]),
        text("I(1),(2)"),
        Seen::Disconnect(0),
        Seen::End,
    ];
    assert_eq!(hand.rest(), expected);
}
