"""Scripts of the study's own are read once, kept with the study, and noticed when they change."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.conduct.study_directory import find_or_create
from pgtrial.model.errors import StoreError, StudyError
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study, read_study
from pgtrial.store.workloads import digest

NOW = "2026-11-20T14:12:00+00:00"
TEXT = "\\set aid random(1, 100000 * :scale)\r\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n-- é\n"
STUDY = """
[load]
workload = ["select-only", "own/orders.sql"]
[arms.a]
[arms.b]
[verdict]
blocks = 8
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "orders.sql").write_bytes(TEXT.encode())
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path / "study.toml"


def _create(file: Path, path: Path) -> StudyDirectory:
    spec = read_study(file)
    return StudyDirectory.create(path, spec, make_plan(spec, 1, NOW))


def test_a_script_is_a_load_point_under_its_file_name_and_the_plan_has_its_hash(file):
    spec = read_study(file)
    plan = make_plan(spec, 1, NOW)
    assert [point.label for point in plan.load_points] == [
        "select-only, scale 10, 8 clients",
        "orders.sql, scale 10, 8 clients",
    ]
    assert spec.scripts == {"orders.sql": TEXT}
    assert plan.scripts == {"orders.sql": digest(TEXT)}


def test_the_study_directory_needs_nothing_from_outside(file, tmp_path):
    created = _create(file, tmp_path / "results")
    shutil.rmtree(file.parent / "own")
    opened = StudyDirectory.open(tmp_path / "results")
    assert opened.spec == created.spec == read_study(tmp_path / "results" / "study.toml")
    built_in, own = opened.plan.load_points
    script = opened.script(own)
    assert script is not None
    assert script.read_bytes() == TEXT.encode()
    assert opened.script(built_in) is None


def test_a_script_that_is_not_as_planned_is_noticed(file, tmp_path):
    study = _create(file, tmp_path / "results")
    script = study.script(study.plan.load_points[-1])
    assert script is not None
    script.write_text("SELECT 1;\n")
    with pytest.raises(StoreError, match=r"scripts/orders\.sql was changed after the study was planned"):
        StudyDirectory.open(study.path)
    script.unlink()
    with pytest.raises(StoreError, match=r"scripts/orders\.sql is damaged or missing"):
        StudyDirectory.open(study.path)


def test_the_same_study_with_another_text_is_another_study(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, _ = find_or_create(read_study(file), None, anew=False)
    again, there = find_or_create(read_study(file), None, anew=False)
    assert (again.path, there) == (first.path, True)
    (file.parent / "own" / "orders.sql").write_text("SELECT 1;\n")
    other, there = find_or_create(read_study(file), None, anew=False)
    assert not there
    assert other.path != first.path
    with pytest.raises(StoreError, match="has another study than the one to run"):
        find_or_create(read_study(file), first.path, anew=False)


def test_a_script_of_the_command_line_is_relative_to_the_current_directory(file, monkeypatch):
    monkeypatch.chdir(file.parent / "own")
    spec = build_study({"load": {"workload": "orders.sql"}, "arms": {"a": {}, "b": {}}}, "the command line")
    assert spec.scripts == {"orders.sql": TEXT}


WRONG = {
    "absent": ("none.sql", "cannot read the script .*none.sql: No such file"),
    "directory": ("own/", r"own is a folder without a pack\.toml"),
    "two of one name": (["own/orders.sql", "./own/../own/orders.sql"], "two scripts are called orders.sql"),
    "no text": ("latin1.sql", "latin1.sql is not a text file in UTF-8"),
    "name of a built-in": ("./select-only", "has the same name as a built-in workload"),
}


@pytest.mark.parametrize(("workload", "expected"), WRONG.values(), ids=WRONG.keys())
def test_a_script_that_cannot_be_used_is_refused_at_planning(file, workload, expected):
    (file.parent / "latin1.sql").write_bytes("-- é".encode("latin-1"))
    data = {"load": {"workload": workload}, "arms": {"a": {}, "b": {}}}
    with pytest.raises(StudyError, match=expected) as refused:
        build_study(data, "test", file.parent)
    assert refused.value.keys[0] == "load.workload"
