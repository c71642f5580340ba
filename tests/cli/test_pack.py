"""`pgtrial pack`: a pack is checked on its files and on a server; what does not work is one sentence."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from pgtrial.store.workloads import bundled_packs
from tests.conftest import require_engine, require_server
from tests.packs import QUALITY, write_pack

pytestmark = pytest.mark.server


PAGE = Path(__file__).parents[2] / "docs" / "packs.md"
_FILE = re.compile(r"^`([\w.]+)`:\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def pgtrial(commands):
    environment = {**os.environ, "COLUMNS": "200"}
    return lambda *arguments, cwd: commands.run(["pack", *arguments], Path(cwd), environment)


def refused(done) -> str:
    """Returns the one line that a command printed when it refused a workload folder."""
    assert done.returncode == 3, done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    return line


def test_the_list_has_each_bundled_pack(pgtrial, tmp_path):
    done = pgtrial("list", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in bundled_packs():
        assert f"pack:{name}" in done.stdout
    assert "A, B, C, D, E, F" in done.stdout


@pytest.mark.parametrize("name", bundled_packs())
def test_a_bundled_pack_passes_its_check(pgtrial, tmp_path, name):
    require_engine()
    require_server(18)
    done = pgtrial("check", name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{name}: ")
    assert "40 transactions" in done.stdout
    assert done.stdout.endswith("the pack can be used\n")


def test_the_pack_of_the_documentation_passes_its_check(pgtrial, tmp_path):
    require_engine()
    require_server(18)
    files = dict(_FILE.findall(PAGE.read_text()))
    assert {"pack.toml", "schema.sql", "data.sql", "raise.sql", "read.sql", "check.sql"} == files.keys()
    (tmp_path / "counters").mkdir()
    for name, text in files.items():
        (tmp_path / "counters" / name).write_text(text)
    done = pgtrial("check", "./counters", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "counters: read.sql: 40 transactions" in done.stdout


def test_a_check_says_what_the_pack_measures(pgtrial, tmp_path):
    require_engine()
    require_server(18)
    write_pack(tmp_path / "counters", pack_toml=QUALITY, measure_sql="SELECT count(*) FROM counters;\n")
    done = pgtrial("check", "counters", "--scale", "2", cwd=tmp_path)
    assert "freshness 20" in done.stdout
    assert done.returncode == 0, done.stderr


FAILING = {
    "script": (
        {"raise_sql": "UPDATE counter SET value = 1;\n"},
        r'raise\.sql of the pack counters failed: .*ERROR: relation "counter" does not',
    ),
    "variable": (
        {"raise_sql": "UPDATE counters SET value = value + 1 WHERE id = :unset;\n"},
        r'raise\.sql of the pack counters failed: .*the variable "unset" has no value',
    ),
    "meta-command": ({"raise_sql": "\\sett id 1\n"}, r"raise\.sql of the pack counters failed: raise\.sql:1: .*sett"),
    "data": ({"data_sql": "INSERT INTO counters;\n"}, r"the pack counters: data\.sql, line 1 .*syntax error"),
    "check after": (
        {"check_sql": "SELECT 'it was raised' FROM counters WHERE value > 0 LIMIT 1;\n"},
        r"check\.sql of the pack counters failed after the load: it was raised",
    ),
}


@pytest.mark.parametrize(("changed", "expected"), FAILING.values(), ids=FAILING.keys())
def test_what_does_not_work_on_the_server_is_one_sentence(pgtrial, tmp_path, changed, expected):
    require_engine()
    require_server(18)
    write_pack(tmp_path / "counters", **changed)
    assert re.search(expected, refused(pgtrial("check", "counters", cwd=tmp_path)))


def test_a_check_has_the_scale_of_a_study(pgtrial, tmp_path):
    require_engine()
    require_server(18)
    write_pack(tmp_path / "counters", pack_toml=QUALITY, measure_sql="SELECT :scale;\n")
    assert "freshness 10\n" in pgtrial("check", "counters", cwd=tmp_path).stdout


def test_files_are_checked_without_a_server(pgtrial, tmp_path):
    write_pack(tmp_path / "counters")
    done = pgtrial("check", "counters", "--files-only", cwd=tmp_path)
    assert (done.returncode, "transactions" in done.stdout) == (0, False)
    (tmp_path / "counters" / "raise.sql").unlink()
    assert "names raise.sql, which is not in the folder" in refused(pgtrial("check", "counters", cwd=tmp_path))


WRONG = {
    "no pack": (["check"], "name the pack to check"),
    "unknown": (["check", "queu"], "did you mean 'queue'"),
    "no folder": (["check", "./none"], "./none is not the folder of a pack"),
    "list of one": (
        ["list", "queue"],
        "`pgtrial pack list` does not take the name of a pack; to check the pack, run `pgtrial pack check queue`",
    ),
}


@pytest.mark.parametrize(("arguments", "expected"), WRONG.values(), ids=WRONG.keys())
def test_a_pack_that_is_not_there_is_one_sentence(pgtrial, tmp_path, arguments, expected):
    assert expected in refused(pgtrial(*arguments, cwd=tmp_path))
