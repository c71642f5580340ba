"""Given servers known however they are named, and the lock that keeps two labs from one server."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from pgtrial.conduct.run_study import run_study
from pgtrial.loads.target import Target
from pgtrial.model.errors import StudyError
from pgtrial.model.study.spec import StudySpec
from pgtrial.servers.server_identity import identity_of, same_server
from pgtrial.servers.server_locks import ServerLocks
from pgtrial.store.directory import StudyDirectory
from tests.conduct.small import FAST, small_study
from tests.conftest import require_engine
from tests.poolers import pooled

pytestmark = pytest.mark.server


PATIENCE_S = 60.0


def locks_of(study):
    """Returns the locks of a lab that waits for other labs to end, whose sessions a busy server may end late."""
    return ServerLocks(study, leaving_s=PATIENCE_S)


def impatient(study):
    """Returns the locks of a lab that waits only 0.2 s for another lab, which has the server and does not end."""
    return ServerLocks(study, leaving_s=0.2)


@pytest.fixture
def listening(start_cluster, free_port):
    """Returns a server that listens on a socket and on loopback, with two databases."""
    settings = {**FAST, "listen_addresses": "127.0.0.1", "port": str(free_port)}
    cluster = start_cluster(settings=settings, hba="local all all trust\nhost all all 127.0.0.1/32 trust\n")
    with cluster.target.connect_as_user() as session:
        session.execute("CREATE DATABASE other")
        session.execute("CREATE ROLE bench LOGIN")
    return cluster


def _target(cluster, host=None, dbname="postgres", user="postgres"):
    return Target(host or str(cluster.socket_directory), cluster.port, user, dbname)


def _arms(*targets_of_arms):
    """Arms as the locks need them: given servers with these targets."""
    setup = StudySpec.model_validate({"arms": {"a": {"dsn": "host=a"}, "b": {"dsn": "host=b"}}}).resolved("a")
    return {name: SimpleNamespace(setup=setup, targets=own) for name, own in zip("abc", targets_of_arms, strict=False)}


def test_a_server_is_known_by_its_socket_its_address_its_name_and_in_another_database(listening, start_cluster):
    twin = start_cluster()
    with _target(listening).connect_as_user() as first, twin.target.connect_as_user() as elsewhere:
        for host, dbname in [("127.0.0.1", "postgres"), ("localhost", "other"), (None, "other")]:
            with _target(listening, host, dbname).connect_as_user() as second:
                assert same_server(first, second) is True
                assert identity_of(second).database == dbname
        assert same_server(first, elsewhere) is False


REFUSED = {
    "start and identifier": ["pg_postmaster_start_time()", "pg_control_system()"],
    "all": ["pg_postmaster_start_time()", "pg_control_system()", "pg_lock_status()"],
}


@pytest.mark.parametrize(("refused", "known"), [("start and identifier", True), ("all", None)])
def test_a_role_that_may_not_ask_who_the_server_is_proves_it_by_a_lock(listening, start_cluster, refused, known):
    for cluster in (listening, twin := start_cluster()):
        with cluster.target.connect_as_user() as session:
            session.execute("DO $$ BEGIN CREATE ROLE bench LOGIN; EXCEPTION WHEN duplicate_object THEN END $$")
            for dbname in ("postgres", "other") if cluster is listening else ("postgres",):
                with _target(cluster, dbname=dbname).connect_as_user() as there:
                    for function in REFUSED[refused]:
                        there.execute(f"REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC".encode())
    with _target(listening, user="bench").connect_as_user() as first:
        with _target(listening, "127.0.0.1", "other", "bench").connect_as_user() as second:
            assert identity_of(second).start is None
            assert same_server(first, second) is known
        with _target(twin, user="bench").connect_as_user() as second:
            assert same_server(first, second) is (None if known is None else False)
    if known is None:
        arms = _arms([_target(listening, user="bench")], [_target(listening, "127.0.0.1", user="bench")])
        with locks_of("x") as locks, pytest.raises(StudyError, match=r"arms\.b: pgtrial cannot find out whether "):
            locks.take(arms)


def test_a_second_lab_is_refused_in_any_database_and_told_who_has_the_server(listening):
    with locks_of("tuesday") as first:
        assert first.take(_arms([_target(listening)], [_target(listening, "127.0.0.1")])) == []
        assert first.in_common()[0] == ["a", "b"]
        said = (
            r"arms\.a: another pgtrial runs a study on the server of bench@127\.0\.0\.1:\d+/other: pgtrial study "
            r"tuesday since \d{4}-[-0-9]+ [:0-9]+ UTC, process \d+ there, role postgres, database postgres; wait until"
        )
        with impatient("wednesday") as second, pytest.raises(StudyError, match=said):
            second.take(_arms([_target(listening, "127.0.0.1", "other", "bench")]))
    with locks_of("wednesday") as second:
        assert second.take(_arms([_target(listening, "127.0.0.1", "other", "bench")])) == []


_HOLDS = """
import sys, time
from pgtrial.loads.target import Target
from pgtrial.servers.server_locks import ServerLocks
locks = ServerLocks("killed")
print(locks.take_one(Target(sys.argv[1], int(sys.argv[2]), "postgres", "postgres")), flush=True)
time.sleep(600)
"""


def test_the_lock_of_a_lab_that_is_killed_is_gone(listening):
    address = [str(listening.socket_directory), str(listening.port)]
    with subprocess.Popen([sys.executable, "-c", _HOLDS, *address], stdout=subprocess.PIPE, text=True) as lab:
        assert lab.stdout.readline() == "[]\n"
        with impatient("next") as locks, pytest.raises(StudyError, match="pgtrial study killed since"):
            locks.take_one(_target(listening))
        lab.kill()
    with locks_of("next") as locks:
        assert locks.take_one(_target(listening)) == []


def test_two_databases_of_a_server_are_two_deployments_and_one_database_is_one(listening):
    with locks_of("x") as locks:
        assert locks.take(_arms([_target(listening), _target(listening, "localhost", "other")])) == []
        assert locks.in_common() is None
    with (
        locks_of("x") as locks,
        pytest.raises(StudyError, match="deployment 2, is the database of its deployment 1"),
    ):
        locks.take(_arms([_target(listening), _target(listening, "localhost")]))


def test_a_lock_that_went_with_its_session_is_taken_again_or_named(listening):
    with locks_of("one") as first, listening.target.connect_as_user() as session:
        first.take(_arms([_target(listening)]))
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'pgtrial study one%'"
        session.execute(end)
        first.renew()
        with impatient("two") as second, pytest.raises(StudyError, match="pgtrial study one"):
            second.take(_arms([_target(listening)]))


@pytest.fixture
def pooler(listening):
    """Yields a target behind PgBouncer with this pool_mode."""
    with ExitStack() as running:
        yield lambda mode: running.enter_context(pooled(listening, mode))


def test_behind_a_pooler_of_transactions_the_lock_is_held_and_goes_with_the_study(listening, pooler):
    target = pooler("transaction")
    with locks_of("pooled") as first:
        assert first.take(_arms([target], [_target(listening)])) == []
        assert first.in_common()[0] == ["a", "b"]
        with (
            impatient("direct") as second,
            pytest.raises(StudyError, match="another pgtrial runs a study on the server"),
        ):
            second.take(_arms([_target(listening, "127.0.0.1")]))
    with locks_of("direct") as second:
        assert second.take(_arms([_target(listening, "127.0.0.1")])) == []
        with impatient("pooled") as first, pytest.raises(StudyError, match="pgtrial study direct"):
            first.take(_arms([target]))


def test_behind_a_pooler_of_statements_the_study_is_told_that_there_is_no_lock(pooler):
    with locks_of("pooled") as locks:
        [said] = locks.take(_arms([pooler("statement")]))
    assert re.search(
        r"cannot be locked for this study \(.*\), so pgtrial would not notice another lab on this server", said
    )


def test_arms_at_two_names_of_one_server_run_in_turns_under_their_own_values(listening, tmp_path):
    require_engine()
    dsn = f"port={listening.port} dbname=postgres user=postgres"
    arms = {
        "a": {"dsn": f"host=127.0.0.1 {dsn}", "settings": {"work_mem": "8MB"}},
        "b": {"dsn": f"host={listening.socket_directory} {dsn}", "settings": {"work_mem": "16MB"}},
    }
    load = {"interleave": "auto"}
    study = small_study(tmp_path / "results", blocks=1, arms=arms, server={"settings": {}}, load=load)
    assert study.plan.interleaving is not None
    lines: list[str] = []
    run_study(study, lambda event: lines.append(str(event)))
    study = StudyDirectory.open(study.path)
    assert study.plan.interleaving is None
    assert study.plan.scope == "this given server as it is deployed"
    assert any("a and b are one given server" in line for line in lines)
    assert [trial.status for trial in study.trials()] == ["completed"] * 2
    facts = study.facts()
    assert {arm: facts[arm].facts["settings"]["work_mem"] for arm in "ab"} == {"a": "8MB", "b": "16MB"}


def test_arms_at_two_names_of_one_server_are_refused_where_the_study_asks_for_slices(listening, tmp_path):
    require_engine()
    dsn = f"port={listening.port} dbname=postgres user=postgres"
    arms = {"a": {"dsn": f"host=127.0.0.1 {dsn}"}, "b": {"dsn": f"host=localhost {dsn}"}}
    load = {"interleave": "250ms"}
    study = small_study(tmp_path / "results", blocks=1, arms=arms, server={"settings": {}}, load=load)
    with pytest.raises(StudyError, match=r"a and b are one given server, .* by several names, and their trials cannot"):
        run_study(study, lambda event: None)
    assert study.trials() == []
