"""Tests that the engine finds a server and logs in as pgbench 18 does, and prints the same messages if it cannot."""

from __future__ import annotations

import os
import pty
import re
import socket
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pgtrial.servers.access import reserved_port
from tests.engine.events import of_kind, wait_for
from tests.engine.guarded import (
    ADDRESS,
    PASSWORD,
    run,
    serving,
    variables,
    write_private,
)
from tests.engine.programs import TIMEOUT_S, Ended, ours, settled
from tests.engine.sessions import wait_until_left

pytestmark = pytest.mark.server


HBA = """
local all all scram-sha-256
host all trusty 127.0.0.1/32 trust
host all clara 127.0.0.1/32 password
host all mildred 127.0.0.1/32 md5
host all ann 127.0.0.1/32 scram-sha-256
host all barred 127.0.0.1/32 reject
"""
ROLES = ("trusty", "clara", "mildred", "ann", "barred")
PLACES = 40
"""max_connections. It is so high that clients of one run may still be disconnecting while those of the next run
connect.
"""
SHORT = ("-n", "-S", "-t", "2", "-c", "2", "--random-seed=1")
NO_HOST = "nosuch..invalid"
"""A host name that cannot be valid, so that its lookup never reaches the network and always fails in the same way."""


@pytest.fixture(scope="module")
def guarded(workspace):
    """Yields a server loaded at scale 1 that listens on TCP and on a socket, with a role for each authentication
    method.
    """
    with serving(
        workspace, 18, HBA, {"max_connections": str(PLACES), "password_encryption": "scram-sha-256"}
    ) as cluster:
        with cluster.target.connect_as_user() as connection:
            connection.execute("SET md5_password_warnings = off")
            for role in ROLES:
                encryption = "md5" if role == "mildred" else "scram-sha-256"
                connection.execute(f"SET password_encryption = '{encryption}'")
                connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
        ours().load(cluster.target)
        with cluster.target.connect_as_user() as connection:
            connection.execute("GRANT pg_read_all_data TO " + ", ".join(ROLES))
        yield cluster


@pytest.fixture
def same(both, guarded) -> Callable[..., Ended]:
    """Returns a function that runs the original and ours with the same variables, asserts that both print the same, and
    returns our result.
    """

    def run_both(*args: str, **env: str) -> Ended:
        named = [*re.findall(r"(?:port=|:)([\d,]+)", " ".join(args)), env.get("PGPORT", ""), str(guarded.port)]
        ports = dict.fromkeys(port for port in ",".join(named).split(",") if len(port) >= 4)
        done: list[Ended] = []

        def act(program):
            done.append(run(program, *args, **env))
            words = [settled(done[-1]).stdout, settled(done[-1]).stderr, done[-1].stderr]
            for number, port in enumerate(ports):
                words = [re.sub(rf"\b{port}\b", f"%PORT{number}%", text) for text in words]
            return done[-1].status, words

        theirs, mine = both(act)
        assert mine == theirs
        return done[-1]

    return run_both


@pytest.mark.like_pgbench
@pytest.mark.parametrize("user", ["trusty", "clara", "mildred", "ann"])
def test_each_way_of_authentication_lets_a_role_in(same, guarded, user):
    for args in (SHORT, (*SHORT, "-C"), (*SHORT, "-j", "2", "-M", "prepared")):
        assert same(*args, **variables(guarded, user, PGPASSWORD=PASSWORD)).status == 0


@pytest.mark.like_pgbench
def test_a_password_works_on_a_socket(same, guarded):
    env = variables(guarded, "ann", PGPASSWORD=PASSWORD, PGHOST=str(guarded.socket_directory))
    assert same(*SHORT, **env).status == 0


