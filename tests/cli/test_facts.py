"""`pgtrial facts` on the arms of a study."""

from __future__ import annotations

import json

import pytest

from pgtrial.cli.facts import facts_command

pytestmark = pytest.mark.server


def test_every_deployment_of_an_arm_is_looked_at_and_compared_with_its_kind(clusters, tmp_path, capsys):
    server = clusters(18).target
    names = ["facts_a0", "facts_a1", "facts_b0", "facts_b1"]
    with server.connect_as_user() as connection:
        for name in names:
            connection.execute(f"CREATE DATABASE {name}".encode())
        connection.execute("ALTER DATABASE facts_b1 SET work_mem = '8MB'")
    where = f"host={server.host} port={server.port} user={server.user}"
    lines = [f'[arms.{arm}]\ndsn = ["{where} dbname=facts_{arm}0", "{where} dbname=facts_{arm}1"]\n' for arm in "ab"]
    (tmp_path / "study.toml").write_text("".join(lines))
    try:
        facts_command(str(tmp_path / "study.toml"), as_json=True)
    finally:
        with server.connect_as_user() as connection:
            for name in names:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
    told = json.loads(capsys.readouterr().out)
    assert list(told["facts"]) == ["a, deployment 1", "a, deployment 2", "b, deployment 1", "b, deployment 2"]
    assert told["facts"]["b, deployment 2"]["facts"]["settings"]["work_mem"] == "8MB"
    assert {(found["rule"], *found["arms"]) for found in told["audit"]["findings"]} >= {("unlike_deployments", "b")}
