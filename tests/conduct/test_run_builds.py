"""Two versions of an extension as arms of a study, which a bisection runs, and one that does not load."""

from __future__ import annotations

import pytest

from pgtrial.cli.bisect import bisect_command
from pgtrial.conduct.run_study import run_study
from pgtrial.model.errors import StudyError
from pgtrial.model.records.bisection import Bisection
from pgtrial.store import repositories
from pgtrial.store.directory import StudyDirectory
from pgtrial.verdict.rules import audit
from tests.conduct.small import small_study, undeclared_differences
from tests.conftest import require_engine, require_server
from tests.repositories import Repository, extension_files

pytestmark = pytest.mark.server

LOAD = {"workload": ["busy.sql"], "clients": 1}
STUDY = """
[load]
workload = "busy.sql"
scale = 1
clients = 1
warmup = "400ms"
duration = "2s"
interleave = "off"
[arms.any]
extensions = ["git:extension@HEAD"]
[verdict]
blocks = 1
"""


def commit(home, tag):
    return repositories.commit_of(home / "extension", tag).id


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Returns a folder with the script of the load, and with a repository of an extension of which two versions load
    and one does not.
    """
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


@pytest.fixture(scope="module")
def bisected(home):
    """Returns the directory of a bisection of two commits. Its only study had one block, too few for a verdict."""
    (home / "s.toml").write_text(STUDY)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        assert bisect_command("quick", "slow", study="s.toml") == 2
    [directory] = (home / "results").glob("bisect-s-*")
    return directory


@pytest.fixture(scope="module")
def study(bisected):
    """Returns the bisection's study, after one block."""
    [directory] = bisected.glob("*-against-*")
    return StudyDirectory.open(directory)


def test_each_arm_runs_from_a_copy_of_its_own(study):
    assert [trial.status for trial in study.trials()] == ["completed", "completed"]
    programs = {facts.facts["server"]["program"] for facts in study.facts().values()}
    assert len(programs) == 2


def test_facts_name_the_commits_and_the_audit_has_nothing_against_them(study, home):
    quick, slow = (study.facts()[arm].facts["server"] for arm in study.plan.arms)
    assert (quick["extension_subjects"], slow["extension_subjects"]) == (["quick"], ["slow"])
    assert slow["extension_sources"] == [f"git:{home}/extension@{commit(home, 'slow')}"]
    assert "busy 1.0" in quick["extensions"]
    assert undeclared_differences(audit(study.plan, study.facts(), study.design).findings) == []
    assert study.plan.declared[study.plan.others[0]] == ["server.extension_sources"]


def test_a_bisection_with_too_short_a_study_has_no_answer(bisected, home):
    known = Bisection.model_validate_json((bisected / "bisection.json").read_text())
    [step] = known.steps
    assert (step.commit, step.against) == (commit(home, "slow"), commit(home, "quick"))
    assert (step.mark, step.verdict, known.studies) == ("skip", "undecided", 1)
    assert (bisected / step.study / "report.html").is_file()


def test_an_extension_that_does_not_load_in_one_arm_ends_the_study_before_its_first_trial(home):
    arms = {name: {"extensions": f"git:extension@{name}"} for name in ("quick", "unloadable")}
    ran = small_study(home / "unloadable", blocks=1, folder=home, load=LOAD, arms=arms)
    with pytest.raises(StudyError, match=r"\[arms.unloadable\] .*CREATE EXTENSION.* failed: not on this server"):
        run_study(ran, lambda event: None)
    assert ran.trials() == []