REFUSALS = {
    "wrong scram password": ("ann", {"PGPASSWORD": "wrong"}),
    "wrong md5 password": ("mildred", {"PGPASSWORD": "wrong"}),
    "wrong clear password": ("clara", {"PGPASSWORD": "wrong"}),
    "no password": ("ann", {}),
    "no such role": ("nobodyhere", {"PGPASSWORD": "x"}),
    "barred": ("barred", {"PGPASSWORD": PASSWORD}),
    "no such database": ("trusty", {"PGDATABASE": "nosuch"}),
    "scram demanded, trust met": ("trusty", {"PGREQUIREAUTH": "scram-sha-256"}),
    "scram demanded, md5 met": ("mildred", {"PGREQUIREAUTH": "scram-sha-256", "PGPASSWORD": PASSWORD}),
    "password refused": ("clara", {"PGREQUIREAUTH": "!password", "PGPASSWORD": PASSWORD}),
    "channel binding without TLS": ("ann", {"PGCHANNELBINDING": "require", "PGPASSWORD": PASSWORD}),
    "channel binding with trust": ("trusty", {"PGCHANNELBINDING": "require"}),
    "channel binding with md5": ("mildred", {"PGCHANNELBINDING": "require", "PGPASSWORD": PASSWORD}),
    "no standby": ("trusty", {"PGTARGETSESSIONATTRS": "standby"}),
    "not read-only": ("trusty", {"PGTARGETSESSIONATTRS": "read-only"}),
    "read-only": ("trusty", {"PGTARGETSESSIONATTRS": "read-write", "PGOPTIONS": "-cdefault_transaction_read_only=on"}),
    "no such host": ("trusty", {"PGHOST": NO_HOST}),
    "no such socket": ("trusty", {"PGHOST": "/tmp/nosuch"}),
    "refused": ("trusty", {"PGPORT": "1"}),
    "refused by name": ("trusty", {"PGHOST": "localhost", "PGHOSTADDR": ADDRESS, "PGPORT": "1"}),
    "all of several refused": ("trusty", {"PGHOST": f"{NO_HOST},127.0.0.1,/tmp/nosuch", "PGPORT": "1"}),
    "bad port": ("trusty", {"PGPORT": "many"}),
    "more ports than hosts": ("trusty", {"PGPORT": "1,2"}),
    "more addresses than hosts": ("trusty", {"PGHOST": "one", "PGHOSTADDR": f"{ADDRESS},{ADDRESS}"}),
    "bad session attributes": ("trusty", {"PGTARGETSESSIONATTRS": "writable"}),
    "bad balancing": ("trusty", {"PGLOADBALANCEHOSTS": "perhaps"}),
    "bad mode of TLS": ("trusty", {"PGSSLMODE": "perhaps"}),
    "no such service": ("trusty", {"PGSERVICE": "nosuch"}),
    "no such file of services": ("trusty", {"PGSERVICE": "nosuch", "PGSERVICEFILE": "/nosuch"}),
}


@pytest.mark.like_pgbench
@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_is_told_in_the_same_words(same, guarded, case):
    user, env = REFUSALS[case]
    assert same(*SHORT, **variables(guarded, user, **env)).status == 1


@pytest.mark.like_pgbench
def test_a_server_that_never_answers_is_given_up_after_the_timeout(same):
    with socket.create_server((ADDRESS, 0)) as silent:
        env = {"PGHOST": ADDRESS, "PGPORT": str(silent.getsockname()[1]), "PGUSER": "u", "PGCONNECT_TIMEOUT": "1"}
        assert "timeout expired" in same(*SHORT, **env).stderr


def test_each_client_passes_over_a_server_that_never_answers(guarded):
    with socket.create_server((ADDRESS, 0)) as silent:
        # the other server has as long to answer, and is asked until it does
        ports = [silent.getsockname()[1], *[guarded.port] * 9]
        hosts = {"PGHOST": ",".join([ADDRESS] * len(ports)), "PGPORT": ",".join(map(str, ports))}
        done = run(ours(), *SHORT, PGCONNECT_TIMEOUT="2", **variables(guarded, "trusty", **hosts))
    assert done.status == 0, done.stderr


@pytest.mark.like_pgbench
def test_more_clients_than_the_server_takes(both, guarded):
    def act(program):
        done = run(program, "-n", "-S", "-c", str(PLACES + 2), **variables(guarded, "trusty"))
        wait_until_left(guarded.target)
        # Ours come several at a time, so that those who are being refused may fill the slots that are reserved.
        words = r"client \d+|remaining connection slots are reserved.*|sorry, too many clients already"
        return done.status, re.sub(words, "#", done.stderr).replace(str(guarded.port), "%PORT%")

    theirs, mine = both(act)
    assert mine == theirs
    assert "could not create connection for #" in mine[1]
    assert mine[0] == 1


