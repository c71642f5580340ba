"""Tests that nothing of a user's schemas runs in the lab's own sessions, whatever traps they contain."""

from __future__ import annotations

import pytest

from pgtrial.conduct.trial.settle import warm_relations
from pgtrial.evidence.collect.collect import collect
from pgtrial.evidence.observe import views
from pgtrial.evidence.observe.job import ProgressViews
from pgtrial.evidence.observe.sampler import Sampler
from pgtrial.loads.data.data import refuse_taken_names
from pgtrial.loads.data.kinds import NO_TABLES
from pgtrial.loads.data.order_entry_tables import OrderEntryTables
from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.loads.data.suite_tables import SuiteTables
from pgtrial.loads.data.sysbench_tables import SysbenchTables
from pgtrial.loads.data.task_table import TaskTable
from pgtrial.loads.made_objects import copied_objects, drop_marked, marking_query
from pgtrial.servers import given as given_server
from pgtrial.servers.server_locks import ServerLocks
from tests.poolers import pooled
from tests.servers.given import checked, spec_of
from tests.servers.hostile import DATABASE, OWNER, fired, is_superuser, lie_in_wait

pytestmark = pytest.mark.server

PATHS = ('"$user", public', "public, pg_catalog")
"""The default, and one that has everything of the owner's before what is PostgreSQL's."""

DATA = (
    PgbenchTables(1),
    TaskTable(1, 1),
    OrderEntryTables(1),
    SuiteTables("joins", 1),
    SysbenchTables("oltp_read_write", (), 1, 1, 10),
)


def dsn_of(target, user="postgres"):
    return f"host={target.host} port={target.port} dbname={target.dbname} user={user}"


@pytest.fixture(params=PATHS, ids=["default", "before_pg_catalog"])
def path(request):
    return request.param


@pytest.fixture(params=[10, 13, 15, 18], ids=lambda major: f"pg{major}")
def cluster(request, start_cluster):
    return start_cluster(request.param)


@pytest.fixture
def trap(cluster, path):
    """Returns a target with which superusers connect to a database whose owner has set traps in it. The traps have been
    seen to work.
    """
    trap = lie_in_wait(cluster, path)
    with trap.connect_as_user() as session:
        session.execute("SELECT to_json(d) FROM pg_catalog.pg_database d")
        assert fired(cluster)
        assert is_superuser(cluster)
        session.execute(f"ALTER ROLE {OWNER} NOSUPERUSER".encode())
    return trap


def read_all(target):
    """Reads everything from a server that the lab reads before, during and after a trial."""
    with target.connect() as session:
        for data in DATA:
            assert not data.find(session)
            data.table_names(session)
            refuse_taken_names(session, data)
            views.read_relations(session, data.relations(session))
            warm_relations(target, checked_setup(target), data)
        views.read_counters(session)
        views.Views(session).read()
        views.Views(session).statements()
        views.read_waits(session)
        ProgressViews(session).look()
        with target.connect_as_load() as load, load.transaction():
            load.execute(marking_query(session, "made by a test").encode())
        assert copied_objects(session, ("no such mark",)) == []
        assert drop_marked(session, ("no such mark",), everywhere=True) == []
    with Sampler(target.connect, None, None) as sampler:
        sampler.load_begins(None)  # it looks once before it ends
    facts = collect("A", target)
    assert facts.facts["settings"]["search_path"]


def checked_setup(target):
    return spec_of(dsn_of(target)).resolved("A")


def test_sessions_of_the_lab_run_nothing_of_a_database_owner(cluster, trap, workspace, tmp_path, monkeypatch):
    """The sessions have a superuser's rights here. The test turns off pgtrial's refusal of such loads so that
    everything else runs.
    """
    monkeypatch.setattr(given_server, "obstacle", lambda session, needs: None)
    before = fired(cluster)
    arm = checked(spec_of(dsn_of(trap), {"work_mem": "5MB"} if cluster.server.major >= 15 else {}), workspace)
    with ServerLocks("hostile") as locks:
        assert locks.take({"A": arm}) == []
    read_all(arm.targets[0])
    if cluster.server.major >= 15:
        with arm.serve(NO_TABLES, tmp_path / "log", {}) as target:
            read_all(target)
    assert fired(cluster) == before
    assert not is_superuser(cluster)


@pytest.mark.parametrize("mode", ["session", "transaction", "statement"])
def test_nothing_of_a_database_owner_runs_behind_a_pooler(start_cluster, mode):
    """Behind a pooler the lab cannot set a search path for the session, so that it sets the path with each
    statement.
    """
    cluster = start_cluster(18)
    lie_in_wait(cluster, PATHS[1])
    with pooled(cluster, mode, size=6, dbname=DATABASE) as target:
        with target.connect() as session:
            for data in DATA:
                assert not data.find(session)
            views.read_counters(session)
            views.Views(session).read()
            views.read_waits(session)
        assert collect("A", target).facts["settings"]["search_path"] == PATHS[1]
    assert fired(cluster) == []
    assert not is_superuser(cluster)
