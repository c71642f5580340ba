"""Studies on the user's own data: dumps, files of SQL, a database that is dumped, and values from a column."""

from __future__ import annotations

import math
import os
import re
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.study_directory import find_or_create
from pgtrial.loads.process import environment
from pgtrial.loads.sampled_values import draw_values, write_values
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.servers.installations import resolve
from pgtrial.store.comparison import comparison
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.state import state_root
from tests.conftest import require_engine, require_server

pytestmark = pytest.mark.server

SHOP = """CREATE TABLE orders (id int PRIMARY KEY, customer text, "Odd ""name" int);
INSERT INTO orders SELECT i, 'c''' || i % 7, NULL FROM generate_series(1, 500) i;
CREATE TABLE nothing (n int);
"""
ONE_SECOND = {"clients": 2, "warmup": "0s", "duration": "1s", "interleave": "250ms"}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch, workspace):
    require_engine()
    monkeypatch.chdir(tmp_path)
    Path("shop.sql").write_text(SHOP)


@pytest.fixture
def shop(clusters):
    """Returns a database with orders on a server of the tests that lets its role in with any password."""
    cluster = clusters(18)
    with cluster.target.connect_as_user() as session:
        session.execute("DROP DATABASE IF EXISTS own_shop")
        session.execute("CREATE DATABASE own_shop")
    target = replace(cluster.target, dbname="own_shop")
    with target.connect_as_user() as session:
        session.execute(SHOP)
    return target


def run(arms=("jit=on", "jit=off"), **load):
    spec = comparison(arms, "test", None, 5, {"load": {**ONE_SECOND, **load}, "verdict": {"blocks": 1}})
    study, _ = find_or_create(spec, None, anew=True)
    said = []
    run_study(study, lambda event: said.append(getattr(event, "text", "")), spec=spec)
    for trial in study.trials():
        assert trial.reason is None
        assert trial.measured is not None
        assert trial.measured.transactions > 0
        assert not trial.measured.failures
    return study, said


def test_a_query_with_values_of_a_dump(shop):
    assert shop.programs is not None
    command = [shop.programs / "pg_dump", "--format=custom", "--file=shop.dump"]
    subprocess.run(command, env=environment(shop.environment()), check=True)
    # 1/0 for a value that is not in the column
    query = "select 1 / (count(*) > 0)::int from orders where customer = :who and id <> :id"
    study, _ = run(data="shop.dump", query=query, values={"who": "orders.customer", "id": "public.orders.id"})
    assert study.trials()[0].load_point.label == "query.sql on shop.dump, 2 clients"
    assert study.trials()[0].relations_before["orders"]["live_tuples"] == 500, "statistics are gathered after loading"


def test_texts_are_quoted_in_the_simple_protocol():
    run(
        data="shop.sql",
        protocol="simple",
        query="select :who, :id + 1",
        values={"who": "orders.customer", "id": "orders.id"},
    )


def test_no_other_account_reads_the_values_or_the_results_while_a_study_runs(monkeypatch):
    """The folders are looked at when the first trial begins, under a umask that would let all accounts read them."""
    seen = {}
    begin = StudyDirectory.begin_trial

    def look(study, planned):
        for path in [*(state_root() / "runs").glob("*/*-values"), study.path, study.path.parent]:
            seen[path.name] = stat.S_IMODE(path.stat().st_mode)
        return begin(study, planned)

    monkeypatch.setattr(StudyDirectory, "begin_trial", look)
    before = os.umask(0o022)
    try:
        run(data="shop.sql", query="select :who", values={"who": "orders.customer"})
    finally:
        os.umask(before)
    assert len(seen) == 3
    assert set(seen.values()) == {0o700}, seen
    assert not list((state_root() / "runs").glob("*/*-values")), "removed when the study has ended"


def test_a_mix_runs_all_its_scripts():
    Path("a.sql").write_text("INSERT INTO nothing VALUES (1);\n")
    Path("b.sql").write_text("SELECT count(*) FROM nothing;\n")
    study, _ = run(data="shop.sql", workload=["a.sql", "b.sql=3"], interleave="off")
    trial = study.trials()[0]
    inserted = trial.relations["nothing"]["live_tuples"]
    assert trial.measured is not None
    of = trial.measured.transactions
    # The second script inserts in a quarter of the transactions. The tolerance is six standard deviations, whatever the
    # number of transactions, plus those that two clients had in progress.
    assert abs(inserted - of / 4) < 6 * math.sqrt(of * 3 / 16) + 4
    assert 0 < inserted < of


