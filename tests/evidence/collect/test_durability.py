"""Facts hold what the load's own sessions have, and which tables a crash would empty."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgtrial.evidence.collect.collect import collect

pytestmark = pytest.mark.server


def test_settings_are_those_of_the_role_of_the_load(start_cluster):
    cluster = start_cluster()
    with cluster.target.connect_as_user() as session:
        session.execute("CREATE ROLE lazy LOGIN")
        session.execute("ALTER ROLE lazy SET synchronous_commit = off")
        session.execute("ALTER ROLE lazy SET work_mem = '9MB'")
        session.execute(f"ALTER ROLE {cluster.target.user} SET jit = off")
    owned = replace(cluster.target, owner="lazy")
    facts = collect("A", owned, cluster.data_directory).facts
    assert facts["settings"]["synchronous_commit"] == "off"
    assert facts["sources"]["work_mem"] == "user"
    assert facts["defaults"]["jit"] == "on", "the lab's own role is not the load's"
    assert facts["settings"]["log_checkpoints"] == "on"
    assert "superuser_reserved_connections" in facts["defaults"]


def test_unlogged_tables_are_named(start_cluster):
    cluster = start_cluster()
    with cluster.target.connect_as_user() as session:
        session.execute("CREATE TABLE kept (a int); CREATE UNLOGGED TABLE lost (a int PRIMARY KEY)")
        session.execute('CREATE SCHEMA "Odd"; CREATE UNLOGGED TABLE "Odd".lost (a int); CREATE TEMP TABLE gone (a int)')
        facts = collect("A", cluster.target, cluster.data_directory).facts
    assert facts["server"]["unlogged_tables"] == ['"Odd".lost', "public.lost"]