@pytest.mark.like_pgbench
def test_a_dead_first_host_is_passed_over(same, guarded):
    ports = f"1,{guarded.port}"
    env = variables(guarded, "ann", PGHOST=f"{ADDRESS},{ADDRESS}", PGPORT=ports, PGPASSWORD=PASSWORD)
    for more in ({}, {"PGLOADBALANCEHOSTS": "random"}, {"PGTARGETSESSIONATTRS": "prefer-standby"}):
        assert same(*SHORT, **env, **more).status == 0


@pytest.mark.like_pgbench
def test_a_standby_is_preferred_and_a_primary_taken_if_there_is_none(same, guarded):
    env = variables(guarded, "trusty", PGDATABASE="nosuch", PGTARGETSESSIONATTRS="prefer-standby")
    assert same(*SHORT, **env).status == 1
    assert same(*SHORT, **{**env, "PGDATABASE": "postgres"}).status == 0


@pytest.fixture
def dead() -> Iterator[int]:
    """Yields a reserved port on which no server listens."""
    with reserved_port() as port:
        yield port


@pytest.mark.like_pgbench
def test_the_first_host_with_the_wanted_attributes_is_taken_by_each_client(same, guarded, dead):
    port = guarded.port
    hosts = f"host={ADDRESS},{ADDRESS},localhost port={dead},{port},{port} user=trusty dbname=postgres"
    for attributes in ("any", "read-write", "primary", "prefer-standby"):
        for options in ((), ("-C",), ("-j", "2")):
            done = same(*SHORT, *options, f"{hosts} target_session_attrs={attributes}")
            assert done.status == 0
    for attributes in ("read-only", "standby"):
        assert same(*SHORT, f"{hosts} target_session_attrs={attributes}").status == 1
    uri = f"postgresql://trusty@{ADDRESS}:{dead},{ADDRESS}:{port}/postgres?target_session_attrs=read-write"
    assert same(*SHORT, uri).status == 0


@pytest.mark.like_pgbench
def test_connection_strings_and_uris_are_databases(same, guarded):
    host, port = guarded.socket_directory, guarded.port
    for dbname in (
        f"host={ADDRESS} port={port} user=ann password='{PASSWORD}' dbname=postgres",
        f"postgresql://ann:correct%20horse@{ADDRESS}:{port}/postgres?application_name=x",
        f"postgresql:///postgres?host={host}&port={port}&user=postgres",
    ):
        assert same(*SHORT, dbname).status == 0
        assert same(*SHORT, "-d", dbname).status == 0
    for wrong in ("nosuch=1", "host='x", "postgresql://[::1", "postgresql://u:secret@h/d?x=1"):
        assert "secret" not in same(*SHORT, wrong).stderr


@pytest.mark.like_pgbench
def test_a_service_leads_to_the_server(same, guarded, tmp_path):
    service = f"[bench]\nhost={ADDRESS}\nport={guarded.port}\nuser=ann\npassword={PASSWORD}\ndbname=postgres\n"
    (tmp_path / ".pg_service.conf").write_text(service)
    assert same(*SHORT, "service=bench", HOME=str(tmp_path)).status == 0
    assert same(*SHORT, "service=nosuch", HOME=str(tmp_path)).status == 1
    assert run(ours(), *SHORT, HOME=str(tmp_path), PGSERVICE="bench", PGDATABASE="postgres").status == 0
    elsewhere = tmp_path / "services"
    elsewhere.write_text(
        service.replace("[bench]", "[other]").replace("user=ann", f"# user\nuser=ann\nport={guarded.port}")
    )
    assert same(*SHORT, "service=other", PGSERVICEFILE=str(elsewhere)).status == 0
    elsewhere.write_text("[other]\nnosuch=1\n")
    assert same(*SHORT, "service=other", PGSERVICEFILE=str(elsewhere)).status == 1
    elsewhere.write_text("[other]\nhost\n")
    assert same(*SHORT, "service=other", PGSERVICEFILE=str(elsewhere)).status == 1


