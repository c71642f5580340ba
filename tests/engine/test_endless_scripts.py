"""Scripts, loops and set-ups without an end end with the run: by an interrupt, its time or a forced shutdown."""

from __future__ import annotations

import json
import re
import signal

import pytest

from tests.engine.events import of_kind, wait_for
from tests.engine.programs import ended
from tests.engine.sleeping_statements import SLEEPS_OF_LUA, running
from tests.engine.sysbench.sides import ours as sysbench
from tests.processes import until

pytestmark = pytest.mark.server


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "script",
    [
        "\\sleep 0\n",
        "\\set a 1\n",
        "\\set a 1\n\\sleep 0 us\n" * 50,
        "\\if false\nSELECT 1;\n\\endif\n",
        "\\sleep 900 s\n",
    ],
)
def test_an_interrupt_ends_scripts_that_never_ask_the_server(peers, loaded, tmp_path, script, which):
    file, events = tmp_path / "script.sql", tmp_path / "events"
    file.write_text(script)
    args = ["-n", "-f", str(file), "-T", "900", "-c", "2", "--events", str(events)]
    with peers[1].start(loaded(18), args) as process:
        wait_for(events, lambda events: len(of_kind(events, "tick")) >= 1)
        process.send_signal(which)
        assert ended(process).status == 130


@pytest.mark.parametrize(
    "body",
    [
        "while true do end",
        "while true do pcall(function() sysbench.sql.driver():connect() end) end",
        "while true do con = sysbench.sql.driver():connect(); con:disconnect() end",
        "while true do pcall(con.query, con, 'SELECT 1/0') end",
    ],
)
def test_an_interrupt_ends_loops_of_lua(loaded, tmp_path, body):
    target, file, log = loaded(18), tmp_path / "loops.lua", tmp_path / "log"
    file.write_text(
        "function thread_init() con = sysbench.sql.driver():connect() end\n"
        f"function event() io.open('{log}', 'w'):close(); {body} end\n"
    )
    with sysbench().start(target, [str(file), "--time=900", "run"], directory=tmp_path) as process:
        until(log.exists, "the script runs", 60)
        process.send_signal(signal.SIGINT)
        assert ended(process).status == 130


_ALONE = {
    "top level": ("{}\nfunction event() end\n", "--events=1 run"),
    "help": ("function help() {} end\n", "help"),
    "prepare": ("function prepare() {} end\n", "prepare"),
    "cleanup": ("function cleanup() {} end\n", "cleanup"),
    "own": ("sysbench.cmdline.commands = {{own = {{function() {} end}}}}\n", "own"),
    "init": ("function init() {} end function event() end\n", "--events=1 run"),
    "done": ("function done() {} end function event() end\n", "--events=1 run"),
    "hook": (
        "function event() end function sysbench.hooks.report_intermediate() {} end\n",
        "--time=900 --rate=10 --report-interval=1 run",
    ),
}
"""For each part of a script that runs in the main thread: a script with a gap for an endless body, and the command that
runs the part.
"""
_ENDLESS = {
    "computes": "while true do end",
    "queries": "while true do pcall(con.query, con, 'SELECT 1') end",
    "waits": f"while true do pcall(function() {SLEEPS_OF_LUA} end) end",
}


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("body", _ENDLESS)
@pytest.mark.parametrize("place", _ALONE)
def test_an_interrupt_ends_at_once_what_runs_in_the_main_thread(loaded, tmp_path, place, body, which):
    target, file, log = loaded(18), tmp_path / "loops.lua", tmp_path / "log"
    script, command = _ALONE[place]
    connect = "local con = sysbench.sql.driver():connect() con:query('SELECT 1')"
    file.write_text(script.format(f"{connect} io.open('{log}', 'w'):close() {_ENDLESS[body]}"))
    with sysbench().start(target, [str(file), *command.split()], directory=tmp_path) as process:
        until(lambda: log.exists() and (body != "waits" or running(target) > 0), "the script runs", 60)
        process.send_signal(which)
        done = ended(process)
    assert done.status == 130
    assert "did not end" not in done.stdout, "it is not given up after a while"
    assert running(target) == 0


def test_a_shutdown_is_forced_though_all_clients_compute(loaded, tmp_path):
    target, file = loaded(18), tmp_path / "loops.lua"
    file.write_text("function event() while true do end end\n")
    # both have begun when the time is over, also on a busy machine
    line = [str(file), "--time=4", "--threads=2", "--forced-shutdown=1", "--jsonl=events", "run"]
    done = sysbench().run(target, *line, directory=tmp_path)
    assert done.status == 2
    assert "FATAL: The --max-time limit has expired, forcing shutdown...\n" in done.stdout
    assert "\nNumber of unfinished transactions on forced shutdown: 2\n" in done.stdout
    assert "total number of events:              0\n" in done.stdout
    (last,) = of_kind([json.loads(line) for line in (tmp_path / "events").read_text().splitlines()], "done")
    assert (last["status"], last["measure"]["transactions"]) == (2, 0)


def test_a_forced_shutdown_reports_what_other_threads_have_done(loaded, tmp_path):
    target, file = loaded(18), tmp_path / "loops.lua"
    file.write_text("function event() while sysbench.tid == 1 do end end\n")
    line = [str(file), "--time=2", "--threads=2", "--jobs=2", "--rate=100", "--forced-shutdown=1", "run"]
    done = sysbench().run(target, *line, directory=tmp_path)
    assert done.status == 2
    (events,) = re.findall(r"total number of events: +(\d+)\n", done.stdout)
    assert int(events) > 0
