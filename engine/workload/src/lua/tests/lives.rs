//! Checks what a client does from the start of its coroutine, through its transactions, to its end.

use super::*;

const SCRIPT: &str = "
function thread_init(tid) con = sysbench.sql.driver():connect() end
function event(tid) con:query('event ' .. tid) end
function thread_done() con:query('done') con:disconnect() end
";

#[test]
fn a_life_is_a_beginning_transactions_and_an_end() {
    let mut hand = Hand::events(SCRIPT);
    assert_eq!(hand.rest(), [Seen::Connect(0), Seen::End]);
    for _ in 0..3 {
        hand.begin();
        assert_eq!(hand.rest(), [text("event 0"), Seen::End]);
    }
    hand.program.stop();
    assert_eq!(hand.rest(), [text("done"), Seen::Disconnect(0), Seen::End]);
}

#[test]
fn a_client_without_a_transaction_has_its_end() {
    let mut hand = Hand::events(SCRIPT);
    hand.rest();
    hand.program.stop();
    assert_eq!(hand.rest(), [text("done"), Seen::Disconnect(0), Seen::End]);
}

#[test]
fn a_transaction_that_was_granted_may_be_taken_back() {
    let mut hand = Hand::events(SCRIPT);
    hand.rest();
    hand.begin();
    hand.program.stop();
    assert_eq!(hand.rest(), [text("done"), Seen::Disconnect(0), Seen::End]);
}

#[test]
fn an_event_that_returns_a_value_ends_its_client() {
    let mut hand = Hand::events(
        "function event() n = (n or 0) + 1 return n == 2 end
         function thread_done() sysbench.sql.driver():connect() end",
    );
    assert_eq!(hand.next(), Seen::End);
    hand.begin();
    assert_eq!(hand.next(), Seen::End);
    hand.begin();
    assert_eq!(hand.rest(), [Seen::Leave, Seen::Connect(0), Seen::End]);
}

#[test]
fn a_script_may_have_a_loop_of_its_own() {
    let mut hand = Hand::events(
        "local ffi = require('ffi')
         ffi.cdef[[bool sb_more_events(int); void sb_event_start(int); void sb_event_stop(int);]]
         function event() end
         function thread_run(tid)
            con = sysbench.sql.driver():connect()
            while ffi.C.sb_more_events(tid) do
               ffi.C.sb_event_start(tid)
               con:query('mine')
               ffi.C.sb_event_stop(tid)
               n = (n or 0) + 1
               if n == 2 then return end
            end
         end",
    );
    assert_eq!(hand.next(), Seen::End);
    hand.begin();
    assert_eq!(hand.rest(), [Seen::Connect(0), text("mine"), Seen::End]);
    hand.begin();
    assert_eq!(hand.rest(), [text("mine"), Seen::End], "the last one is complete");
    hand.begin();
    assert_eq!(hand.rest(), [Seen::Leave, Seen::End]);
}

#[test]
fn ignorable_errors_restart_the_event() {
    let mut hand = Hand::events(
        "function thread_init() con = sysbench.sql.driver():connect() end
         function sysbench.hooks.before_restart_event(e) con:query('again after ' .. e.sql_state) end
         function event() con:query('BEGIN') con:query('work') end",
    );
    hand.rest();
    hand.begin();
    for sqlstate in ["40001", "40P01", "23505"] {
        assert_eq!(hand.next(), text("BEGIN"));
        hand.done(&Answered::default());
        assert_eq!(hand.next(), text("work"));
        hand.fail(sqlstate, "no");
        assert_eq!(hand.next(), text("ROLLBACK"));
        hand.done(&Answered::default());
        assert_eq!(hand.next(), text(&format!("again after {sqlstate}")));
        hand.done(&Answered::default());
    }
    assert_eq!(hand.rest(), [text("BEGIN"), text("work"), Seen::End]);
}

#[test]
fn a_hook_makes_other_errors_ignorable() {
    let mut hand = Hand::events(
        "function thread_init() con = sysbench.sql.driver():connect() end
         function sysbench.hooks.sql_error_ignorable(e) return e.sql_state == '22012' end
         function event() con:query('work') end",
    );
    hand.rest();
    hand.begin();
    assert_eq!(hand.next(), text("work"));
    hand.fail("22012", "division by zero");
    assert_eq!(hand.rest(), [text("work"), Seen::End]);
}

