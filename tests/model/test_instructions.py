"""A study whose instructions cannot be counted is refused when it is read, in one sentence that says why."""

from __future__ import annotations

import pytest

from pgtrial.cli.study_options import with_instructions
from pgtrial.conduct.preparation.instructions import check_can_count
from pgtrial.conduct.study_directory import asks_the_same
from pgtrial.machines import machine
from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.store.study_file import build_study

ARMS = {"base": {}, "other": {"settings": {"work_mem": "8MB"}}}


def study(folder=None, arms=ARMS, **load):
    data = {"load": load, "arms": arms}
    return build_study(data, "test") if folder is None else build_study(data, "test", folder)


@pytest.mark.parametrize(
    ("load", "why"),
    [
        ({"workload": "suite:joins"}, "a suite consists of queries"),
        ({"workload": "job:job.sql"}, "a job runs once"),
    ],
)
def test_a_load_without_transactions_is_refused(tmp_path, load, why):
    (tmp_path / "job.sql").write_text("VACUUM;\n")
    with pytest.raises(StudyError, match=rf"\[load\] instructions: {why}.*; remove it"):
        study(tmp_path, **load, instructions=True)


@pytest.mark.parametrize("server", [{"dsn": "host=db1"}, {"ssh": "db1"}])
def test_a_server_that_does_not_start_on_this_machine_is_refused(server):
    arms = {"base": {}, "other": server}
    with pytest.raises(
        StudyError, match=r"\[load\] instructions: pgtrial does not start the server of \[arms.other\] on this machine"
    ):
        study(arms=arms, instructions=True)


def test_the_option_of_a_command_is_refused_for_the_same_reasons():
    with pytest.raises(StudyError, match="a suite consists of queries"):
        with_instructions(study(workload="suite:joins"))
    assert with_instructions(study()).load.instructions


def test_valgrind_is_missed_before_anything_is_made(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(machine, "TOOLS", str(tmp_path))
    check_can_count(Design(study()))
    with pytest.raises(StudyError, match=r"\[load\] instructions: the program valgrind is not installed"):
        check_can_count(Design(study(instructions=True)))


def test_a_study_asks_the_same_question_whether_or_not_it_counts_instructions():
    assert asks_the_same(study(), study(instructions=True))
