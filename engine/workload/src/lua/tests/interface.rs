//! Checks sysbench's C interface as scripts use it through `ffi`.

use super::*;

/// Makes a client that executes `prepare` with this body, in which `C` is `ffi.C`.
fn body(body: &str) -> Hand {
    Hand::body(&format!("local ffi = require('ffi') local C = ffi.C {body}"))
}

/// Makes a client that executes `prepare` with this body, in which `C` is `ffi.C` and `con` is a connection.
fn connected(rest: &str) -> Hand {
    body(&format!("local con = sysbench.sql.driver():connect() {rest}")).connected()
}

#[test]
fn types_are_declared_beforehand_and_may_be_used_in_declarations_of_the_scripts() {
    let mut hand = body(
        "ffi.cdef[[
            void sb_counter_inc(int, sb_counter_type);
            typedef struct { sql_connection *con; sql_bind binds[2]; sql_result rs; sb_arg_t arg; } mine;
         ]]
         assert(ffi.sizeof('sql_result') == 48 and ffi.sizeof('sql_bind') == 40 and ffi.sizeof('sb_arg_t') == 40)
         assert(ffi.sizeof('sql_row') == 16 and ffi.sizeof('sql_value') == 16)
         assert(C.SB_CNT_MAX == 6 and C.SQL_TYPE_VARCHAR == 12 and C.DB_ERROR_FATAL == 2 and C.SB_ARG_TYPE_MAX == 8)
         assert(not pcall(ffi.cdef, 'typedef enum {SB_CNT_OTHER} sb_counter_type;'))
         assert(pcall(ffi.cdef, 'typedef struct histogram sb_histogram_t; int db_close(sql_statement *);'))",
    );
    assert_eq!(hand.rest(), [Seen::End]);
}

#[test]
fn what_a_script_counts_is_counted_before_its_next_action() {
    let mut hand = connected(
        "C.sb_counter_inc(sysbench.tid, C.SB_CNT_ERROR)
         C.sb_counter_inc(sysbench.tid, 'SB_CNT_READ')
         C.sb_counter_inc(sysbench.tid, C.SB_CNT_TRX)
         C.sb_counter_inc(sysbench.tid, 99)
         con:query('a')
         assert(C.sb_counter_val(sysbench.tid, C.SB_CNT_WRITE) == 1)
         assert(C.sb_counter_val(sysbench.tid, C.SB_CNT_ERROR) == 1)
         pcall(con.query, con, 'b')
         assert(C.sb_counter_val(sysbench.tid, C.SB_CNT_ERROR) == 2)
         con:query('c')",
    );
    let queries = Queries { reads: 1, errors: 1, ..Queries::default() };
    assert_eq!(hand.next(), Seen::Count(queries, 1));
    assert_eq!(hand.next(), text("a"));
    hand.done(&Answered { kind: QueryKind::Write, rows: 1, ..Answered::default() });
    assert_eq!(hand.next(), text("b"));
    hand.fail("42P01", "no");
    assert_eq!(hand.rest(), [text("c"), Seen::End]);
}

#[test]
fn counters_and_the_number_of_the_thread_are_the_clients_own() {
    let mut hand = Hand::events(
        "local C = require('ffi').C
         function event()
            assert(C.sb_tls_thread_id == 0 and C.sb_counter_val(0, C.SB_CNT_TRX) == (n or 0))
            n = (n or 0) + 1
         end",
    );
    assert_eq!(hand.next(), Seen::End);
    for _ in 0..3 {
        hand.begin();
        assert_eq!(hand.next(), Seen::End);
    }
}

#[test]
fn objects_are_opaque() {
    let mut hand = connected(
        "local rs = con:query('a')
         local stmt = con:prepare('b')
         for _, object in ipairs {sysbench.sql.driver(), con, rs, stmt} do assert(type(object) == 'cdata') end
         local name = '<sql_connection><sql_result><sql_statement><sql_driver>'
         assert(tostring(con) .. tostring(rs) .. tostring(stmt) .. tostring(con.driver) == name)
         assert(stmt.connection == con and stmt.connection.driver:name() == 'pgsql')
         assert(ffi.string(con.driver.lname) == 'PostgreSQL driver')
         assert(not pcall(function() return con.nosuch end) and not pcall(con.query, 5, 'a'))
         assert(not pcall(con.query, nil, 'a') and not pcall(rs.fetch_row, con) and not pcall(C.db_query, stmt, 'a', 1))
         stmt.connection:query('c')",
    );
    assert_eq!(hand.next(), text("a"));
    hand.done(&rows(&[None]));
    assert_eq!(hand.rest(), [Seen::Prepare("sbstmt0".to_owned()), text("c"), Seen::End]);
}

