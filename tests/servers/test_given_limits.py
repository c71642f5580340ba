"""Tests that a limit of a given server is reported in one sentence before anything is loaded."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from pgtrial.loads.client_processes import wait_for_clients_to_leave
from pgtrial.model.errors import StudyError
from pgtrial.model.study.spec import StudySpec
from tests.servers.given import checked, dsn_of, spec_of

pytestmark = pytest.mark.server


PATIENCE_S = 120.0


def test_more_clients_than_connections_are_found_before_the_first_trial(given, workspace):
    with pytest.raises(StudyError, match=r"500 clients need 504 connections .* raise max_connections there"):
        checked(spec_of(dsn_of(given), clients=500), workspace)
    with given.target.connect_as_user() as connection:
        connection.execute("CREATE ROLE bob LOGIN CONNECTION LIMIT 9")
        connection.execute("CREATE ROLE eve LOGIN")
        connection.execute("GRANT CREATE ON SCHEMA public TO bob, eve")
        connection.execute("CREATE DATABASE small CONNECTION LIMIT 7")
    checked(spec_of(dsn_of(given, user="bob")), workspace)
    with pytest.raises(StudyError, match=r"CONNECTION LIMIT of the role bob is 9, with .*ALTER ROLE"):
        checked(spec_of(dsn_of(given, user="bob"), clients=6), workspace)
    with pytest.raises(StudyError, match=r"CONNECTION LIMIT of the database small is 7, with .*ALTER DATABASE"):
        checked(spec_of(dsn_of(given, "small", "eve"), clients=4), workspace)


def test_sessions_of_others_count_although_the_role_may_not_see_what_they_are(given, workspace):
    with given.target.connect_as_user() as connection:
        connection.execute("CREATE ROLE eve LOGIN")
        connection.execute("GRANT CREATE ON SCHEMA public TO eve")
        wait_for_clients_to_leave(connection, 0, PATIENCE_S)
    # two connections are kept free for those that are just ending: this one, and the first one of the check
    spec = spec_of(dsn_of(given, user="eve"), clients=91)
    checked(spec, workspace)
    with ExitStack() as others:
        for _ in range(3):
            others.enter_context(given.target.connect_as_user())
        with pytest.raises(StudyError, match=r"max_connections .* is 97"):
            checked(spec, workspace)


def test_what_a_role_may_not_do_is_one_sentence_before_anything_is_loaded(given, workspace):
    with given.target.connect_as_user() as connection:
        connection.execute("CREATE ROLE bob LOGIN")
        connection.execute("CREATE ROLE eve LOGIN")
        connection.execute("ALTER ROLE eve SET search_path = nowhere")
        connection.execute("CREATE ROLE kim LOGIN")
        connection.execute("ALTER ROLE kim SET default_transaction_read_only = on")
    for role, words in (
        ("bob", "the role bob may not create tables in the schema public of the database postgres; grant it"),
        ("eve", "no schema in the search path of eve exists"),
        ("kim", "default_transaction_read_only is on for the role kim"),
    ):
        with pytest.raises(StudyError, match=words):
            checked(spec_of(dsn_of(given, user=role)), workspace)


def test_a_standby_is_told_before_anything_is_loaded(given, workspace, tmp_path):
    given.stop()
    signal = given.data_directory / "standby.signal"
    signal.touch()
    workspace.own(signal)
    given.start(tmp_path / "log")
    with pytest.raises(StudyError, match="the server is a read-only standby"):
        checked(spec_of(dsn_of(given)), workspace)


def test_data_that_would_not_fit_the_storage_is_refused_before_it_is_loaded(given, workspace):
    def with_limit(limit, **load):
        server = {"dsn": dsn_of(given), "storage_limit": limit}
        spec = StudySpec.model_validate({"load": load, "server": server, "arms": {"A": {}, "B": {}}})
        return checked(spec, workspace)

    words = r"scale 1000 does not fit .* 15,000 MB for tables and 134 MB for WAL.*free of storage_limit = 10 GB"
    with pytest.raises(StudyError, match=words):
        with_limit("10GB", scale=[10, 1000])
    with pytest.raises(StudyError, match="250 x 450,000 rows does not fit"):
        with_limit("30GB", workload="oltp_write_only", sysbench={"tables": 250, "table_size": 450_000})
    with_limit("20GB", scale=[10, 1000])
