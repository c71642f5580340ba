"""Commands on the directory of a study that cannot be written, that another lab runs, or that a newer pgtrial made: one
sentence, the status of an error, and nothing measured is lost.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from contextlib import contextmanager, suppress

import pytest

from pgtrial.cli import main
from pgtrial.model.records.facts import Audit
from pgtrial.store.directory import PLAN, StudyDirectory
from tests.conftest import require, require_engine, require_root
from tests.report.conftest import write_study
from tests.verdict.studies import make_plan, noisy, run

pytestmark = pytest.mark.machine

READS = {
    "verdict": ["verdict", "STUDY"],
    "sql": ["sql", "SELECT count(*) FROM trials", "STUDY"],
    "facts": ["facts", "STUDY"],
    "plan": ["plan", "STUDY"],
}
"""The commands that read a study and write nothing into its directory, by name."""

CHANGES = {
    "run": ["run", "STUDY"],
    "run --more": ["run", "STUDY", "--more", "2"],
    "report": ["report", "STUDY"],
    "publish": ["publish", "STUDY", "-o", "STUDY/page"],
}
"""The commands that write into the directory, by name."""


@pytest.fixture
def place(tmp_path):
    """Yields a small file system of its own, which the test fills or makes read-only."""
    require_root()
    path = tmp_path / "small"
    path.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", path], capture_output=True, check=False)
    require(mounted.returncode == 0, "the right to mount")
    yield path
    # whoever looks at what is mounted keeps it busy for a moment
    subprocess.run(["umount", "--lazy", path], check=True)


@pytest.fixture
def study(place):
    """Returns a study with all its trials, and without a report."""
    require_engine()
    plan = make_plan()
    return write_study(place / "s", plan, run(plan, noisy({"off": 1.4})), Audit(findings=[]), "Is it?")


def filled(place):
    with (place / "rest").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


def read_only(place):
    subprocess.run(["mount", "-o", "remount,ro", place], check=True)


def outcome(capsys, words, study):
    """Returns the status of a command, and the lines that it says."""
    with pytest.raises(SystemExit) as end:
        main([word.replace("STUDY", str(study.path)) for word in words])
    return end.value.code or 0, capsys.readouterr().err.splitlines()


def digests(study):
    """Returns the digest of each file of a study."""
    return {
        str(path.relative_to(study.path)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(study.path.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


@contextmanager
def unchanged(study):
    """Asserts at the end that the study has the files that it had."""
    before = digests(study)
    yield
    assert digests(study) == before


@pytest.mark.parametrize(
    ("trouble", "why"), [(filled, "No space left on device"), (read_only, "Read-only file system")]
)
def test_where_nothing_can_be_written_a_study_is_read_and_every_change_is_refused(place, study, capsys, trouble, why):
    trouble(place)
    with unchanged(study):
        for name, words in READS.items():
            assert outcome(capsys, words, study)[0] == 0, name
        for name, words in CHANGES.items():
            status, said = outcome(capsys, words, study)
            assert (status, len(said)) == (3, 1), (name, said)
            assert said[0].startswith(f"pgtrial: error: cannot write {study.path}"), name
            assert why in said[0], name


def test_a_report_that_cannot_be_written_names_the_cure(place, study, capsys):
    read_only(place)
    _, (said,) = outcome(capsys, CHANGES["report"], study)
    assert said.endswith(f"make {study.path} writable, then `pgtrial report {study.path}` writes the report")


def test_a_study_that_could_not_be_made_leaves_nothing_and_is_made_once_there_is_space(place, study, tmp_path):
    (place / "there").mkdir()
    filled(place)
    for name in ("new", "there"):
        with pytest.raises(Exception, match="No space left on device"):
            StudyDirectory.create(place / name, study.spec, study.plan)
    assert not (place / "new").exists()
    assert list((place / "there").iterdir()) == []
    (place / "rest").unlink()
    for name in ("new", "there"):
        assert StudyDirectory.create(place / name, study.spec, study.plan).plan == study.plan


def test_a_study_that_another_lab_runs_is_read_and_not_run(study, capsys):
    with study.locked(), unchanged(study):
        for name, words in READS.items():
            assert outcome(capsys, words, study)[0] == 0, name
        for name in ("run", "run --more"):
            status, (said,) = outcome(capsys, CHANGES[name], study)
            assert status == 3
            assert f"another pgtrial is running this study in {study.path}; wait until it ends, or stop it" in said, (
                name
            )


def test_a_study_of_a_newer_pgtrial_is_refused_by_every_command(study, capsys):
    plan = study.path / PLAN
    plan.write_text(json.dumps({**json.loads(plan.read_text()), "format": 99}))
    others = {"bundle": ["bundle", "STUDY"], "stop": ["stop", "STUDY"]}
    with unchanged(study):
        # `publish` makes a page of the other studies, and is not among these
        for name, words in {
            **READS,
            **others,
            **{name: CHANGES[name] for name in ("run", "run --more", "report")},
        }.items():
            status, said = outcome(capsys, words, study)
            assert status == 3, name
            # `sql` leaves a study out of many, and says of each why
            errors = [line for line in said if "warning: left out" not in line]
            assert len(errors) == 1, (name, said)
            if name != "stop":
                assert f"{plan} was written by a newer pgtrial (format 99); upgrade" in said[0], name
