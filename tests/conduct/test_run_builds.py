"""A study whose arms are two versions of an extension, and one whose extension does not load in one arm."""

from __future__ import annotations

import pytest

from pgtrial.conduct.run_study import run_study
from pgtrial.model.errors import StudyError
from pgtrial.verdict.rules import audit
from tests.conduct.small import small_study
from tests.conftest import require_engine, require_server
from tests.repositories import Repository, extension_files

pytestmark = pytest.mark.server

LOAD = {"workload": ["busy.sql"], "clients": 1}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A repository with two versions that load and one that does not, and the script of the load."""
    require_engine()
    require_server(18)
    path = tmp_path_factory.mktemp("versions")
    (path / "busy.sql").write_text("SELECT busy(1);\n")
    repository = Repository(path / "extension")
    for tag, files in [
        ("quick", extension_files()),
        ("slow", extension_files(1_000)),
        ("unloadable", extension_files(broken='void _PG_init(void) { elog(ERROR, "not on this server"); }')),
    ]:
        repository.commit(tag, files)
        repository.git("tag", tag)
    return path


def arms(other):
    return {
        "quick": {"extensions": "git:extension@quick"},
        other: {"extensions": f"git:extension@{other}"},
    }


@pytest.fixture(scope="module")
def study(home):
    """After its one block."""
    ran = small_study(home / "study", blocks=1, folder=home, load=LOAD, arms=arms("slow"))
    run_study(ran, lambda event: None)
    return ran


def test_each_arm_runs_from_a_copy_of_its_own(study):
    assert {trial.arm: trial.status for trial in study.trials()} == {"quick": "completed", "slow": "completed"}
    programs = {facts.facts["server"]["program"] for facts in study.facts().values()}
    assert len(programs) == 2


def test_facts_name_the_commits_and_the_audit_has_nothing_against_them(study, home):
    facts = {arm: facts.facts["server"] for arm, facts in study.facts().items()}
    assert [server["extension_subjects"] for server in facts.values()] == [["quick"], ["slow"]]
    assert facts["slow"]["extension_sources"][0].startswith(f"git:{home}/extension@")
    assert "busy 1.0" in facts["quick"]["extensions"]
    findings = audit(study.plan, study.facts(), study.spec).findings
    assert {finding.rule for finding in findings}.isdisjoint({"undeclared_difference"})
    assert study.plan.declared["slow"] == ["server.extension_sources"]


def test_an_extension_that_does_not_load_in_one_arm_ends_the_study_before_its_first_trial(home):
    ran = small_study(home / "unloadable", blocks=1, folder=home, load=LOAD, arms=arms("unloadable"))
    with pytest.raises(StudyError, match=r"\[arms.unloadable\] .*CREATE EXTENSION.* failed: not on this server"):
        run_study(ran, lambda event: None)
    assert ran.trials() == []
