"""Servers that are somebody else's."""

from __future__ import annotations

import pytest

from tests.servers.given import PASSWORD


@pytest.fixture
def given(start_cluster):
    """Returns a running server that pgtrial did not start, as a given server of a study."""
    return start_cluster()


@pytest.fixture
def guarded(start_cluster, free_port):
    """Returns a server on TCP that asks for passwords, with the role ann."""
    cluster = start_cluster(
        settings={"listen_addresses": "127.0.0.1", "port": str(free_port)},
        hba="local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n",
    )
    with cluster.target.connect_as_user() as connection:
        connection.execute(f"CREATE ROLE ann LOGIN PASSWORD '{PASSWORD}'")
        connection.execute("GRANT CREATE ON SCHEMA public TO ann")
    return f"postgresql://ann@127.0.0.1:{free_port}/postgres"
