"""TLS that the engine does not support is an error, never a session in the clear; keys with a passphrase."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from pgtrial.servers.cluster import Cluster
from tests.conftest import require, require_server
from tests.engine.certificates import KEYS, Authority
from tests.engine.guarded import ADDRESS, PASSWORD, run, serving, variables, write_private
from tests.engine.programs import TIMEOUT_S, Program, ours

pytestmark = pytest.mark.server


HBA = """
hostssl all certy 127.0.0.1/32 cert
host all either 127.0.0.1/32 trust
"""

SCRIPT = "SELECT ssl AS encrypted FROM pg_stat_ssl WHERE pid = pg_backend_pid() \\gset\n\\set x debug(:encrypted)\n"
ENCRYPTED, IN_THE_CLEAR = "boolean true", "boolean false"

UNSUPPORTED_KEYS = {"rsa-pss", "P-521"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    require(shutil.which("openssl"), "the openssl command")
    return Authority(tmp_path_factory.mktemp("abilities"))


@pytest.fixture(scope="module")
def sealed(workspace, authority) -> Iterator[Cluster]:
    """A server of Debian's PostgreSQL 15 with TLS (the wheels have none)."""
    server = require_server(15)
    configured = subprocess.run([server.bin / "pg_config", "--configure"], capture_output=True, text=True, check=False)
    require("openssl" in configured.stdout, "a PostgreSQL 15 with OpenSSL")
    authority.issue("server", "/CN=localhost", "rsa 2048")

    def install(cluster):
        for name in ("ca.crt", "server.crt", "server.key"):
            cluster.run_directory.own(
                write_private(cluster.data_directory / name, (authority.directory / name).read_text())
            )

    with serving(workspace, 15, HBA, {"ssl": "on", "ssl_ca_file": "ca.crt"}, install) as cluster:
        with cluster.target.connect_as_user() as connection:
            for role in ("certy", "either"):
                connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
        yield cluster


@contextmanager
def configured(cluster: Cluster, **settings: str) -> Iterator[None]:
    """Sets these settings on the server until the end of the block."""

    def apply(statements, expected):
        with cluster.target.connect_as_user() as connection:
            for statement in statements:
                connection.execute(statement)
            connection.execute("SELECT pg_reload_conf()")
        deadline = time.monotonic() + TIMEOUT_S
        while shown() != expected:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def shown():
        """The values of a new session: those of the postmaster."""
        with cluster.target.connect_as_user() as connection:
            return {name: connection.execute(f"SHOW {name}").fetchone()[0] for name in settings}

    before = shown()
    apply([f"ALTER SYSTEM SET {name} = '{value}'" for name, value in settings.items()], settings)
    try:
        yield
    finally:
        apply([f"ALTER SYSTEM RESET {name}" for name in settings], before)


@pytest.fixture
def attempt(sealed, tmp_path):
    """Returns a function that runs our engine, or the server's own pgbench, and returns how the connection was
    encrypted, or the error.
    """
    script = tmp_path / "ssl.sql"
    script.write_text(SCRIPT)

    def act(program=None, user="either", **env):
        done = run(
            program or ours(), "-n", "-t", "1", "-f", str(script),
            **variables(sealed, user, HOME=str(tmp_path), PGPASSWORD=PASSWORD, **env),
        )  # fmt: skip
        lines = [line for line in done.stderr.splitlines() if "debug(" in line or line.startswith("pgbench: error")]
        return lines[0].split("): ", 1)[-1] if done.status == 0 else done.stderr

    return act


def peer(cluster: Cluster) -> Program:
    return Program("original", (str(cluster.server.bin / "pgbench"),))


def assert_unsupported(said: str) -> None:
    assert "the server offers TLS, but none that this program supports" in said
    assert "ssl_ciphers" in said
    assert "sslmode=disable" in said


UNSUPPORTED: Mapping[str, Mapping[str, str]] = {
    "static RSA with CBC": {"ssl_ciphers": "AES128-SHA", "ssl_max_protocol_version": "TLSv1.2"},
    "static RSA with GCM": {"ssl_ciphers": "AES256-GCM-SHA384", "ssl_max_protocol_version": "TLSv1.2"},
    "ECDHE with CBC": {"ssl_ciphers": "ECDHE-RSA-AES128-SHA", "ssl_max_protocol_version": "TLSv1.2"},
    "DHE": {"ssl_ciphers": "DHE-RSA-AES256-GCM-SHA384", "ssl_max_protocol_version": "TLSv1.2"},
    "the curve P-521": {"ssl_ecdh_curve": "secp521r1"},
}


@pytest.mark.parametrize("case", UNSUPPORTED)
def test_a_server_whose_tls_is_not_supported_is_never_spoken_to_in_the_clear(sealed, attempt, case):
    with configured(sealed, **UNSUPPORTED[case]):
        for mode in ("prefer", "require"):
            assert attempt(peer(sealed), PGSSLMODE=mode) == ENCRYPTED
            assert_unsupported(attempt(PGSSLMODE=mode))
        assert attempt(PGSSLMODE="disable") == IN_THE_CLEAR
        assert attempt(PGSSLMODE="allow") == IN_THE_CLEAR


@pytest.mark.parametrize("kind", KEYS)
def test_servers_keys_of_all_kinds(sealed, authority, attempt, kind):
    authority.issue("other", "/CN=localhost", kind)
    for name in ("other.crt", "other.key"):
        sealed.run_directory.own(write_private(sealed.data_directory / name, (authority.directory / name).read_text()))
    root = {"PGSSLROOTCERT": str(authority.directory / "ca.crt"), "PGHOSTADDR": ADDRESS, "PGHOST": "localhost"}
    with configured(sealed, ssl_cert_file="other.crt", ssl_key_file="other.key"):
        for env in ({"PGSSLMODE": "prefer"}, {"PGSSLMODE": "require"}, {"PGSSLMODE": "verify-full", **root}):
            assert attempt(peer(sealed), **env) == ENCRYPTED
            if kind in UNSUPPORTED_KEYS:
                assert_unsupported(attempt(**env))
            else:
                assert attempt(**env) == ENCRYPTED