#[test]
fn queries_and_rows_go_through_the_functions_of_c() {
    let mut hand = body(
        "local con = C.db_connection_create(C.db_create(nil))
         local rs = C.db_query(con, 'q', 1)
         assert(rs.nrows == 2 and rs.nfields == 1 and rs.counter == C.SB_CNT_READ)
         local row = C.db_fetch_row(rs)
         assert(ffi.string(row.values[0].ptr, row.values[0].len) == 'abc' and rs.row.values == row.values)
         assert(C.db_fetch_row(rs).values[0].ptr == nil and C.db_fetch_row(rs) == nil)
         assert(C.db_free_results(rs) == 0 and C.db_free_results(rs) == 1 and rs.nrows == 0)
         assert(C.db_query(con, ffi.cast('const char *', 'BEGIN;'), 5) == nil and con.error == C.DB_ERROR_NONE)
         assert(C.db_query(con, 'bad', 3) == nil and con.error == C.DB_ERROR_FATAL and con.sql_errno == 0)
         assert(ffi.string(con.sql_state) == '42P01' and ffi.string(con.sql_errmsg) == 'no')
         assert(C.db_query(con, 'good', 4) == nil and con.error == C.DB_ERROR_NONE and con.sql_state == nil)
         assert(C.db_connection_reconnect(con) == 0 and C.db_connection_close(con) == 0)
         assert(C.db_query(con, 'closed', 6) == nil and con.error == C.DB_ERROR_FATAL)
         C.db_connection_free(con)",
    )
    .connected();
    assert_eq!(hand.next(), text("q"));
    hand.done(&rows(&[Some("abc"), None]));
    assert_eq!(hand.next(), text("BEGIN"));
    hand.done(&Answered::default());
    assert_eq!(hand.next(), text("bad"));
    hand.fail("42P01", "no");
    let expected = [text("good"), Seen::Disconnect(0), Seen::Connect(0), Seen::Disconnect(0), Seen::End];
    assert_eq!(hand.rest(), expected);
}

#[test]
fn bulk_inserts_go_through_the_functions_of_c() {
    let mut hand = connected(
        "assert(C.db_bulk_insert_next(con, '(0)', 3) == 1)
         assert(C.db_bulk_insert_init(con, 'I', 1) == 0)
         for i = 1, 2 do assert(C.db_bulk_insert_next(con, '(' .. i .. ')', 3) == 0) end
         assert(C.db_bulk_insert_done(con) == 0)",
    );
    assert_eq!(hand.rest(), [text("I(1),(2)"), Seen::End]);
}

#[test]
fn statements_read_the_buffers_that_a_script_has_bound() {
    let mut hand = connected(
        "local stmt = C.db_prepare(con, 'f(?, ?, ?, ?)', 13)
         local binds = ffi.new('sql_bind[4]')
         local int, double = ffi.new('int32_t[1]', -7), ffi.new('double[1]', 0.5)
         local big, text = ffi.new('int64_t[1]', 9223372036854775807LL), ffi.new('char[8]', 'abcdef')
         local length, null = ffi.new('unsigned long[1]', 3), ffi.new('char[1]', 1)
         binds[0].type, binds[0].buffer = C.SQL_TYPE_INT, int
         binds[1].type, binds[1].buffer, binds[1].is_null = C.SQL_TYPE_DOUBLE, double, null
         binds[2].type, binds[2].buffer = C.SQL_TYPE_BIGINT, big
         binds[3].type, binds[3].buffer, binds[3].data_len, binds[3].max_len = C.SQL_TYPE_VARCHAR, text, length, 8
         assert(tostring(binds[0]) == '<sql_bind>')
         assert(C.db_bind_param(stmt, binds, 3) == 1 and C.db_bind_param(stmt, binds, 4) == 0)
         assert(C.db_bind_result(stmt, binds, 4) == 0)
         assert(C.db_execute(stmt) == nil)
         int[0], null[0], length[0] = 8, 0, 1
         C.db_execute(stmt)
         assert(C.db_close(stmt) == 0 and not pcall(C.db_execute, stmt))",
    );
    assert_eq!(hand.next(), Seen::Prepare("sbstmt0".to_owned()));
    hand.done(&Answered::default());
    let text_of = |text: &str| Value::Text(text.as_bytes().into());
    let big = text_of("9223372036854775807");
    let values = vec![Value::Int(-7), Value::Unset, big.clone(), text_of("abc")];
    assert_eq!(hand.next(), Seen::Query("sbstmt0".to_owned(), values));
    hand.done(&Answered::default());
    let values = vec![Value::Int(8), text_of("0.5"), big, text_of("a")];
    assert_eq!(hand.next(), Seen::Query("sbstmt0".to_owned(), values));
    hand.done(&Answered::default());
    assert_eq!(hand.rest(), [Seen::End]);
}

