"""Embedded servers that are reached over TCP, as a server elsewhere is: by a password that is nowhere written."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest
from psycopg import sql

from pgtrial.conduct.planning.scope import differing_keys as declared
from pgtrial.loads.data.kinds import NO_TABLES
from pgtrial.loads.data.pgbench_tables import tables_order
from pgtrial.loads.data.sysbench_tables import sysbench_order
from pgtrial.loads.data.task_table import table_a_order
from pgtrial.loads.load_makers import ENGINE_HERE
from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import StudySpec
from pgtrial.servers.arms import make_arms
from tests.conftest import require_engine, require_server


def _spec():
    return StudySpec.model_validate({"arms": {"A": {"connect": "tcp", "settings": {"log_statement": "all"}}, "B": {}}})


@pytest.mark.server
def test_a_server_on_tcp_asks_for_a_password_that_is_new_each_time_and_nowhere_written(workspace, tmp_path):
    require_server(18)
    arm = make_arms(Design(_spec()), workspace)["A"]
    passwords = set()
    for number in range(2):
        log = tmp_path / f"{number}.log"
        with arm.serve(NO_TABLES, log, {}) as target:
            assert target.host == "127.0.0.1"
            assert target.password is not None
            passwords.add(target.password)
            assert target.owner_password not in (None, target.password)
            with target.connect_as_user() as connection:
                told = connection.execute("SELECT host(inet_server_addr()), current_setting('listen_addresses')")
                assert told.fetchone() == ("127.0.0.1", "127.0.0.1")
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                target.connect_as_user(password="wrong")
            written = repr(target) + repr(arm.__dict__) + log.read_text()
            written += "".join(
                path.read_text(errors="replace")
                for path in workspace.root.rglob("*")
                if path.is_file() and path.suffix in (".conf", ".json", ".log", ".opts", ".pid")
            )
            assert "SCRAM-SHA-256" in log.read_text()
            assert target.password not in written
            assert str(target.owner_password) not in written
    assert len(passwords) == 2


@pytest.mark.server
def test_tables_are_made_over_tcp_in_a_database_of_any_name(workspace, tmp_path):
    require_server(18)
    require_engine()
    name = r"it's a = b \c"
    with make_arms(Design(_spec()), workspace)["A"].serve(NO_TABLES, tmp_path / "log", {}) as target:
        with target.connect_as_user() as connection:
            named = sql.Identifier(name), sql.Identifier(target.dbname)
            connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER pgtrial").format(*named))
        there = replace(target, dbname=name)
        env = there.environment()
        ENGINE_HERE.make(tables_order(env, 1, "dt"))
        ENGINE_HERE.make(sysbench_order(env, "oltp_read_only", ["--tables=1", "--table-size=10"]))
        ENGINE_HERE.make(table_a_order(env, 1, 10, "tgv"))
        with there.connect_as_user() as connection:
            listed = connection.execute("SELECT relname FROM pg_class WHERE relname IN ('pgbench_tellers', 'sbtest1')")
            assert len(listed.fetchall()) == 2
        with target.connect_as_user() as connection:
            assert connection.execute("SELECT to_regclass('sbtest1')").fetchone() == (None,)


def test_the_other_way_to_a_server_is_a_declared_difference():
    spec = _spec()
    assert declared(spec.resolved("A"), spec.resolved("B"))[-3:] == [
        "network.path",
        "network.interface",
        "network.mtu",
    ]
