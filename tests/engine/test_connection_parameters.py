"""Compares each connection parameter of libpq 18 between the engine and pgbench. That pgbench uses the libpq of
psycopg's wheel, which has TLS.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg_binary
import pytest
from psycopg import pq

from pgtrial.servers.cluster import Cluster
from tests.conftest import require, require_server
from tests.engine.certificates import Authority
from tests.engine.guarded import ADDRESS, PASSWORD, run, serving, write_private
from tests.engine.programs import Ended, Program, original_path, ours

pytestmark = pytest.mark.server

ROLES = {"certy": "cert", "sealed": "scram-sha-256", "clear": "password"}
HBA = "".join(f"hostssl all {role} 127.0.0.1/32 {method}\n" for role, method in ROLES.items())


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    require(shutil.which("openssl"), "the openssl command")
    made = Authority(tmp_path_factory.mktemp("parameters"))
    made.issue("server", "/CN=localhost", "rsa 2048")
    made.issue("client", "/CN=certy", "P-256")
    return made


@pytest.fixture(scope="module")
def sealed(workspace, authority) -> Iterator[Cluster]:
    """A server of Debian's PostgreSQL 15 with TLS (the wheels have none)."""
    server = require_server(15)
    configured = subprocess.run([server.bin / "pg_config", "--configure"], capture_output=True, text=True, check=False)
    require("openssl" in configured.stdout, "a PostgreSQL 15 with OpenSSL")

    def install(cluster):
        for name in ("ca.crt", "server.crt", "server.key"):
            cluster.run_directory.own(
                write_private(cluster.data_directory / name, (authority.directory / name).read_text())
            )

    hba = f"{HBA}hostnossl all open 127.0.0.1/32 trust\nhost all either 127.0.0.1/32 trust\n"
    with serving(workspace, 15, hba, {"ssl": "on", "ssl_ca_file": "ca.crt"}, install) as cluster:
        with cluster.target.connect_as_user() as connection:
            for role in (*ROLES, "open", "either"):
                connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
        yield cluster


def original_with_tls() -> Program:
    """Returns pgbench 18 with a libpq that was built with OpenSSL."""
    directory = Path(psycopg_binary.__file__).parent.parent / "psycopg_binary.libs"
    libraries = list(directory.glob("libpq-*.so.5.18"))
    require(libraries, "a wheel of psycopg with libpq 18")
    loaded = (f"LD_LIBRARY_PATH={directory}", f"LD_PRELOAD={libraries[0]}")
    return Program("original", ("env", *loaded, str(original_path())))


@pytest.fixture
def both(sealed, tmp_path):
    """Returns a function that runs the original and ours with a connection string and variables, and returns both
    results.
    """
    script = write_private(tmp_path / "one.sql", "SELECT 1;\n")

    def act(conninfo: str, **env: str) -> tuple[Ended, Ended]:
        where = {"HOME": str(tmp_path), "PGHOST": ADDRESS, "PGPORT": str(sealed.port), "PGUSER": "either"}
        where |= {"PGDATABASE": "postgres", "PGPASSWORD": PASSWORD, **env}

        def ended(program: Program) -> Ended:
            done = run(program, "-n", "-t", "1", "-f", str(script), conninfo, **where)
            return Ended(done.status, "", done.stderr)

        return ended(original_with_tls()), ended(ours())

    return act


def socket_of(cluster: Cluster) -> str:
    return f"host={cluster.socket_directory} user=postgres"


@pytest.mark.parametrize("mode", ["disable", "allow", "require", "''", "x"])
def test_the_client_certificate_is_sent_as_sslcertmode_says(both, sealed, authority, mode):
    files = f"sslcert={authority.directory}/client.crt sslkey={authority.directory}/client.key"
    for user, sslmode in [("certy", "require"), ("either", "require"), ("either", "disable"), ("open", "disable")]:
        for certificate in ("", files):
            theirs, mine = both(f"user={user} sslmode={sslmode} sslcertmode={mode} {certificate}")
            assert mine == theirs, (user, sslmode, certificate)
    theirs, mine = both(f"{socket_of(sealed)} sslcertmode={mode}")
    assert mine == theirs
    theirs, mine = both("", PGSSLCERTMODE=mode.strip("'"))
    assert mine == theirs


