"""The client programs of the documentation with the packages of the registries, and two versions of psycopg as arms."""

from __future__ import annotations

import os
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

from pgtrial.conduct.run_study import run_study
from pgtrial.loads.programs.program import START_LIMIT_S, Program, ProgramOrder
from tests.conduct.test_run_programs import study_of
from tests.conftest import require, require_engine

pytestmark = [pytest.mark.install, pytest.mark.server]

CLIENTS = Path(__file__).parents[2] / "docs" / "clients"


def done(*words: str | Path, cwd: Path) -> None:
    subprocess.run(words, cwd=cwd, check=True, capture_output=True, text=True)


@pytest.fixture
def accounts(clusters):
    """Yields a server with a table that the client programs read."""
    target = clusters(18).target
    with target.connect_as_user() as session:
        session.execute("DROP TABLE IF EXISTS pgbench_accounts")
        session.execute(
            "CREATE TABLE pgbench_accounts AS SELECT aid, 0 AS abalance FROM generate_series(1, 100000) aid"
        )
        session.execute("ALTER TABLE pgbench_accounts ADD PRIMARY KEY (aid)")
        yield target
        session.execute("DROP TABLE pgbench_accounts")


def runs(command: str, folder: Path, target) -> str | None:
    """Runs two batches of a client program, checks their 500 operations each, and returns the name that the program
    reports.
    """
    with Program(ProgramOrder(command, folder, target.environment())) as program:
        batches = [program.run_batch(START_LIMIT_S) for _ in range(2)]
        assert [batch.operations for batch in batches] == [500, 500]
        return program.name


def test_node_postgres(accounts, tmp_path):
    require(shutil.which("npm"), "npm")
    shutil.copy(CLIENTS / "bench.js", tmp_path)
    done("npm", "install", "--silent", "pg", cwd=tmp_path)
    assert runs("node bench.js", tmp_path, accounts).startswith("node-postgres 8.")


def test_pgx(accounts, tmp_path):
    go = shutil.which("go") or "/usr/local/go/bin/go"
    require(os.access(go, os.X_OK), "go")
    shutil.copy(CLIENTS / "bench.go", tmp_path)
    done(go, "mod", "init", "bench", cwd=tmp_path)
    done(go, "get", "github.com/jackc/pgx/v5@v5.5.5", cwd=tmp_path)
    done(go, "build", "-o", "bench", ".", cwd=tmp_path)
    assert runs("./bench", tmp_path, accounts) == "pgx 5"


def test_two_versions_of_psycopg_are_two_arms(tmp_path):
    require_engine()
    commands = {}
    for version in ("3.1.18", "3.2.3"):
        place = tmp_path / version
        venv.create(place, with_pip=True)
        done(place / "bin" / "pip", "install", "--quiet", f"psycopg[binary]=={version}", cwd=tmp_path)
        commands[version] = f"{place}/bin/python {CLIENTS / 'bench.py'}"
    study = study_of(tmp_path, commands)
    run_study(study, lambda event: None)
    assert {trial.arm: trial.program for trial in study.trials()} == {v: f"psycopg {v}" for v in commands}
    facts = study.facts()
    assert {arm: facts[arm].facts["client"]["program"] for arm in commands} == {v: f"psycopg {v}" for v in commands}
    rules = {finding.rule: finding.message for finding in study.audit().findings}
    assert "undeclared_difference" not in rules
    assert "client.program" in rules["following_difference"]
