"""Client programs as arms on a real server: psycopg against itself, programs that fail, and files that change."""

from __future__ import annotations

import itertools
import re
import shlex
import sys
from pathlib import Path

import pytest

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.conduct.progress import Preparing, TrialEnds
from pgtrial.conduct.run_study import run_study
from pgtrial.loads.data.kinds import NO_TABLES, data_of
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.model.errors import StudyError
from pgtrial.model.study.spec import load_points
from pgtrial.report.build import build_report, differences
from pgtrial.report.data import read_measured
from pgtrial.store.bundle import open_study, write_bundle
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from tests.conduct.small import FAST, once, undeclared_differences, windows
from tests.conftest import require_engine

BENCH = Path(__file__).parents[2] / "docs" / "clients" / "bench.py"
PYTHON = shlex.quote(sys.executable)
SHORT = {"scale": 1, "warmup": "500ms", "duration": "1s"}

SPIN = """
import json, os, sys, time
if not os.environ["PGHOST"] or "--absent" in sys.argv: sys.exit("error: no server")
for token in sys.stdin:
    number, begin = int(token.split()[1]), time.perf_counter()
    if number == 4 and "--breaks" in sys.argv: sys.exit("error: out of rows")
    while time.perf_counter() < begin + 0.02: pass
    print(json.dumps({"batch": number, "ms": 1000 * (time.perf_counter() - begin), "operations": 10}), flush=True)
"""

HIDING_PROGRAM = """
import json, sys, time, psycopg
session = psycopg.connect(autocommit=True)
for number, line in enumerate(sys.stdin, 1):
    began = time.perf_counter()
    for _ in range(60):
        try: session.execute(f"SELECT sum({sys.argv[1]}) FROM pgbench_accounts WHERE aid < 1000")
        except psycopg.Error: pass
    ms = 1000 * (time.perf_counter() - began)
    print(json.dumps({"batch": number, "ms": ms, "operations": 60}), flush=True)
"""


def study_of(path: Path, commands: dict[str, str], blocks: int = 1, **load: object) -> StudyDirectory:
    (path / "spin.py").write_text(SPIN)
    arms = {arm: {"command": command} for arm, command in commands.items()}
    data = {"load": {**SHORT, **load}, "server": {"settings": FAST}, "arms": arms}
    spec = build_study({**data, "verdict": {"blocks": blocks}}, "test", path)
    return StudyDirectory.create(path / "s", spec, make_plan(spec, 7, "2026-11-20T14:12:00+00:00"))


@pytest.mark.server
def test_two_programs_take_turns_on_one_server(tmp_path):
    require_engine()
    commands = {"prepared": f"{PYTHON} {BENCH}", "unprepared": f"{PYTHON} {BENCH} --unprepared"}
    study = study_of(tmp_path, commands)
    run_study(study, lambda event: None)
    trials = study.trials()
    assert [(trial.status, trial.reason) for trial in trials] == [("completed", None)] * 2
    assert all(trial.program is not None and trial.program.startswith("psycopg 3.") for trial in trials)
    assert all(trial.measured.transactions % 500 == 0 < trial.measured.transactions for trial in trials)
    assert all(trial.measured.latency_us is None for trial in trials)
    found = windows(study)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(found))
    assert {arm for *_, arm in found} == set(commands)
    rows = sum(table["live_tuples"] for name, table in trials[0].relations.items() if "accounts" in name)
    assert rows == 100_000, "pgbench's tables are there"
    client = study.facts()["unprepared"].facts["client"]
    assert client["command"] == commands["unprepared"]
    assert client["directory"] == str(tmp_path)
    assert set(client["files"]) == {sys.executable, str(BENCH)}
    assert client["program"] == trials[0].program
    assert study.plan.declared["unprepared"] == ["client.command"]
    assert undeclared_differences(study.audit().findings) == []
    build_report(study)
    text = (study.path / "report.md").read_text()
    assert "operations of the client programs per second, client-programs, scale 1" in text
    assert "## Latency" not in text
    bundle = tmp_path / "s.pgtrial"
    write_bundle(study, bundle, everything=False)
    with open_study(bundle) as opened:
        assert opened.trials() == trials
        assert differences(opened) == []


