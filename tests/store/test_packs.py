"""The files of packs are kept with the study: nothing from outside is needed later, and a change is noticed."""

from __future__ import annotations

import shutil

import pytest

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.model.errors import StoreError
from pgtrial.model.study.spec import load_points
from pgtrial.store.bundle import open_study, write_bundle
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import read_study
from pgtrial.store.workloads import digest
from tests.packs import FILES, write_pack

STUDY = """
[load]
workload = ["./own/counters", "pack:kv/C", "select-only"]
[arms.a]
[arms.b]
[verdict]
blocks = 8
"""


@pytest.fixture
def study(tmp_path):
    write_pack(tmp_path / "own" / "counters")
    (tmp_path / "own" / "counters" / "README.md").write_text("about it")
    (tmp_path / "study.toml").write_text(STUDY)
    spec = read_study(tmp_path / "study.toml")
    return StudyDirectory.create(tmp_path / "results", spec, make_plan(spec, 1, "2026-11-20T14:12:00+00:00"))


def test_the_plan_has_the_hash_of_each_file(study):
    assert study.plan.scripts["counters/raise.sql"] == digest(FILES["raise.sql"])
    kept = {name for name in study.plan.scripts if name.startswith("counters/")}
    assert kept == {f"counters/{file}" for file in FILES}
    assert "kv/read.sql" in study.plan.scripts


def test_the_study_directory_needs_nothing_from_outside(study, tmp_path):
    shutil.rmtree(tmp_path / "own")
    again = StudyDirectory.open(study.path)
    assert again.spec == study.spec
    assert load_points(again.spec) == again.plan.load_points
    points = {point.workload: point for point in again.plan.load_points}
    folder = again.script(points["counters"])
    assert folder is not None
    assert (folder / "raise.sql").read_text() == FILES["raise.sql"]
    assert again.script(points["kv/C"]) == study.path / "scripts" / "kv"
    assert again.script(points["kv/C"].model_copy(update={"workload": "select-only", "pack": None})) is None
    assert read_study(study.path / "study.toml") == study.spec
    assert read_study(study.path / "study.toml").scripts == study.spec.scripts


def test_a_file_that_is_not_as_planned_is_noticed(study):
    (study.path / "scripts" / "counters" / "check.sql").write_text("SELECT 1 WHERE false;\n")
    with pytest.raises(StoreError, match=r"counters/check\.sql was changed after the study was planned"):
        StudyDirectory.open(study.path)


def test_a_bundle_has_the_files_of_the_packs(study, tmp_path):
    write_bundle(study, tmp_path / "b.tar.xz", everything=False)
    with open_study(tmp_path / "b.tar.xz") as again:
        assert again.spec == study.spec
        assert again.spec.scripts == study.spec.scripts