#[test]
fn commands_are_the_scripts_own_or_global_functions() {
    let source = "
        sysbench.cmdline.commands = {
           one = {function() sysbench.sql.driver():connect() end},
           no = {function() return false end, sysbench.cmdline.PARALLEL_COMMAND},
        }
        function cleanup() sysbench.sql.driver():connect() end";
    let of = |name: &str| Hand::of_role(source, Role::Command(name.to_owned())).rest();
    assert_eq!(of("one"), [Seen::Connect(0), Seen::End]);
    assert_eq!(of("cleanup"), [Seen::Connect(0), Seen::End]);
    assert_eq!(of("no"), [Seen::Abort(vec![])], "without a word, as in sysbench");
}

#[test]
fn the_same_seed_draws_the_same_numbers() {
    let source = "
        function thread_init() con = sysbench.sql.driver():connect() end
        function event()
           local rand, drawn = sysbench.rand, {}
           for _, name in ipairs {'default', 'uniform', 'gaussian', 'special', 'pareto', 'zipfian'} do
              local value = rand[name](10, 20)
              assert(value >= 10 and value <= 20, name)
              drawn[#drawn + 1] = value
           end
           local double = rand.uniform_double()
           assert(double >= 0 and double < 1)
           drawn[#drawn + 1] = tostring(rand.uniform_uint64())
           assert(rand.string('#-@'):match('^%d%-%l$'))
           assert(#rand.varstring(3, 5) >= 3)
           con:query(table.concat(drawn, ' ') .. rand.string('####'))
        end";
    let draw = || {
        let mut hand = Hand::events(source);
        hand.rest();
        hand.begin();
        hand.rest()
    };
    let drawn = draw();
    assert!(matches!(&drawn[..], [Seen::Text(_), Seen::End]), "{drawn:?}");
    assert_eq!(drawn, draw());
}

#[test]
fn an_event_that_is_foreseen_begins_without_asking() {
    let mut hand = Hand::events(SCRIPT);
    hand.rest();
    hand.begin();
    for _ in 0..3 {
        assert_eq!(hand.next(), text("event 0"));
        hand.program.foresee(true);
        hand.done(&Answered::default());
        assert_eq!(hand.next(), Seen::End);
        hand.begin();
    }
    assert_eq!(hand.next(), text("event 0"));
    hand.program.foresee(false);
    hand.done(&Answered::default());
    assert_eq!(hand.next(), Seen::End);
    hand.program.stop();
    assert_eq!(hand.rest(), [text("done"), Seen::Disconnect(0), Seen::End]);
}

#[test]
fn each_event_ends_once_whatever_follows_the_one_that_was_foreseen() {
    let mut hand = Hand::events(
        "function thread_init() con = sysbench.sql.driver():connect() stmt = con:prepare('s') end
         function event()
            n = (n or 0) + 1
            if n == 1 then con:query('one') end
            if n == 3 then stmt:execute() end
            if n == 4 then return true end
         end
         function thread_done() con:query('done after ' .. n) end",
    );
    hand.rest();
    hand.begin();
    let foreseen = |hand: &mut Hand| {
        hand.program.foresee(true);
        hand.done(&Answered::default());
    };
    assert_eq!(hand.next(), text("one"));
    foreseen(&mut hand);
    assert_eq!(hand.next(), Seen::End);
    hand.begin();
    assert_eq!(hand.next(), Seen::End, "the second one asks for nothing");
    hand.begin();
    assert_eq!(hand.next(), Seen::Query("sbstmt0".to_owned(), vec![]));
    foreseen(&mut hand);
    assert_eq!(hand.next(), Seen::End);
    hand.begin();
    assert_eq!(hand.rest(), [Seen::Leave, text("done after 4"), Seen::End]);
}

#[test]
fn an_event_is_not_foreseen_before_the_first_one_has_begun() {
    let mut hand = Hand::events(
        "function event() con:query('event') end
         local run = thread_run
         function thread_run(tid)
            con = sysbench.sql.driver():connect()
            con:query('before')
            run(tid)
         end",
    );
    hand.rest();
    hand.begin();
    assert_eq!(hand.next(), Seen::Connect(0));
    hand.done(&Answered::default());
    assert_eq!(hand.next(), text("before"));
    hand.program.foresee(true);
    hand.done(&Answered::default());
    assert_eq!(hand.rest(), [text("event"), Seen::End]);
}