#[test]
fn buffers_of_the_scripts_parameters_may_be_written() {
    let mut hand = connected(
        "local types = sysbench.sql.type
         local stmt = con:prepare('f(?, ?, ?)')
         local a, b, c = stmt:bind_create(types.INT), stmt:bind_create(types.DOUBLE), stmt:bind_create(types.CHAR, 4)
         a:set(9223372036854775807LL)
         assert(tostring(a.buffer[0]) == '9223372036854775807LL')
         stmt:bind_param(a, b, c)
         a.buffer[0], b.buffer[0], c.data_len[0] = 3, 1.5, 2
         ffi.copy(c.buffer, 'xyz')
         stmt:execute()
         a:set(4) b:set(nil) c:set('abcdef')
         assert(a.buffer[0] == 4 and b.is_null[0] == 1 and c.data_len[0] == 4)
         stmt:execute()",
    );
    assert_eq!(hand.next(), Seen::Prepare("sbstmt0".to_owned()));
    hand.done(&Answered::default());
    let text_of = |text: &str| Value::Text(text.as_bytes().into());
    assert_eq!(hand.next(), Seen::Query("sbstmt0".to_owned(), vec![Value::Int(3), text_of("1.5"), text_of("xy")]));
    hand.done(&Answered::default());
    assert_eq!(hand.next(), Seen::Query("sbstmt0".to_owned(), vec![Value::Int(4), Value::Unset, text_of("abcd")]));
    hand.done(&Answered::default());
    assert_eq!(hand.rest(), [Seen::End]);
}

#[test]
fn memory_of_closed_objects_is_used_again() {
    let mut hand = body(
        "local driver = sysbench.sql.driver()
         local address = function(object) return tonumber(ffi.cast('uintptr_t', ffi.cast('void *', object))) end
         local first, second = C.db_connection_create(driver), nil
         local place = address(first)
         C.db_connection_free(first)
         assert(not pcall(C.db_query, first, 'a', 1))
         second = C.db_connection_create(driver)
         assert(address(second) == place)
         C.db_query(second, 'b', 1)",
    );
    let expected = [Seen::Connect(0), Seen::Disconnect(0), Seen::Connect(1), text("b"), Seen::End];
    assert_eq!(hand.rest(), expected);
}

#[test]
fn a_client_that_sleeps_leaves_its_thread_to_the_others() {
    let mut hand = body(
        "ffi.cdef[[int usleep(unsigned); unsigned sleep(unsigned);]]
         assert(C.usleep(1500) == 0 and C.sleep(2) == 0)
         string.gsub('x', 'x', function() C.usleep(1) end)",
    );
    assert_eq!(hand.rest(), [Seen::Sleep(1500), Seen::Sleep(2_000_000), Seen::End]);
}

#[test]
fn mysql_is_refused_when_a_script_connects() {
    let mut hand = body(
        "local driver = sysbench.sql.driver('mysql')
         assert(driver:name() == 'mysql' and C.db_connection_create(driver) == nil)
         driver:connect()",
    );
    let seen = hand.rest();
    assert!(matches!(&seen[..], [Seen::Abort(lines)] if lines[0].ends_with("t.lua:4: connection creation failed")));
}

#[test]
fn histograms_and_random_numbers_have_functions_of_c() {
    let mut hand = body(
        "local histogram = C.sb_histogram_new(10, 1, 100)
         C.sb_histogram_update(histogram, 5)
         histogram:update(1000)
         C.sb_histogram_print(histogram)
         C.sb_histogram_delete(histogram)
         local buffer = ffi.new('char[4]')
         C.sb_rand_str('#@#', buffer)
         assert(ffi.string(buffer):match('^%d%l%d$'))
         for _, name in ipairs {'default', 'uniform', 'gaussian', 'special', 'pareto'} do
            local drawn = C['sb_rand_' .. name](5, 9)
            assert(drawn >= 5 and drawn <= 9)
         end
         assert(C.sb_rand_unique() >= 0 and C.sb_rand_uniform_uint64() >= 0 and C.sb_rand_uniform_double() < 1)",
    );
    assert_eq!(hand.rest(), [Seen::End]);
}

#[test]
fn options_may_be_declared_by_structures() {
    let (script, _directory) = load(
        "local ffi = require('ffi')
         local args = ffi.new('sb_arg_t[2]')
         args[0].name, args[0].desc, args[0].value, args[0].type = 'n', 'a number', '4', ffi.C.SB_ARG_TYPE_INT
         args[1].name, args[1].desc, args[1].type = 't', 'a text', ffi.C.SB_ARG_TYPE_STRING
         assert(ffi.C.sb_lua_set_test_args(args, 2) == 0)",
        "run",
    );
    let options = script.unwrap().options().unwrap();
    let found: Vec<_> = options.iter().map(|option| (option.name.as_str(), option.default.clone())).collect();
    assert_eq!(found, [("n", OptionValue::Int(4)), ("t", OptionValue::Text(None))]);
}