def test_a_required_certificate_is_one_that_this_session_has_sent(both, authority):
    """The original counts a certificate that it sent to the server before, in an attempt with TLS that was rejected."""
    files = f"sslcert={authority.directory}/client.crt sslkey={authority.directory}/client.key"
    theirs, mine = both(f"user=open sslmode=prefer sslcertmode=require {files}")
    assert theirs.status == 0
    assert (mine.status, "server did not request an SSL certificate" in mine.stderr) == (1, True)


def test_servers_on_sockets_run_as_requirepeer_says(both, sealed):
    owner = sealed.socket_directory.joinpath(f".s.PGSQL.{sealed.port}").owner()
    for name, is_taken in [(owner, True), ("''", True), ("nobody-at-all", False), (f"{owner},root", False)]:
        theirs, mine = both(f"{socket_of(sealed)} requirepeer={name}")
        assert mine == theirs
        assert (mine.status == 0) == is_taken
        theirs, mine = both(socket_of(sealed), PGREQUIREPEER=name.strip("'"))
        assert mine == theirs
        theirs, mine = both(f"requirepeer={name}")
        assert mine == theirs == Ended(0, "", "")
    theirs, mine = both(f"postgresql:///postgres?host={sealed.socket_directory}&user=postgres&requirepeer=x")
    assert mine == theirs != Ended(0, "", "")
    theirs, mine = both(f"host={sealed.socket_directory},{ADDRESS} user=postgres requirepeer=x")
    assert mine == theirs != Ended(0, "", "")


def test_a_service_requires_them_too(both, sealed, tmp_path):
    peer = f"[a]\nhost={sealed.socket_directory}\nuser=postgres\nrequirepeer=x\n"
    file = write_private(tmp_path / "services", f"{peer}[b]\nsslmode=require\nsslcertmode=require\n")
    for name in "ab":
        theirs, mine = both(f"service={name}", PGSERVICEFILE=str(file))
        assert mine == theirs
        assert mine.status == 1


VALUES = {
    "sslnegotiation": ["postgres", "direct", "x", "''"],
    "ssl_min_protocol_version": ["TLSv1", "TLSv1.2", "tlsv1.3", "''", "x", "SSLv3"],
    "ssl_max_protocol_version": ["TLSv1.1", "TLSv1.2", "TLSv1.3", "''", "x"],
    "sslsni": ["0", "1", "x", "''"],
    "sslcompression": ["0", "1", "x"],
    "sslrootcert": ["system"],
    "gssencmode": ["disable", "prefer", "x", "''"],
    "gssdelegation": ["0", "1", "x"],
    "krbsrvname": ["x", "''"],
    "gsslib": ["x"],
    "load_balance_hosts": ["disable", "random", "x", "''", "Random"],
    "target_session_attrs": ["any", "read-write", "read-only", "primary", "standby", "prefer-standby", "x", "''"],
    "keepalives": ["0", "1", "-1", "x", "''"],
    "keepalives_idle": ["0", "-1", "5", "' 5 '", "5x", "''", "100000", "2147483648", "0x10"],
    "keepalives_interval": ["0", "5", "32768", "x"],
    "keepalives_count": ["0", "5", "1000", "x"],
    "tcp_user_timeout": ["0", "-1", "1000", "x", "2147483647"],
    "connect_timeout": ["0", "-1", "5", "x", "''", "1e2"],
    "min_protocol_version": ["3.0", "3.1", "3.2", "latest", "x", "''"],
    "max_protocol_version": ["3.0", "3.2", "latest", "3", "''"],
    "client_encoding": ["auto", "UTF8", "latin1", "x", "''"],
    "options": ["'-c geqo=off'", "'-c work_mem=x'", "''"],
    "replication": ["database", "x", "''"],
    "oauth_issuer": ["x"],
    "oauth_client_id": ["x"],
    "hots": ["1"],
}