def test_a_database_is_dumped_without_its_password(shop):
    secret = "xyzzy-secret"
    dsn = f"postgresql://{shop.user}:{secret}@/{shop.dbname}?host={shop.host}&port={shop.port}"
    study, said = run(data=dsn, query="select * from orders where id = :id", values={"id": "orders.id"})
    assert any("dumped " in text and "by pg_dump 18" in text for text in said)
    assert secret not in "".join(said)
    for folder in (study.path, state_root()):
        for path in folder.rglob("*"):
            if path.is_file() and path.stat().st_size < 1 << 20:
                assert secret.encode() not in path.read_bytes(), path
    assert list((state_root() / "dumps").glob("*.dump")) == [], "the templates have the data now"
    # the same command goes on with the study while it is unfinished, and takes another dump for a new one
    load = {**ONE_SECOND, "data": dsn, "query": "select 1"}
    spec = comparison(["jit=on", "jit=off"], "test", None, 5, {"load": load})
    begun, _ = find_or_create(spec, None, anew=False)
    again, was_there = find_or_create(spec, None, anew=False)
    assert (again.path, was_there) == (begun.path, True)
    assert begun.spec.load.data_files != study.spec.load.data_files


def test_a_database_is_dumped_by_the_pg_dump_of_its_version_and_its_roles_are_made(clusters):
    """The arms are servers of 18; the load runs as a role without superuser, which may take the database's role."""
    server = clusters(15).target
    with server.connect() as session:
        session.execute("DROP DATABASE IF EXISTS older_shop")
        session.execute("CREATE DATABASE older_shop")
    shop = replace(server, dbname="older_shop")
    try:
        with shop.connect_as_load() as session:
            session.execute(f"{SHOP} CREATE ROLE clerk; GRANT SELECT ON orders TO clerk;")
            session.execute("CREATE POLICY own ON orders TO clerk USING (id = 1)")
        dsn = f"host={shop.host} port={shop.port} user={shop.user} dbname={shop.dbname}"
        # 1/0 where the load is a superuser's
        may = "not rolsuper and pg_has_role('clerk', 'MEMBER')"
        query = f"select 1 / ({may})::int from pg_roles where rolname = current_user"
        _, said = run(data=dsn, query=query)
    finally:
        with server.connect() as session:
            session.execute("DROP DATABASE older_shop")
            session.execute("DROP ROLE IF EXISTS clerk")
    assert any("by pg_dump 15" in text for text in said)
    assert any(text.endswith("names the role clerk, which pgtrial created here without login") for text in said)


@pytest.mark.parametrize(
    ("load", "kind", "message"),
    [
        ({"values": {"id": "nothing.n"}}, StudyError, "id = nothing.n has no values in its column; load rows first"),
        ({"values": {"id": "orders.idd"}}, StudyError, 'id = orders.idd: PostgreSQL says: column "idd" does not exist'),
        ({"values": {"id": "order.id"}}, StudyError, "id = order.id: PostgreSQL says: syntax error"),
        (
            {"values": {"id": "nowhere.id"}},
            StudyError,
            'PostgreSQL says: relation "nowhere" does not exist; name a table',
        ),
        ({"values": {"id": 'orders."Odd ""name"'}}, StudyError, "has no values in its column"),
        (
            {"data": "bad.sql"},
            ArmError,
            "bad.sql, line 2 (INSERT INTO t VALUES (1, 2)): PostgreSQL says: INSERT has more",
        ),
    ],
)
def test_what_cannot_be_loaded_or_drawn_is_said(load, kind, message):
    Path("bad.sql").write_text("CREATE TABLE t (n int);\nINSERT INTO t VALUES (1, 2);\nSELECT 1;\n")
    with pytest.raises(kind) as refused:
        run(**{"data": "shop.sql", "query": "select :id::int", **load})
    assert message in str(refused.value)


def test_the_seed_says_which_values_wherever_the_rows_lie(shop, tmp_path):
    def sampled(folder, seed):
        (tmp_path / folder).mkdir(exist_ok=True)
        with shop.connect_as_user() as session:
            columns = {"id": "orders.id"}
            drawn = draw_values(session, columns, seed)
            files = write_values(session, columns, drawn, tmp_path / folder, as_text=False)
            assert {stat.S_IMODE(path.stat().st_mode) for path in files.values()} == {0o600}
        return files["id"].read_text()

    first = sampled("a", 1)
    with shop.connect_as_user() as session:
        session.execute("UPDATE orders SET customer = 'x' WHERE id % 3 = 0")
    assert sampled("b", 1) == first
    assert sampled("c", 2) != first
    assert sorted(first.split(), key=int) == [str(number) for number in range(1, 501)]


def test_a_query_that_changes_data_is_said():
    _, said = run(
        data="shop.sql", query="update orders set customer = :id where id = :id::int", values={"id": "orders.id"}
    )
    assert any(text.startswith("the query changes data: each trial begins on a fresh copy") for text in said)


def test_a_newer_server_than_the_oldest_arm_is_refused(shop):
    require_server(17)
    refused = (
        f"is PostgreSQL 18, and the oldest arm is PostgreSQL {re.escape(resolve('17').version)}, whose pg_dump cannot"
    )
    data = f"host={shop.host} port={shop.port} user={shop.user} dbname=own_shop"
    with pytest.raises(StudyError, match=refused):
        run(["postgres=18", "postgres=17"], data=data, query="select 1")
