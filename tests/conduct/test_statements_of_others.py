"""Tests that statements of other sessions on the study's server are neither planned nor stored."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import psycopg
import pytest

from pgtrial.conduct.progress import Second
from pgtrial.conduct.run_study import run_study
from tests.conduct.small import FAST, small_study
from tests.conftest import require_engine

pytestmark = pytest.mark.server

WAITING = (
    "CREATE ROLE mallory LOGIN",
    "CREATE SCHEMA mallory AUTHORIZATION mallory",
    "SET ROLE mallory",
    "CREATE FUNCTION mallory.second() RETURNS int VOLATILE LANGUAGE plpgsql AS $$BEGIN "
    "RAISE LOG 'planned or run by %', current_user; RETURN 1; END$$",
    "CREATE FUNCTION mallory.evil() RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN RETURN mallory.second(); END$$",
    "RESET ROLE",
)
TEXT = "SELECT mallory.evil() AS told_to_nobody"


def text_of(path: Path) -> str:
    """Returns the content of a file as text; a Parquet file becomes CSV."""
    return pl.read_parquet(path).write_csv() if path.suffix == ".parquet" else path.read_text(errors="replace")


@pytest.mark.parametrize("workload", ["select-only", "oltp_point_select"])
def test_a_statement_of_another_session_is_neither_planned_by_a_superuser_nor_stored(start_cluster, tmp_path, workload):
    require_engine()
    preloaded = {"shared_preload_libraries": "pg_stat_statements"}
    cluster = start_cluster(settings={**FAST, **preloaded})
    with cluster.target.connect_as_user() as session:
        for statement in (*WAITING, "CREATE EXTENSION pg_stat_statements"):
            session.execute(statement.encode())
    address = f"host={cluster.socket_directory} port={cluster.port} dbname=postgres"
    others: list[psycopg.Connection] = []

    def another(event: object) -> None:
        if isinstance(event, Second):  # a session that begins during the load, and stays
            others.append(psycopg.connect(f"{address} user=mallory application_name=pgbench", autocommit=True))
            others[-1].execute(TEXT.encode())

    arms = {
        name: {"dsn": f"{address} user=postgres", "settings": {"jit": jit}} for name, jit in (("a", "on"), ("b", "off"))
    }
    load = {"workload": workload, "share_server": False, "warmup": "1s", "duration": "3s"}
    if workload.startswith("oltp"):
        load |= {"sysbench": {"tables": 1, "table_size": 1000}}
    study = small_study(tmp_path / "results", blocks=1, arms=arms, server={"settings": {}}, load=load)
    run_study(study, another)
    assert others
    for other in others:
        other.close()
    log = cluster.data_directory.with_suffix(".log").read_text()
    by = {line.rpartition("planned or run by ")[2] for line in log.splitlines() if "planned or run by " in line}
    assert by == {"mallory"}
    with cluster.target.connect_as_user() as session:
        row = session.execute("SELECT count(*) FROM pg_stat_statements WHERE query LIKE '%told_to_nobody%'").fetchone()
        assert row == (1,), "the server knows the statement"
    files = [path for path in Path(study.path).rglob("*") if path.is_file()]
    assert [path for path in files if "told_to_nobody" in text_of(path)] == []