@pytest.mark.parametrize("kind", KEYS)
def test_clients_keys_of_all_kinds(sealed, authority, attempt, kind):
    authority.issue("client", "/CN=certy", kind)
    files = {name: str(authority.directory / file) for name, file in CLIENT_FILES.items()}
    for mode in ("prefer", "require"):
        assert attempt(peer(sealed), "certy", PGSSLMODE=mode, **files) == ENCRYPTED
        said = attempt(None, "certy", PGSSLMODE=mode, **files)
        if kind in UNSUPPORTED_KEYS:
            assert f'could not load private key file "{files["PGSSLKEY"]}"' in said
        else:
            assert said == ENCRYPTED


CLIENT_FILES = {"PGSSLCERT": "client.crt", "PGSSLKEY": "client.key"}

ENCRYPTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "pkcs8 aes256": ("rsa 2048", ("pkcs8", "-topk8", "-v2", "aes256")),
    "pkcs8 aes128 sha1": ("P-256", ("pkcs8", "-topk8", "-v2", "aes128", "-v2prf", "hmacWithSHA1")),
    "pkcs8 des3": ("P-256", ("pkcs8", "-topk8", "-v2", "des3")),
    "pkcs8 scrypt": ("Ed25519", ("pkcs8", "-topk8", "-scrypt", "-scrypt_N", "1024")),
    "traditional rsa aes128": ("rsa 2048", ("rsa", "-traditional", "-aes128")),
    "traditional rsa aes192": ("rsa 2048", ("rsa", "-traditional", "-aes192")),
    "traditional rsa des3": ("rsa 2048", ("rsa", "-traditional", "-des3")),
    "traditional ec aes256": ("P-384", ("ec", "-aes256")),
}


@pytest.mark.parametrize("encryption", ENCRYPTIONS)
def test_keys_with_a_passphrase(sealed, authority, attempt, encryption):
    kind, words = ENCRYPTIONS[encryption]
    authority.issue("client", "/CN=certy", kind)
    secret = "two words"
    passes = ("-passout", f"pass:{secret}")
    authority.openssl(*words, "-in", "client.key", "-out", "encrypted.key", *passes)
    key = authority.directory / "encrypted.key"
    key.chmod(0o600)
    files = {"PGSSLCERT": str(authority.directory / "client.crt"), "PGSSLKEY": str(key)}

    def said(program, passphrase):
        return attempt(
            program, "certy", PGDATABASE=f"dbname=postgres sslmode=require sslpassword='{passphrase}'", **files
        )

    assert said(None, secret) == said(peer(sealed), secret) == ENCRYPTED
    assert "bad decrypt" in said(None, "wrong")
    assert said(None, "wrong") == said(peer(sealed), "wrong")
    assert "give its passphrase as sslpassword" in said(None, "")
    # libpq would ask for it, so that there is no session in the clear.
    assert "give its passphrase as sslpassword" in attempt(None, PGSSLMODE="prefer", **files)
    for words in (said(None, "wrong"), said(None, "")):
        assert secret not in words


def test_a_passphrase_may_be_given_for_a_key_without_one(sealed, authority, attempt):
    authority.issue("client", "/CN=certy", "P-256")
    files = {name: str(authority.directory / file) for name, file in CLIENT_FILES.items()}
    settings = "dbname=postgres sslmode=require sslpassword=needless"
    assert attempt(None, "certy", PGDATABASE=settings, **files) == ENCRYPTED


def test_files_that_libpq_cannot_use_either_have_its_words(sealed, authority, attempt, tmp_path):
    authority.issue("client", "/CN=certy", "P-256")
    garbage = write_private(tmp_path / "garbage", "nothing\n")
    certificate, key = (str(authority.directory / name) for name in ("client.crt", "client.key"))
    other = str(authority.directory / "ca.key")
    (authority.directory / "ca.key").chmod(0o600)
    for files in (
        {"PGSSLCERT": str(garbage), "PGSSLKEY": key},
        {"PGSSLCERT": certificate, "PGSSLKEY": other},
        {"PGSSLCERT": certificate, "PGSSLKEY": str(tmp_path / "none")},
    ):
        env = {"PGSSLMODE": "require", **files}
        assert attempt(None, "certy", **env) == attempt(peer(sealed), "certy", **env)
    assert attempt(None, PGSSLMODE="prefer", PGSSLROOTCERT=str(garbage)) == IN_THE_CLEAR
    assert attempt(peer(sealed), PGSSLMODE="prefer", PGSSLROOTCERT=str(garbage)) == IN_THE_CLEAR


def test_a_list_of_revoked_certificates_that_cannot_be_read_does_not_lead_into_the_clear(
    sealed, authority, attempt, tmp_path
):
    """libpq takes no notice of such a list, and encrypts."""
    damaged = write_private(tmp_path / "damaged.crl", DAMAGED_LIST)
    files = {"PGSSLROOTCERT": str(authority.directory / "ca.crt"), "PGSSLCRL": str(damaged)}
    assert attempt(peer(sealed), PGSSLMODE="prefer", **files) == ENCRYPTED
    assert f'could not read certificate revocation list "{damaged}"' in attempt(PGSSLMODE="prefer", **files)


DAMAGED_LIST = "-----BEGIN X509 CRL-----\nMAMCAQA=\n-----END X509 CRL-----\n"
