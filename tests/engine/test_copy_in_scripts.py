"""COPY in a script ends the run, and the session in the protocol's order: the server's log is free of errors."""

from __future__ import annotations

import pytest

from tests.engine.programs import settled
from tests.engine.sysbench.sides import ours as sysbench

pytestmark = pytest.mark.server

SCRIPTS = {
    "from the client": "COPY pgbench_tellers FROM STDIN;\n",
    "to the client": "COPY pgbench_accounts TO STDOUT;\n",
    "in a transaction": "BEGIN;\nSELECT 1;\nCOPY pgbench_tellers FROM STDIN;\nEND;\n",
    "its result stored": "COPY pgbench_tellers FROM STDIN \\gset\n",
    "in a pipeline": "\\startpipeline\nSELECT 1;\nCOPY pgbench_tellers FROM STDIN;\n\\endpipeline\n",
}


@pytest.mark.parametrize(
    ("case", "mode"),
    [
        (case, mode)
        for case in SCRIPTS
        for mode in ("simple", "extended", "prepared")
        if (case, mode) != ("in a pipeline", "simple")
    ],
)
def test_copy_ends_the_session_in_order(peers, logged, tmp_path, case, mode):
    file = tmp_path / "script.sql"
    file.write_text(SCRIPTS[case])
    results = []
    for program in peers:
        done, trouble = logged(
            lambda target, program=program: settled(program.run(target, "-n", "-t1", "-f", str(file), "-M", mode))
        )
        results.append((done, trouble))
    assert results[1] == results[0]
    done, trouble = results[1]
    assert done.status == 2
    assert "COPY is not supported in pgbench, aborting" in done.stderr
    assert trouble == []


def test_two_copies_in_one_text_end_in_order(peers, logged, tmp_path):
    """The original never ends here."""
    file = tmp_path / "script.sql"
    file.write_text("COPY pgbench_tellers TO STDOUT \\; COPY pgbench_tellers FROM STDIN \\; SELECT 2;\n")
    done, trouble = logged(lambda target: peers[1].run(target, "-n", "-t1", "-f", str(file)))
    assert (done.status, trouble) == (2, [])


def test_copy_in_a_lua_script_ends_in_order(logged, tmp_path):
    """The original leaves an error in the server's log here."""
    file = tmp_path / "copy.lua"
    file.write_text(
        "function thread_init() con = sysbench.sql.driver():connect() end\n"
        'function event() con:query("COPY pgbench_tellers FROM STDIN") end\n'
    )
    done, trouble = logged(lambda target: sysbench().run(target, str(file), "--events=1", "run"))
    assert done.status == 1
    assert trouble == []