@pytest.mark.like_pgbench
def test_the_password_file_is_used_and_named_when_it_is_wrong(same, guarded, tmp_path):
    line = f"{ADDRESS}:{guarded.port}:postgres:ann:"
    env = variables(guarded, "ann", HOME=str(tmp_path))
    path = write_private(tmp_path / ".pgpass", f"# passwords\n{line}{PASSWORD}\n")
    assert same(*SHORT, **env).status == 0
    write_private(path, f"{line}wrong\n")
    assert f'password retrieved from file "{path}"' in same(*SHORT, **env).stderr
    elsewhere = write_private(tmp_path / "elsewhere", f"*:*:*:*:{PASSWORD}\n")
    assert same(*SHORT, **env, PGPASSFILE=str(elsewhere)).status == 0


def test_a_password_file_that_others_can_read_is_ignored_with_a_warning(guarded, tmp_path):
    path = write_private(tmp_path / ".pgpass", f"*:*:*:*:{PASSWORD}\n")
    path.chmod(0o644)
    done = run(ours(), *SHORT, **variables(guarded, "ann", HOME=str(tmp_path)))
    assert done.status == 1
    assert f'WARNING: password file "{path}" has group or world access; permissions should be u=rw' in done.stderr
    assert "fe_sendauth: no password supplied" in done.stderr


def test_a_user_at_a_terminal_is_asked_for_the_password_once(guarded):
    env = {"PATH": os.environ["PATH"], **variables(guarded, "ann")}
    command = [*ours().command, *SHORT]
    process, terminal = pty.fork()
    if process == 0:
        os.execve(command[0], command, env)
    shown = b""
    typed = False
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # how Linux tells the end of the other side
            break
        if not piece:
            break
        shown += piece
        if not typed and b"Password: " in shown:
            while termios.tcgetattr(terminal)[3] & termios.ECHO:  # the prompt comes before the echo goes
                time.sleep(0.01)
            os.write(terminal, f"{PASSWORD}\n".encode())
            typed = True
    os.close(terminal)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    text = shown.decode()
    assert status == 0, text
    assert text.count("Password: ") == 1
    assert PASSWORD not in text
    assert "number of transactions actually processed: 4/4" in text


def test_the_password_is_seen_nowhere(guarded, tmp_path):
    events = tmp_path / "events.jsonl"
    env = {"PATH": os.environ["PATH"], **variables(guarded, "ann", PGPASSWORD=PASSWORD)}
    command = [*ours().command, "-S", "-n", "-T", "1", "-P", "1", "--start-at=-", "--events", str(events)]
    with subprocess.Popen(
        command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        # it has connected, and waits to be told when to begin
        wait_for(events, lambda told: bool(of_kind(told, "ready")))
        listed = Path(f"/proc/{process.pid}/cmdline").read_bytes().decode()
        stdout, stderr = process.communicate(f"{time.time()}\n", timeout=TIMEOUT_S)
    assert process.returncode == 0, stderr
    assert "--events" in listed
    assert "tps = " in stdout
    assert '"event":"done"' in events.read_text()
    assert PASSWORD not in listed + stdout + stderr + events.read_text()


@pytest.mark.like_pgbench
def test_the_place_of_an_error_in_the_statement_is_shown(same, guarded):
    with guarded.target.connect_as_user() as connection:
        connection.execute("CREATE DATABASE bare TEMPLATE template0")
    env = variables(guarded, "trusty", PGDATABASE="bare")
    assert "\nLINE 1: select count(*) from pgbench_branches\n" in same(*SHORT, **env).stderr
    with replace(guarded.target, dbname="bare").connect_as_user() as connection:
        connection.execute("CREATE TABLE pgbench_branches AS SELECT 1 AS bid")
        connection.execute("CREATE TABLE pgbench_accounts (aid int)")
    for mode in ("simple", "extended"):
        assert (
            "\nLINE 1: SELECT abalance FROM" in same("-n", "-S", "-t", "1", "--random-seed=1", "-M", mode, **env).stderr
        )
    prepared = run(ours(), "-n", "-S", "-M", "prepared", **env)
    assert "\nLINE 1: SELECT abalance FROM pgbench_accounts WHERE aid = $1;\n               ^\n" in prepared.stderr
