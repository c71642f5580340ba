//! Checks requests that fit in the exchange buffer and requests that do not, and that LuaJIT compiles the code of
//! events.

use super::*;

/// Runs a script with a query and a prepared statement, and returns both requests. The query's text and the statement's
/// first value have the given length.
fn asked(length: usize) -> (Seen, Seen) {
    let mut hand = Hand::body(&format!(
        "local con = sysbench.sql.driver():connect()
         local types = sysbench.sql.type
         local stmt = con:prepare('SELECT ?, ?')
         local first, last = stmt:bind_create(types.VARCHAR, {length}), stmt:bind_create(types.INT)
         stmt:bind_param(first, last)
         first:set(string.rep('v', {length})) last:set(7)
         con:query(string.rep('q', {length}))
         stmt:execute()"
    ))
    .connected();
    assert!(matches!(hand.next(), Seen::Prepare(_)));
    hand.done(&Answered::default());
    let query = hand.next();
    hand.done(&Answered::default());
    (query, hand.next())
}

#[test]
fn texts_of_any_length_are_asked() {
    for length in [0, 1, 4095, 4096, 4097, 100_000] {
        let (query, execution) = asked(length);
        assert_eq!(query, text(&"q".repeat(length)), "{length}");
        let value = Value::Text("v".repeat(length).into_bytes().into());
        assert_eq!(execution, Seen::Query("sbstmt0".to_owned(), vec![value, Value::Int(7)]), "{length}");
    }
}

#[test]
fn statements_have_any_number_of_values() {
    for count in [1, 2, 3, 15, 16, 17, 40] {
        let mut hand = Hand::body(&format!(
            "local con = sysbench.sql.driver():connect()
             local stmt, values = con:prepare('SELECT ' .. string.rep('?,', {count} - 1) .. '?'), {{}}
             for i = 1, {count} do values[i] = stmt:bind_create(sysbench.sql.type.INT) values[i]:set(-i) end
             values[1]:set(nil)
             stmt:bind_param(unpack(values))
             stmt:execute()"
        ))
        .connected();
        assert!(matches!(hand.next(), Seen::Prepare(_)));
        hand.done(&Answered::default());
        let mut values: Vec<Value> = (1..=count).map(|number| Value::Int(-number)).collect();
        values[0] = Value::Unset;
        assert_eq!(hand.next(), Seen::Query("sbstmt0".to_owned(), values));
    }
}

#[test]
fn numbers_are_whole_ones_or_as_they_are_written() {
    let mut hand = Hand::body(
        "local con = sysbench.sql.driver():connect()
         local stmt = con:prepare('SELECT ?, ?')
         local value, other = stmt:bind_create(sysbench.sql.type.DOUBLE), stmt:bind_create(sysbench.sql.type.BIGINT)
         stmt:bind_param(value, other)
         for _, each in ipairs {2^53, -2^63, 2^63, 0.1, 1e300 * 10} do
            value:set(each) other:set(-3LL)
            stmt:execute()
         end",
    )
    .connected();
    assert!(matches!(hand.next(), Seen::Prepare(_)));
    let written = |text: &str| Value::Text(text.as_bytes().into());
    for value in [
        Value::Int(1 << 53),
        Value::Int(i64::MIN),
        written(&9_223_372_036_854_775_808_f64.to_string()),
        written("0.1"),
        written(&1e301.to_string()),
    ] {
        hand.done(&Answered::default());
        assert_eq!(hand.next(), Seen::Query("sbstmt0".to_owned(), vec![value, written("-3")]));
    }
}

/// Checks that LuaJIT compiles events, which then take two thirds of the time that they take without compilation. After
/// each yield, execution continues in another trace, and each trace has to lead back to an existing one. So two
/// thousand events of two statements need only a handful of traces.
#[test]
fn events_are_compiled_with_few_traces() {
    let mut hand = Hand::events(
        "local ends = {}
         jit.attach(function(what, trace)
            local is_whole = what == 'stop'
            ends[#ends + 1] = is_whole and require('jit.util').traceinfo(trace).linktype or nil
         end, 'trace')
         local done = 0
         function thread_init()
            con = sysbench.sql.driver():connect()
            statement = con:prepare('SELECT ?, ?')
            one, two = statement:bind_create(sysbench.sql.type.INT), statement:bind_create(sysbench.sql.type.VARCHAR, 9)
            statement:bind_param(one, two)
         end
         function event()
            done = done + 1
            con:query(string.format('SELECT %d', sysbench.rand.uniform(1, sysbench.opt.table_size)))
            one:set(done) two:set('text')
            statement:execute()
            if done == 2000 then
               con:query('ends: ' .. table.concat(ends, ' '))
            end
         end",
    );
    hand.rest();
    hand.begin();
    let said = loop {
        match hand.next() {
            Seen::Text(sql) if sql.starts_with("ends: ") => break sql,
            Seen::Text(_) | Seen::Query(..) => {
                hand.program.foresee(true);
                hand.done(&rows(&[Some("a")]));
            }
            Seen::End => hand.begin(),
            other => panic!("{other:?}"),
        }
    };
    assert!(said.contains("stitch"), "{said}");
    assert!(said.split(' ').count() < 40, "{said}");
}
