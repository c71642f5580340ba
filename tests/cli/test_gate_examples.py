"""The gates of docs/gate-examples.md: their files and commands, on small repositories with two commits each. The gates
end after one block, which is too short for a verdict: what is tested is that base and head run as the page says.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from pgtrial.cli import gate
from pgtrial.cli.conduct import start
from pgtrial.store import git
from pgtrial.store.directory import StudyDirectory
from tests.cli.gates import property_in
from tests.conftest import require, require_engine, require_server
from tests.journeys.pages import ROOT
from tests.repositories import IDENTITY, Repository

pytestmark = pytest.mark.server

PAGE = (ROOT / "docs" / "gate-examples.md").read_text()


@dataclass(frozen=True)
class Example:
    """A part of the page."""

    title: str

    @property
    def text(self) -> str:
        (text,) = re.findall(rf"^## {self.title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
        return text

    @property
    def files(self) -> dict[str, str]:
        """The files of the part: its blocks whose first line is a comment with the name of a file."""
        blocks = re.findall(r"```(?:toml|ini|python)\n# ([\w.-]+)\n(.*?)```", self.text, re.DOTALL)
        return dict(blocks)

    @property
    def commands(self) -> list[str]:
        """The commands of the part, the gate's last."""
        (block,) = re.findall(r"```sh\n(.*?)```", self.text, re.DOTALL)
        return block.splitlines()


@pytest.fixture
def run(tmp_path, monkeypatch) -> Callable[..., StudyDirectory]:
    """Returns a function that makes the repository of an example, with a commit for each of two sets of files, runs the
    commands of the example in it, and returns the study of the gate.
    """
    require_engine()
    require_server(18)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")

    def run_example(title: str, base: dict[str, str], head: dict[str, str]) -> StudyDirectory:
        example = Example(title)
        repository = Repository(tmp_path / "project")
        repository.commit("The project", {**example.files, **base})
        repository.commit("A change", head)
        monkeypatch.chdir(repository.path)
        *before, command = example.commands
        for line in before:
            subprocess.run(line, shell=True, check=True, capture_output=True, env={**os.environ, **IDENTITY})
        monkeypatch.setattr(gate, "start", one_short_block)
        program, name, *setups, option, study = shlex.split(command)
        assert (program, name, option) == ("pgtrial", "gate", "--study")
        assert gate.gate_command(*setups, study=study, junit_file=Path("gate.xml"), results=tmp_path / "s") == 2
        assert property_in("gate.xml", "outcome") == "no verdict"
        ran = StudyDirectory.open(tmp_path / "s")
        assert list(ran.plan.arms) == ["base", "head"]
        assert [(trial.status, trial.reason) for trial in ran.trials()] == [("completed", None)] * 2
        return ran

    return run_example


def one_short_block(spec, *arguments, **options) -> int:
    """Starts the study of a gate with a single block of short trials."""
    short = spec.with_verdict(blocks=1)
    return start(short.model_copy(update={"load": spec.load.timed(0.2, 1.0)}), *arguments, **options)


def facts_of(study: StudyDirectory, group: str, name: str) -> list[object]:
    """Returns a fact of base and of head."""
    return [study.facts()[arm].facts[group][name] for arm in ("base", "head")]


SLUG = """#include "postgres.h"
#include <ctype.h>
#include "fmgr.h"
#include "utils/builtins.h"
PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(slug);
Datum
slug(PG_FUNCTION_ARGS)
{
    char *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
    size_t length = strlen(name);

    for (size_t at = 0; at < length; at++)
        if (!isalnum((unsigned char) name[at]))
            name[at] = '-';
    PG_RETURN_TEXT_P(cstring_to_text(name));
}
"""
EXTENSION = {
    "slug.c": SLUG,
    "slug.control": "default_version = '1.0'\nmodule_pathname = '$libdir/slug'\n",
    "slug--1.0.sql": "CREATE FUNCTION slug(text) RETURNS text AS 'MODULE_PATHNAME', 'slug' LANGUAGE C STRICT;\n",
    "Makefile": "MODULES = slug\nEXTENSION = slug\nDATA = slug--1.0.sql\nPG_CONFIG ?= pg_config\n"
    "PGXS := $(shell $(PG_CONFIG) --pgxs)\ninclude $(PGXS)\n",
}


def test_an_extension_in_c(run):
    slower = SLUG.replace("at < length", "at < strlen(name)")
    study = run("An extension in C", EXTENSION, {"slug.c": slower})
    assert facts_of(study, "server", "extension_subjects") == [["The project"], ["A change"]]
    assert all("slug 1.0" in extensions for extensions in facts_of(study, "server", "extensions"))
    assert study.plan.declared["head"] == ["server.extension_sources"]


def test_a_driver(run):
    package = Path(psycopg.__file__).parent
    driver = {f"psycopg/psycopg/{path.relative_to(package)}": path.read_text() for path in package.rglob("*.py")}
    marked = driver["psycopg/psycopg/__init__.py"]
    program = (ROOT / "docs" / "clients" / "bench.py").read_text()
    study = run(
        "A driver",
        {**driver, "psycopg/psycopg/__init__.py": f'{marked}\n__version__ += " of base"\n', "bench.py": program},
        {"psycopg/psycopg/__init__.py": f'{marked}\n__version__ += " of head"\n'},
    )
    assert [name.rpartition(" ")[2] for name in facts_of(study, "client", "program")] == ["base", "head"]
    assert facts_of(study, "client", "subject") == ["The project", "A change"]
    commits = [git.commit_named(Path(), ref) for ref in ("HEAD~1", "HEAD")]
    assert facts_of(study, "client", "directory") == [f"git:{Path.cwd()}@{commit}" for commit in commits]
    assert study.plan.declared["head"] == ["client.directory"]


def test_a_pooler(run, tmp_path, monkeypatch):
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    require(program, "pgbouncer (Debian's package pgbouncer)")
    if os.geteuid() == 0:  # pgbouncer does not run as root, and only the servers' account reaches their sockets
        (tmp_path / "pgbouncer").write_text(f'#!/bin/sh\nexec {program} -u "$(stat -c %U "$PGHOST")" "$@"\n')
        (tmp_path / "pgbouncer").chmod(0o755)
    else:
        (tmp_path / "pgbouncer").symlink_to(program)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    pool = Example("A pooler").files["pool.ini"]
    study = run("A pooler", {}, {"pool.ini": f"{pool}server_check_delay = 0\n"})
    assert facts_of(study, "client", "subject") == ["The project", "A change"]
    assert [trial.measured.transactions % 300 for trial in study.trials()] == [0, 0]


def test_migrations(run):
    table = "CREATE TABLE orders (id bigint PRIMARY KEY, customer int, day date, total numeric);\n"
    migration = f"{table}CREATE INDEX orders_day_idx ON orders (day);\n"
    rows = "SELECT i, i % 500, date '2026-01-01' + i % 365, i % 977 FROM generate_series(1, 20000) AS i;\n"
    study = run(
        "Migrations",
        {"migrations/0001-orders.sql": migration, "rows.sql": f"INSERT INTO orders {rows}"},
        {"migrations/0002-customers.sql": "DROP INDEX orders_day_idx;\nCREATE INDEX ON orders (customer, day);\n"},
    )
    assert study.plan.declared["head"] == ["load.data"]
    assert not any(finding.rule.startswith("unequal") for finding in study.audit().findings)
