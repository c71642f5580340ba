"""Statements that cannot be prepared: pgbench says so, and executes them all the same."""

from __future__ import annotations

import pytest

from pgtrial.loads.target import Target
from tests.engine.fake_server import USUAL, FakeServer, message
from tests.engine.guarded import ADDRESS
from tests.engine.programs import settled

SCRIPTS = {
    "a mistake": "SELECT nosuch;\nSELECT 1;\n",
    "a mistake with rows": "SELECT nosuch AS a \\gset\nSELECT 1;\n",
    "a mistake with values": "\\set x 7\nSELECT :x, nosuch;\n",
    "in a transaction": "BEGIN;\nSELECT nosuch;\nEND;\n",
    "after another error": "BEGIN;\nSELECT 1 / 0;\nEND;\n",
    "several statements in one": "SELECT 1 \\; SELECT 2;\n",
    "a name that is taken": 'PREPARE "P_1" AS SELECT 7 AS v;\nSELECT 1 AS v \\gset\n\\set d debug(:v)\n',
    "a name that another statement has": 'PREPARE "P_1" AS SELECT 1 / 0;\nSELECT 1;\n',
    "in a pipeline": "\\startpipeline\nSELECT 1;\nSELECT nosuch;\nSELECT 2;\n\\endpipeline\n",
    "at the end of a pipeline": "\\startpipeline\nSELECT 1;\nSELECT nosuch;\n\\endpipeline\n",
    "twice in a pipeline": "\\startpipeline\nSELECT nosuch;\n\\syncpipeline\nSELECT none;\n\\endpipeline\n",
    "taken names in a pipeline": 'PREPARE "P_1" AS SELECT 7;\n\\startpipeline\nSELECT 1;\nSELECT 2;\n\\endpipeline\n',
}


@pytest.mark.server
@pytest.mark.parametrize("case", SCRIPTS)
def test_what_cannot_be_prepared_is_executed_all_the_same(peers, logged, tmp_path, case):
    """The server is asked for the same, too: its log has the same errors."""
    file = tmp_path / "script.sql"
    file.write_text(SCRIPTS[case])
    line = ["-n", "-t1", "-f", str(file), "-M", "prepared", "--max-tries=2"]
    results = []
    for program in peers:
        done, trouble = logged(lambda target, program=program: settled(program.run(target, *line)))
        # where the session ends with replies unread, the server may say so
        results.append((done, [each.partition("ERROR:")[2] for each in trouble if "ERROR:" in each]))
    assert results[1] == results[0]
    done, trouble = results[1]
    assert (done.status == 0) == ("taken" in case)
    assert trouble


@pytest.mark.server
def test_events_have_the_error_that_kept_the_statement_from_being_prepared(peers, fresh, tmp_path):
    file, events = tmp_path / "script.sql", tmp_path / "events.jsonl"
    file.write_text(SCRIPTS["a mistake"])
    done = peers[1].run(fresh(), "-n", "-t1", "-f", str(file), "-M", "prepared", f"--events={events}")
    assert done.status == 2
    (error,) = [line for line in events.read_text().splitlines() if '"error"' in line and "sqlstate" in line]
    assert '"42703"' in error


@pytest.mark.parametrize("sqlstate", ["40001", "40P01", "55P03"])
def test_a_statement_that_loses_a_conflict_while_it_is_prepared_is_not_tried_again(peers, tmp_path, sqlstate):
    """The error on which the client stops is that of the execution: the prepared statement does not exist."""
    file = tmp_path / "script.sql"
    file.write_text("SELECT 1;\n")

    def refused(sqlstate: str, text: str) -> bytes:
        return message(b"E", f"SERROR\0C{sqlstate}\0M{text}\0\0".encode())

    results = []
    for program in peers:
        replies = (lambda: refused("26000", "no such statement")), (lambda: refused(sqlstate, "a conflict"))
        with FakeServer(*replies) as server:
            target = Target(host=ADDRESS, port=server.port, user="u", dbname="d")
            line = ["-n", "-t1", "-f", str(file), "-M", "prepared", "--max-tries=3"]
            results.append(settled(program.run(target, *line, PGSSLMODE="disable")))
    assert results[1] == results[0]
    assert results[1].status == 2
    assert "a conflict" in results[1].stderr
    assert "query 0: ERROR:  no such statement" in results[1].stderr


def test_a_statement_that_a_pooler_has_prepared_is_executed(peers, tmp_path):
    file = tmp_path / "script.sql"
    file.write_text("SELECT 1;\n")
    exists = message(b"E", b'SERROR\0C42P05\0Mprepared statement "P_0" already exists\0\0')
    results = []
    for program in peers:
        with FakeServer(lambda: USUAL, lambda: exists) as server:
            target = Target(host=ADDRESS, port=server.port, user="u", dbname="d")
            line = ["-n", "-t3", "-f", str(file), "-M", "prepared"]
            results.append(settled(program.run(target, *line, PGSSLMODE="disable")))
    assert results[1] == results[0]
    assert results[1].status == 0
    assert results[1].stderr.count("already exists") == 1
