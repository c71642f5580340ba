"""The messages of each execution are those of the originals, whose library is libpq."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.engine.recorder import ADDRESS, Recorder
from tests.engine.sysbench.sides import original as original_sysbench
from tests.engine.sysbench.sides import ours as our_sysbench

pytestmark = pytest.mark.server


SCRIPTS = {
    "rows": "SELECT 1;\n",
    "no rows": "SET work_mem = '4MB';\n",
    "values": "\\set a random(1, 9)\nSELECT :a, :a;\nSELECT :a + 1;\n",
    "kept": "SELECT 1 AS b \\gset\nSELECT :b;\n",
    "a pipeline": "\\startpipeline\nSELECT 1;\nSELECT 2;\n\\endpipeline\n",
    "empty": ";\n",
}
CASES = [
    (script, mode)
    for script in SCRIPTS
    for mode in ("simple", "extended", "prepared")
    # there are no pipelines in simple mode
    if (script, mode) != ("a pipeline", "simple")
]
CLEAR = {"PGSSLMODE": "disable"}


def recorded(program, target, *args, number, **more):
    """Returns the types of the messages of a run's connection `number`, from 0."""
    with Recorder(Path(target.host) / f".s.PGSQL.{target.port}") as recorder:
        done = program.run(replace(target, host=ADDRESS, port=recorder.port), *args, **CLEAR, **more)
        assert done.status == 0, done.stderr
        return recorder.messages(number)


@pytest.mark.parametrize(("script", "mode"), CASES)
def test_pgbench_sends_the_messages_of_the_original(peers, loaded, tmp_path, script, mode):
    file = tmp_path / "script.sql"
    file.write_text(SCRIPTS[script])
    line = ("-n", "-f", str(file), "-M", mode, "-t")
    # what the second to the fourth transaction add: in the first ours sends Parse with the execution
    added = []
    for program in peers:
        first, all_four = (recorded(program, loaded(18), *line, count, number=1) for count in ("1", "4"))
        assert first.endswith("X")
        assert all_four.startswith(first[:-1])
        added.append(all_four[len(first) - 1 : -1])
    assert added[1] == added[0] != ""
    if mode != "simple":
        assert "BDE" in added[1]


@pytest.mark.parametrize("mode", ["extended", "prepared"])
def test_describe_can_be_left_out(peers, loaded, mode):
    sent = recorded(peers[1], loaded(18), "-n", "-S", "-M", mode, "-t", "2", "--no-describe", number=1)
    assert sent == {"extended": "PBESPBESX", "prepared": "PBESBESX"}[mode]


@pytest.mark.parametrize("test", ["oltp_point_select", "oltp_read_write"])
def test_sysbench_sends_the_messages_of_the_original(fresh, tmp_path, test):
    target, added = fresh(empty=True), []
    line = [test, "--tables=1", "--table-size=100", "--threads=1", "--time=0"]
    for side in (original_sysbench(), our_sysbench()):
        made = side.run(target, *line, "prepare", directory=tmp_path)
        assert made.status == 0, made.stderr
        runs = [
            recorded(side, target, *line, f"--events={count}", "run", directory=tmp_path, number=0) for count in (1, 3)
        ]
        added.append(executions(runs[1])[len(executions(runs[0])) :])
        assert side.run(target, *line, "cleanup", directory=tmp_path).status == 0
    assert added[1] == added[0] != []


def test_sysbench_leaves_describe_out_if_asked_to(fresh, tmp_path):
    target = fresh(empty=True)
    line = ["oltp_point_select", "--tables=1", "--table-size=100", "--threads=1", "--time=0", "--events=2"]
    assert our_sysbench().run(target, *line, "prepare", directory=tmp_path).status == 0
    sent = recorded(our_sysbench(), target, *line, "--no-describe", "run", directory=tmp_path, number=0)
    assert "BESBES" in sent
    assert "BDES" not in sent


def executions(sent: str) -> list[str]:
    """Returns the types of a connection's messages, split after each Sync; parts without an Execute are left out."""
    return [part for part in sent.rstrip("X").replace("S", "S ").split() if "E" in part]
