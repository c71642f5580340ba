"""Tests of the command that the demo proposes to run next."""

import socket

import pytest

from pgtrial.cli.run import next_command, running_servers


def test_sockets_of_servers_are_found_by_their_names(tmp_path):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / ".s.PGSQL.5433"))
        (tmp_path / ".s.PGSQL.5433.lock").touch()
        assert running_servers([tmp_path, tmp_path / "nothing"]) == [(tmp_path, 5433)]


@pytest.mark.parametrize(
    ("majors", "command"),
    [
        ([15, 17, 18], "pgtrial compare postgres=17 postgres=18 --clients 8 --budget 3min"),
        ([18], "pgtrial list, which has the bundled studies of published comparisons"),
    ],
)
def test_the_newest_versions_are_proposed_where_no_server_runs(majors, command):
    assert next_command([], majors) == command


def test_a_running_server_comes_first(tmp_path):
    proposed = next_command([(tmp_path, 5432)], [17, 18])
    assert f"--server 'host={tmp_path} port=5432 dbname=bench'" in proposed