@pytest.mark.server
@pytest.mark.parametrize("shares", [True, False])
def test_a_program_that_catches_its_errors_is_not_faster(tmp_path, shares):
    require_engine()
    (tmp_path / "hiding.py").write_text(HIDING_PROGRAM)
    commands = {arm: f"{PYTHON} hiding.py {column}" for arm, column in (("base", "abalance"), ("head", "missing"))}
    study = study_of(tmp_path, commands, blocks=3, share_server=shares)
    told = []
    run_study(study, lambda event: told.append(event.text) if isinstance(event, Preparing) and event.stays else None)
    [rehearsed] = [text for text in told if "in its rehearsal were rolled back" in text]
    # The transactions beyond the program's 60 are those of the server itself and of the lab, which asks fifty times a
    # second whether the program has left.
    assert (told_of := re.match(r"the client program of head: 60 of (\d+) transactions", rehearsed))
    assert 60 < int(told_of[1]) < 1600
    [found] = [one for one in read_measured(study).result.findings if one.rule == "hidden_failures"]
    assert found.severity == "withhold"
    assert ("nobody knows whose" if shares else "In head") in found.message


@pytest.mark.server
def test_programs_one_after_the_other_and_one_that_ends_early(tmp_path):
    require_engine()
    commands = {"whole": f"{PYTHON} -S spin.py", "breaks": f"{PYTHON} -S spin.py --breaks"}
    study = study_of(tmp_path, commands, blocks=2, interleave="off")

    def change_file() -> None:
        (tmp_path / "spin.py").write_text(SPIN + "# changed\n")

    of_last = [trial for trial in study.plan.trials if trial.block == 0][-1]
    change = once(lambda event: isinstance(event, TrialEnds) and event.trial.index == of_last.index, change_file)
    with pytest.raises(StudyError, match=r"arms\.\w+: spin\.py of the command '.*' has changed since the study was"):
        run_study(study, change)
    by_arm = {trial.arm: trial for trial in study.trials()}
    assert len(by_arm) == len(study.trials()) == 2
    assert (by_arm["whole"].status, by_arm["whole"].program) == ("completed", None)
    measured = by_arm["whole"].measured
    # The ten operations take at least 20 ms, and longer on a busy machine.
    assert measured.tps == pytest.approx(measured.transactions / measured.duration_s)
    assert 0 < measured.tps <= 500
    assert by_arm["breaks"].status == "failed"
    assert by_arm["breaks"].reason == (
        f"the client program '{commands['breaks']}': it ended with status 1 before it answered `go 4`; its last "
        "message: error: out of rows"
    )


@pytest.mark.server
def test_a_program_that_cannot_run_is_found_by_the_rehearsal(tmp_path):
    require_engine()
    study = study_of(tmp_path, {"whole": f"{PYTHON} -S spin.py", "absent": f"{PYTHON} -S spin.py --absent"})
    with pytest.raises(StudyError, match=r"^arms\.absent: the client program .* its last message: error: no server$"):
        run_study(study, lambda event: None)
    assert study.trials() == []


def test_programs_on_a_given_server_share_it(tmp_path):
    (tmp_path / "spin.py").write_text(SPIN)
    arms = {arm: {"command": f"{PYTHON} spin.py"} for arm in "ab"}
    spec = build_study({"server": {"dsn": "host=db1"}, "arms": arms}, "test", tmp_path)
    (point,) = load_points(spec)
    assert data_of(spec, point) == NO_TABLES
    with_scale = build_study({"server": {"dsn": "host=db1"}, "load": {"scale": 3}, "arms": arms}, "test", tmp_path)
    assert data_of(with_scale, load_points(with_scale)[0]) == PgbenchTables(3)
    plan = make_plan(spec, 1, "2026-11-20T14:12:00+00:00")
    assert plan.shares_server, "both programs are clients of one given server"
