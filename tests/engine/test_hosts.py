"""Lists of hosts, notations of addresses, options of sockets, versions of the protocol: as libpq takes them."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from tests.engine.programs import settled
from tests.engine.recorder import ADDRESS, Recorder

pytestmark = pytest.mark.server


LONG = "/" + 120 * "x"
CLEAR = {"PGSSLMODE": "disable"}


@pytest.fixture
def said(peers, loaded, tmp_path):
    """Status and words of both for a connection string; they have to be the same."""
    script = tmp_path / "script.sql"
    script.write_text("SELECT 1;\n")
    target = loaded(18)

    def run(words: str, **env: str):
        results = []
        for program in peers:
            text = words.format(host=target.host, port=target.port)
            done = settled(program.run(target, "-n", "-t", "1", "-f", str(script), text, **env))
            results.append((done.status, done.stdout, done.stderr))
        assert results[1] == results[0]
        return results[1][0], results[1][2]

    return run


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("host={host},x port={port},0", 0),
        ("host=x,{host} port=0,{port}", 0),
        ("host={host},x port={port},70000", 0),
        ("host={host},x port={port},abc", 0),
        (f"host={{host}},{LONG} port={{port}}", 0),
        (f"host={LONG},{{host}} port={{port}}", 0),
        ("hostaddr=127.0.0.1,nope host=a,b port=1", 1),
        ("hostaddr=127.0.0.1,nope port={port}", 1),
        ("host={host} port=0", 1),
        ("host={host} port=abc", 1),
        (f"host={LONG}", 1),
        ("host=x,y port=0,70000", 1),
    ],
)
def test_one_bad_host_spoils_no_list(said, words, status):
    assert said(words)[0] == status


@pytest.mark.parametrize(
    "option", ["keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"]
)
def test_options_of_tcp_mean_nothing_on_a_unix_socket(said, option):
    for value in ("x", "1x", "''"):
        assert said(f"host={{host}} {option}={value}")[0] == 0


@pytest.mark.parametrize("option", ["keepalives=x", "keepalives=''", "keepalives_idle=x", "tcp_user_timeout=1x"])
def test_malformed_options_of_tcp_are_told_with_the_server(said, tcp_port, option):
    status, stderr = said(f"host={ADDRESS} port={tcp_port} {option}")
    assert status == 1
    assert "invalid integer value" in stderr
    assert f'connection to server at "{ADDRESS}"' in stderr


@pytest.fixture
def tcp_port():
    with socket.create_server((ADDRESS, 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize(
    "address", ["127.1", "0x7f.1", "0177.0.0.1", "2130706433", "127.0.0.1", "::1%lo", "nope", "08.1"]
)
def test_notations_of_addresses(said, address):
    """Nobody listens on the port: what is said is which address was tried."""
    status, stderr = said(f"hostaddr={address} port=1")
    assert status == 1
    assert ("refused" in stderr) == (address not in ("::1%lo", "nope", "08.1"))


@pytest.mark.parametrize(
    "words",
    [
        "min_protocol_version=3.0",
        "min_protocol_version=3.2",
        "min_protocol_version=latest",
        "max_protocol_version=latest",
        "max_protocol_version=3.0",
    ],
)
def test_versions_of_the_protocol(said, peers, loaded, words):
    assert said(f"host={{host}} {words}")[0] == 0
    asked = []
    for program in peers:
        with Recorder(Path(loaded(18).host) / f".s.PGSQL.{loaded(18).port}") as recorder:
            target = replace(loaded(18), host=ADDRESS, port=recorder.port)
            done = program.run(target, "-n", "-S", "-t", "1", words, **CLEAR)
            assert done.status == 0, done.stderr
            asked.append(bytes(recorder.sent[-1][4:8]))
    assert asked[1] == asked[0]


@pytest.mark.parametrize("words", ["min_protocol_version=''", "max_protocol_version=''", "max_protocol_version=3.1"])
def test_versions_that_are_none(said, words):
    assert said(f"host={{host}} {words}")[0] == 1


def test_a_server_without_the_protocol_version_is_refused(peers, clusters, tmp_path):
    """PostgreSQL 17 answers that it has 3.0."""
    script = tmp_path / "script.sql"
    script.write_text("SELECT 1;\n")
    line = ("-n", "-t", "1", "-f", str(script))
    for words, status in (("max_protocol_version=latest", 0), ("min_protocol_version=3.2", 1)):
        done = [settled(program.run(clusters(17).target, *line, words)) for program in peers]
        assert [one.status for one in done] == [status, status]
        assert done[1].stderr == done[0].stderr