@pytest.mark.parametrize("keyword", VALUES)
def test_values_mean_what_they_mean_to_libpq(both, sealed, keyword):
    variable = {option.keyword.decode(): option.envvar for option in pq.Conninfo.get_defaults()}.get(keyword)
    for value in VALUES[keyword]:
        strings = [f"{keyword}={value}", f"{keyword}={value} sslmode=require", f"{socket_of(sealed)} {keyword}={value}"]
        for conninfo in strings:
            theirs, mine = both(conninfo)
            assert mine == theirs, conninfo
        if variable is not None:
            theirs, mine = both("", **{variable.decode(): value.strip("'")})
            assert mine == theirs, variable


@pytest.mark.parametrize("keepalives", ["0", "1"])
def test_without_keepalives_no_option_of_tcp_is_looked_at(both, keepalives):
    for option in ("tcp_user_timeout", "keepalives_idle"):
        theirs, mine = both(f"keepalives={keepalives} {option}=x")
        assert mine == theirs


def test_a_wrong_time_limit_matters_once_a_connection_begins(both, sealed):
    for hosts in (f"{sealed.socket_directory}/none,{ADDRESS}", f"{ADDRESS},{sealed.socket_directory}", "/no/such"):
        theirs, mine = both(f"host={hosts} connect_timeout=x")
        assert mine == theirs != Ended(0, "", "")


METHODS = ["password", "md5", "gss", "scram-sha-256", "oauth", "none", "''", "x", "!", ",", "md5,password"]
METHODS += ["!password", "!scram-sha-256", "!none", "!oauth", "!scram-sha-256,!oauth", "md5,!none", "!none,!none"]


@pytest.mark.parametrize("methods", METHODS)
def test_authentication_is_required_as_by_libpq(both, methods):
    for user in ("sealed", "clear", "either"):
        for binding in ("prefer", "disable"):
            theirs, mine = both(f"user={user} sslmode=require require_auth={methods} channel_binding={binding}")
            assert mine == theirs, (user, binding)


@pytest.mark.parametrize("binding", ["disable", "prefer", "require", "x", "''"])
def test_channels_are_bound_as_by_libpq(both, binding):
    for user in ("sealed", "clear", "either"):
        for mode in ("disable", "require"):
            theirs, mine = both(f"user={user} sslmode={mode} channel_binding={binding}")
            assert mine == theirs, (user, mode)


def test_secrets_of_sessions_are_logged_where_sslkeylogfile_says(both, tmp_path):
    labels = []
    for sslmode in ("require", "disable"):
        file = tmp_path / f"{sslmode}.keys"
        theirs, mine = both(f"sslmode={sslmode} sslkeylogfile={file}")
        assert mine == theirs == Ended(0, "", "")
        labels.append([line.split() for line in file.read_text().splitlines()] if file.exists() else [])
    encrypted, plain = labels
    assert plain == []
    names = [label for label, _, _ in encrypted]
    assert len(names) > 0
    assert sorted(names[: len(names) // 2]) == sorted(names[len(names) // 2 :])
    assert all(len(bytes.fromhex(random)) == 32 and bytes.fromhex(secret) for _, random, secret in encrypted)
    assert (tmp_path / "require.keys").stat().st_mode & 0o077 == 0
    theirs, mine = both(f"sslmode=require sslkeylogfile={tmp_path}/none/keys")
    assert (mine.status, f'could not open SSL key logging file "{tmp_path}/none/keys"' in mine.stderr) == (1, True)


def test_each_parameter_of_libpq_is_obeyed_or_rejected_in_one_sentence(both):
    """The engine knows all parameters. It rejects those that need more than OpenSSL."""
    rejected = {"gssencmode": "require", "scram_client_key": "x", "scram_server_key": "x"}
    for keyword, value in rejected.items():
        _, mine = both(f"{keyword}={value}")
        assert mine.status == 1
        assert mine.stderr.count("\n") == 2
        assert keyword in mine.stderr
    for option in pq.Conninfo.get_defaults():
        _, mine = both(f"host=/no/such/directory {option.keyword.decode()}=''")
        assert "invalid connection option" not in mine.stderr, option.keyword
