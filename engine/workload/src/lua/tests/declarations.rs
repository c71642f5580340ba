//! Checks the options that scripts declare, and the values that scripts get for them.

use std::sync::Mutex;

use super::*;
use crate::settings::OptionSpec;
use crate::statistics::{Hooks, Statistics};

fn loaded(source: &str) -> LuaScript {
    let (script, _directory) = load(source, "run");
    script.unwrap()
}

#[test]
fn options_have_the_kind_of_their_default_or_their_own() {
    let script = loaded(
        "local c = sysbench.cmdline
         c.options = {e = {'none'}, d = {'a list', {'x', 'y'}}, c = {'switch', true}, b = {'text', 'x'}, a = {'number', 3},
                      f = {'whole', 4, c.ARG_INT}}",
    );
    let option = |name: &str, description: &str, default| OptionSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        default,
    };
    let expected = vec![
        option("a", "number", OptionValue::Double(3.0)),
        option("b", "text", OptionValue::Text(Some("x".to_owned()))),
        option("c", "switch", OptionValue::Bool(true)),
        option("d", "a list", OptionValue::List(vec!["x".to_owned(), "y".to_owned()])),
        option("e", "none", OptionValue::Text(None)),
        option("f", "whole", OptionValue::Int(4)),
    ];
    assert_eq!(script.options(), Some(expected));
    assert_eq!(loaded("").options(), None);
}

#[test]
fn commands_and_functions_are_found() {
    let script = loaded(
        "sysbench.cmdline.commands = {a = {function() end}, b = {function() end, sysbench.cmdline.PARALLEL_COMMAND}}
         function prepare() end
         cleanup = 5",
    );
    assert_eq!(script.is_parallel("a"), Some(false));
    assert_eq!(script.is_parallel("b"), Some(true));
    assert_eq!(script.is_parallel("c"), None);
    assert!(script.has("prepare") && !script.has("cleanup") && !script.has("event"));
    assert_eq!(script.name(), "t.lua");
}

#[test]
fn settings_are_options_and_for_scripts_that_declare_none_global_too() {
    let told = "assert(sysbench.opt.table_size == 100 and sysbench.opt.db_ps_mode == 'auto')
                assert(type(sysbench.opt.tables) == 'number')";
    let legacy = format!(
        "function threads() end function prepare() {told} assert(table_size == 100)
                          assert(type(threads) == 'function') end"
    );
    assert_eq!(Hand::of_role(&legacy, Role::Command("prepare".to_owned())).rest(), [Seen::End]);
    let declares = format!("sysbench.cmdline.options = {{}} function prepare() {told} assert(table_size == nil) end");
    assert_eq!(Hand::of_role(&declares, Role::Command("prepare".to_owned())).rest(), [Seen::End]);
}

#[test]
fn a_script_knows_how_it_was_called() {
    let source = "
        assert(sysbench.opt == nil, 'no options at the top level')
        local c = sysbench.cmdline
        assert(c.argv[0] == 'sysbench' and c.argv[1] == 't.lua' and c.command == 'run')
        assert(c.script_path:match('t.lua$') and test == c.script_path)
        assert(sysbench.tid == 0 and sysbench.version == '1.0.20' and sysbench.version_string == 'sysbench 1.0.20')
        assert(package.path:find('./?.lua', 1, true) == 1)
        assert(... == nil)";
    assert!(loaded(source).options().is_none());
}

#[test]
fn own_functions_of_oltp_common_are_there_without_sysbench() {
    let mut hand = Hand::events(
        "package.path = ''
         require('oltp_common')
         function prepare_statements() prepare_begin() prepare_commit() prepare_point_selects() prepare_delete_inserts() end
         function event()
            sysbench.opt.point_selects, sysbench.opt.delete_inserts = 2, 1
            begin() execute_point_selects() execute_delete_inserts() commit()
         end",
    );
    let prepared = (0..5).map(|number| Seen::Prepare(format!("sbstmt{number}")));
    let expected: Vec<_> = [Seen::Connect(0)].into_iter().chain(prepared).chain([Seen::End]).collect();
    assert_eq!(hand.rest(), expected);
    hand.begin();
    let names: Vec<_> = hand
        .rest()
        .into_iter()
        .map(|seen| match seen {
            Seen::Query(name, values) => format!("{name}:{}", values.len()),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["sbstmt0:0", "sbstmt2:1", "sbstmt2:1", "sbstmt3:1", "sbstmt4:4", "sbstmt1:0", "End"]);
}

#[test]
fn hooks_are_told_the_statistics() {
    let script = loaded(
        "function sysbench.hooks.report_intermediate(stat)
            assert(stat.events == 5 and stat.reads == 0 and stat.queue_length == 2 and stat.latency_max == nil)
            reported = true
         end
         function sysbench.hooks.report_cumulative(stat)
            assert(stat.latency_max == 0.5 and stat.queue_length == nil and not reported)
         end",
    );
    script.configure(settings(), Shard::WHOLE).unwrap();
    let statistics = Statistics { events: 5, queue_length: 2, latency_max: 0.5, ..Statistics::default() };
    assert_eq!(script.intermediate(&statistics), Ok(false), "nobody reports");
    script.begin_reports(1, true, true).unwrap();
    assert_eq!(script.intermediate(&statistics), Ok(true));
    assert_eq!(script.checkpoint(&statistics), Ok(true));
    assert_eq!(script.cumulative(&statistics), Ok(true));
    script.end_reports();
    assert_eq!(script.intermediate(&statistics), Ok(false));
    let script = loaded("");
    assert_eq!(script.intermediate(&statistics), Ok(false));
}

#[test]
fn a_script_that_asks_for_a_driver_uses_sql() {
    let script = loaded("");
    assert!(!script.uses_sql());
    let script =
        loaded("drv = sysbench.sql.driver() assert(drv:name() == 'pgsql' and tostring(drv) == '<sql_driver>')");
    assert!(script.uses_sql());
}

/// A destination of output that remembers what was printed.
#[derive(Default)]
struct Memory(Mutex<String>);

impl Voice for Memory {
    fn say(&self, is_fatal: bool, text: &str) {
        self.0.lock().unwrap().push_str(&format!("{is_fatal}: {text}"));
    }
    fn print(&self, text: &[u8]) {
        self.0.lock().unwrap().push_str(std::str::from_utf8(text).unwrap());
    }
}

#[test]
fn what_scripts_print_and_what_is_said_of_them_has_one_voice() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.lua");
    let source = "print('a', nil, 1) io.write('b', 2, '\\n') pcall(sysbench.sql.driver, 'nope') print('c')
                  proxy = newproxy(true) getmetatable(proxy).__gc = function() print('') sysbench.rand.string('#') end";
    std::fs::write(&path, source).unwrap();
    let memory = Arc::new(Memory::default());
    drop(LuaScript::load(ScriptOrigin::Path(path), &Invocation::default(), memory.clone(), nobody()).unwrap());
    let heard = memory.0.lock().unwrap().clone();
    assert_eq!(heard, "a\tnil\t1\nb2\ntrue: invalid database driver name: 'nope'c\n");
}
