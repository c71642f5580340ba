"""Tests of the number of Lua states, and of how often each function of a script runs in which of them."""

from __future__ import annotations

import re

import pytest

pytestmark = [pytest.mark.server, pytest.mark.like_pgbench]

SCRIPT = """
local function say(what)
   io.stderr:write(string.format("%s in state %d of %s\\n", what, sysbench.tid, sysbench.cmdline.command))
end
say("top level")
for _, name in ipairs {"init", "done", "thread_init", "thread_done", "event", "prepare", "cleanup", "help"} do
   _G[name] = function() say(name) end
end
function own() say("own") return true end
sysbench.cmdline.commands = {own = {own}, all = {own, sysbench.cmdline.PARALLEL_COMMAND}}
if HOOKS then
   for _, name in ipairs {"report_intermediate", "report_cumulative"} do
      sysbench.hooks[name] = function() say(name) end
   end
end
"""
QUERIES = """
local con = sysbench.sql.driver():connect()
con:query("CREATE TABLE IF NOT EXISTS made (i int)")
function event() con:query("INSERT INTO made VALUES (1)") end
function sysbench.hooks.report_intermediate()
   print("rows", con:query_row("SELECT sum(i) > 0 FROM made"))
   con:query("INSERT INTO made VALUES (0)")
end
function sysbench.hooks.report_cumulative()
   print("total", con:query_row("SELECT sum(i) FROM made"))
   sysbench.hooks.report_cumulative = nil
end
function prepare() print("made", con:query_row("SELECT count(*) FROM made")) end
"""
RUNS = [
    "--events=1 run",
    "--events=1 --rate=1000 run",
    "--events=1 --report-interval=100 run",
    "--events=1 --report-checkpoints=100 run",
    "--events=1 --report-checkpoints=100 --report-interval=100 --rate=1000 run",
    "prepare",
    "cleanup",
    "help",
    "own",
    "all",
    "--threads=3 prepare",
    "--threads=3 own",
    "--threads=3 all",
]


@pytest.mark.parametrize("line", RUNS)
@pytest.mark.parametrize("hooks", ["true", "false"])
def test_states_and_what_runs_in_them(both, databases, tmp_path, line, hooks):
    def act(side, target):
        directory = tmp_path / side.name
        directory.mkdir()
        (directory / "states.lua").write_text(f"HOOKS = {hooks}\n{SCRIPT}")
        done = side.run(target, "states.lua", *line.split(), directory=directory)
        return done.status, sorted(done.stderr.splitlines())

    theirs, mine = both(act, databases, SCRIPT)
    assert mine == theirs
    assert mine[0] == 0


@pytest.mark.parametrize(
    "line",
    [
        "--time=2 --rate=20 --report-interval=1 run",
        "--events=3 run",
        "--time=2 --rate=20 --report-checkpoints=1 run",
        "prepare",
    ],
)
def test_every_state_may_query(both, databases, tmp_path, line):
    def act(side, target):
        directory = tmp_path / side.name
        directory.mkdir()
        (directory / "queries.lua").write_text(QUERIES)
        done = side.run(target, "queries.lua", *line.split(), directory=directory)
        # two threads may print at the same time, and their words stand in one line
        lines = [said for said in done.stdout.splitlines() if "\t" in said]
        words = {word for said in lines for word in re.findall("rows|total|made", said)}
        return done.status, sorted(words), "FATAL" in done.stdout

    theirs, mine = both(act, databases, QUERIES)
    assert mine == theirs
    assert mine[0] == 0
    assert mine[1]
