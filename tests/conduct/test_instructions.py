"""The instructions of a transaction are counted on real servers under valgrind: twice the same, whatever else the
machine does, and a function that was made slower is named."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

import pytest

from pgtrial.conduct.run_study import run_study
from pgtrial.loads.command_lines import counted_options, front_end
from pgtrial.loads.command_lines.command_line import Asked
from pgtrial.loads.data.kinds import data_of
from pgtrial.loads.engine import EngineRun, load_command
from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.report.brief import brief
from pgtrial.report.data import read_data
from pgtrial.report.gate.outcome import Outcome
from pgtrial.report.gate.summary import summary
from pgtrial.report.sections import sections
from pgtrial.servers.arms import make_arms
from pgtrial.servers.workspace import Workspace
from pgtrial.store.study_file import build_study
from tests.conduct.small import FAST, small_study
from tests.conftest import require, require_engine, require_server
from tests.repositories import Repository, extension_files

pytestmark = pytest.mark.server

ROUNDS = 1_000


def require_valgrind():
    require_engine()
    require(shutil.which("valgrind"), "valgrind (Debian's package valgrind)")


@contextmanager
def busy_machine(programs=3):
    """Keeps more processors busy than this machine has, within the context."""
    with ExitStack() as stack:
        for _ in range(programs):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(process.kill)
        yield


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Returns a study of two versions of an extension, which ran on a busy machine. A function of the second version
    adds up a thousand numbers."""
    require_valgrind()
    require_server(18)
    home = tmp_path_factory.mktemp("planted")
    repository = Repository(home / "extension")
    for tag, files in [("quick", extension_files()), ("slow", extension_files(ROUNDS))]:
        repository.commit(tag, files)
        repository.git("tag", tag)
    (home / "busy.sql").write_text("SELECT busy(1);\n")
    study = small_study(
        home / "study",
        blocks=1,
        folder=home,
        load={"workload": ["busy.sql"], "clients": 1, "instructions": True},
        arms={tag: {"extensions": f"git:extension@{tag}"} for tag in ("quick", "slow")},
    )
    with busy_machine():
        run_study(study, lambda event: None)
    return study


@pytest.fixture(scope="module")
def compared(planted):
    """Returns the only comparison of the study."""
    [comparison] = read_data(planted).result.instructions
    return comparison


def test_a_function_that_was_made_slower_is_named_with_its_instructions(compared):
    function = compared.functions[0]
    assert (function.name, function.program) == ("busy", "busy.so")
    # each round reads, adds to and writes the sum, and counts and compares the round
    assert 4 * ROUNDS < function.difference < 12 * ROUNDS
    assert abs(compared.instructions - compared.baseline_instructions - function.difference) < 0.1 * function.difference


def test_counts_on_a_busy_machine_repeat(compared):
    assert compared.repeats
    assert compared.spread < 0.001


def test_everything_that_the_study_says_names_the_function(planted):
    data = read_data(planted)
    [executed] = [line for line in brief(data.result, data.plan).headlines[0].lines if line.label == "executed"]
    assert "more); most of it in busy (+" in executed.text
    [section] = [section for section in sections(data) if section.topic.key == "instructions"]
    assert [table.rows[0][:2] for table in section.tables] == [
        ["busy.sql, scale 1", "slow"],
        ["busy", "busy.so"],
    ]
    text = summary(data, Outcome(2, "undecided"), None)
    assert "#### Instructions per transaction" in text
    assert "| busy | busy.so |" in text


def test_a_study_that_continues_keeps_its_counts(planted):
    before = planted.instructions()
    file = planted.path / "instructions.json"
    changed = file.stat().st_mtime_ns
    run_study(planted, lambda event: None)
    assert planted.instructions() == before
    assert file.stat().st_mtime_ns == changed


def test_arms_that_are_sessions_of_one_server_are_counted_each_with_its_settings(tmp_path):
    require_valgrind()
    settings = {"enable_indexscan": "off", "enable_indexonlyscan": "off", "enable_bitmapscan": "off"}
    study = small_study(
        tmp_path / "s",
        blocks=1,
        load={"workload": "select-only", "clients": 1, "instructions": True},
        arms={"base": {}, "other": {"settings": settings}},
    )
    run_study(study, lambda event: None)
    [other] = read_data(study).result.instructions
    assert other.difference > 10, "a sequential scan of 100,000 rows"


@pytest.mark.parametrize("workload", ["tpcb-like", "oltp_point_select", "order-entry", "app-tasks"])
def test_a_counted_run_has_as_many_transactions_as_asked_for(tmp_path, workload):
    require_engine()
    load = {"workload": workload} | ({} if workload in ("oltp_point_select", "app-tasks") else {"scale": 1})
    if workload == "oltp_point_select":
        load["sysbench"] = {"tables": 1, "table_size": 1000}
    design = Design(build_study({"load": load, "arms": {"base": {}, "other": {"settings": FAST}}}, "test"))
    [point] = design.load_points
    data = data_of(design.spec, point)
    options = counted_options(Asked(design.load, point, 5, None), 7)
    with Workspace() as workspace:
        arm = make_arms(design, workspace)["base"]
        with arm.rehearsal(data, tmp_path / "log") as target:
            environment = target.environment()
            with EngineRun(load_command(front_end(point), options, environment), environment) as run:
                [done] = [event for event in run.events(time.monotonic() + 60) if event["event"] == "done"]
    assert done["status"] == 0
    assert done["measure"]["transactions"] == 7


def test_a_load_that_fails_under_valgrind_ends_the_study_in_one_sentence(tmp_path):
    require_valgrind()
    (tmp_path / "tables.sql").write_text("CREATE TABLE once (n integer PRIMARY KEY);\n")
    (tmp_path / "insert.sql").write_text("INSERT INTO once VALUES (1);\n")
    load = {"workload": ["insert.sql"], "data": ["tables.sql"], "instructions": True}
    study = small_study(tmp_path / "s", blocks=1, folder=tmp_path, load=load)
    complaint = r"\[arms.base\] the instructions cannot be counted: 0 of 8 transactions were committed: .*duplicate key"
    with pytest.raises(StudyError, match=complaint):
        run_study(study, lambda event: None)
    assert study.trials() == []
