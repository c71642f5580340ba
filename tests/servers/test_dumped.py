"""The dump of a database that becomes the data of a study."""

from __future__ import annotations

import subprocess

import pytest

from pgtrial.servers.dumped import _dump

pytestmark = pytest.mark.server

_SECRET = "s3cr3t-Pa55w0rd"


def test_a_subscription_and_its_password_stay_where_they_are(start_cluster, tmp_path):
    source = start_cluster(settings={"wal_level": "logical"})
    with source.target.connect_as_user() as session:
        session.execute("CREATE TABLE t (n int)")
        session.execute(
            f"CREATE SUBSCRIPTION s CONNECTION 'host=db1 password={_SECRET}' PUBLICATION p WITH (connect = false)"
        )
    dump = tmp_path / "x.dump"
    _dump(source.server.bin / "pg_dump", dump, source.target.environment(), "x")
    restored = [source.server.bin / "pg_restore", "--file=-", dump]
    text = subprocess.run(restored, check=True, capture_output=True, text=True).stdout
    assert "CREATE TABLE public.t" in text
    assert _SECRET not in text
    assert "SUBSCRIPTION" not in text
    assert dump.stat().st_mode & 0o777 == 0o600
