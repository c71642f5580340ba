"""TLS on the engine's connections: what each sslmode accepts, with a server and certificates made for the test."""

from __future__ import annotations

import select
import shutil
import socket
import ssl
import subprocess
import threading

import pytest

from tests.conftest import require, require_server
from tests.engine.guarded import ADDRESS, PASSWORD, run, serving, variables, write_private
from tests.engine.programs import Program, ours

pytestmark = pytest.mark.server


HBA = """
hostssl all certy 127.0.0.1/32 cert
hostssl all loader 127.0.0.1/32 trust
hostssl all sealed 127.0.0.1/32 scram-sha-256
hostnossl all open 127.0.0.1/32 trust
host all either 127.0.0.1/32 trust
"""
HOST = "db.example"
SHORT = ("-n", "-S", "-t", "2", "-c", "2")


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """Returns a directory with two authorities, and a server's and a client's certificate from the first."""
    require(shutil.which("openssl"), "the openssl command")
    directory = tmp_path_factory.mktemp("authority")

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=directory, check=True, capture_output=True)

    def issue(name, subject):
        openssl(
            "req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", subject
        )
        chain = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2")
        openssl("x509", "-req", "-in", f"{name}.csr", *chain, "-out", f"{name}.crt")

    for name in ("ca", "other"):
        files = ("-keyout", f"{name}.key", "-out", f"{name}.crt")
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", *files, "-days", "2", "-subj", f"/CN={name}")
    issue("server", f"/CN={HOST}")
    issue("client", "/CN=certy")
    return directory


@pytest.fixture(scope="module")
def sealed(workspace, authority):
    """A server of Debian's PostgreSQL 15 with TLS (the wheels have none), loaded at scale 1."""
    server = require_server(15)
    configured = subprocess.run([server.bin / "pg_config", "--configure"], capture_output=True, text=True, check=False)
    require("openssl" in configured.stdout, "a PostgreSQL 15 with OpenSSL")

    def install(cluster):
        for name in ("ca.crt", "server.crt", "server.key"):
            path = write_private(cluster.data_directory / name, (authority / name).read_text())
            cluster.run_directory.own(path)

    settings = {"ssl": "on", "ssl_ca_file": "ca.crt"}
    with serving(workspace, 15, HBA, settings, install) as cluster:
        with cluster.target.connect_as_user() as connection:
            for role in ("certy", "sealed", "open", "either"):
                connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}' IN ROLE pg_read_all_data")
            connection.execute("CREATE ROLE loader LOGIN SUPERUSER")
        ours().load(cluster.target)
        yield cluster


def attempt(cluster, user, program=None, **env):
    """Runs a short load over TCP; returns an empty text if it went well, else its messages."""
    done = run(program or ours(), *SHORT, **variables(cluster, user, PGPASSWORD=PASSWORD, **env))
    assert (done.status == 0) == (not done.stderr), done.stderr
    return done.stderr


def peer(cluster):
    """Returns the server's own pgbench, which has TLS."""
    return Program("original", (str(cluster.server.bin / "pgbench"),))


def test_each_mode_encrypts_when_it_says(sealed):
    taken = {
        (user, mode): attempt(sealed, user, PGSSLMODE=mode) == ""
        for user in ("sealed", "open")
        for mode in ("disable", "allow", "prefer", "require")
    }
    assert [mode for (user, mode), well in taken.items() if user == "sealed" and well] == ["allow", "prefer", "require"]
    assert [mode for (user, mode), well in taken.items() if user == "open" and well] == ["disable", "allow", "prefer"]


def test_the_modes_that_verify_want_the_right_authority_and_the_last_the_right_name(sealed, authority):
    named = {"PGHOST": HOST, "PGHOSTADDR": ADDRESS}
    right, wrong = ({"PGSSLROOTCERT": str(authority / f"{name}.crt")} for name in ("ca", "other"))
    assert attempt(sealed, "either", PGSSLMODE="verify-ca", **right) == ""
    assert attempt(sealed, "either", PGSSLMODE="verify-full", **right, **named) == ""
    refused = {
        "a wrong authority": {"PGSSLMODE": "verify-ca", **wrong},
        "a wrong authority of the right name": {"PGSSLMODE": "verify-full", **wrong, **named},
        "a wrong authority where none is asked for": {"PGSSLMODE": "require", **wrong},
        "a wrong name": {"PGSSLMODE": "verify-full", **right},
        "no name": {"PGSSLMODE": "verify-full", **right, "PGHOST": "", "PGHOSTADDR": ADDRESS},
    }
    assert attempt(sealed, "either", PGSSLMODE="verify-ca", **right, PGHOST="", PGHOSTADDR=ADDRESS) == ""
    assert attempt(sealed, "either", PGSSLMODE="verify-ca", **right, PGHOST="127.1") == ""
    for case, env in refused.items():
        said = attempt(sealed, "either", **env)
        assert said == attempt(sealed, "either", peer(sealed), **env) != "", case


def test_a_directory_without_lists_of_revoked_certificates_is_no_proof(sealed, authority, tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("empty", "missing"):
        env = {"PGSSLROOTCERT": str(authority / "ca.crt"), "PGSSLCRLDIR": str(tmp_path / name)}
        for mode in ("require", "verify-ca"):
            for program in (ours(), peer(sealed)):
                assert "certificate verify failed" in attempt(sealed, "either", program, PGSSLMODE=mode, **env)


def test_no_authority_at_all_is_an_error_of_the_modes_that_verify_only(sealed, tmp_path):
    assert attempt(sealed, "either", PGSSLMODE="require", HOME=str(tmp_path)) == ""
    said = attempt(sealed, "either", PGSSLMODE="verify-ca", HOME=str(tmp_path))
    assert f'root certificate file "{tmp_path}/.postgresql/root.crt" does not exist' in said


def test_files_that_cannot_be_used_matter_only_where_encryption_is_demanded(sealed, tmp_path):
    nonsense = tmp_path / "nonsense.crt"
    nonsense.write_text("no certificate\n")
    for mode in ("allow", "prefer"):
        assert attempt(sealed, "open", PGSSLMODE=mode, PGSSLROOTCERT=str(nonsense)) == ""
    said = attempt(sealed, "either", PGSSLMODE="require", PGSSLROOTCERT=str(nonsense))
    assert f'could not read root certificate file "{nonsense}"' in said


def test_scram_is_bound_to_the_channel(sealed):
    assert attempt(sealed, "sealed", PGSSLMODE="require", PGCHANNELBINDING="require") == ""
    assert attempt(sealed, "sealed", PGSSLMODE="require", PGCHANNELBINDING="disable") == ""
    env = {"PGSSLMODE": "require", "PGCHANNELBINDING": "require"}
    assert attempt(sealed, "either", **env) == attempt(sealed, "either", peer(sealed), **env) != ""


def test_a_client_certificate_lets_its_owner_in(sealed, authority):
    certificate, key = authority / "client.crt", authority / "client.key"
    key.chmod(0o600)
    env = {"PGSSLMODE": "require", "PGSSLCERT": str(certificate), "PGSSLKEY": str(key)}
    assert attempt(sealed, "certy", **env) == ""
    assert "key values mismatch" in attempt(sealed, "certy", **{**env, "PGSSLKEY": str(authority / "other.key")})
    key.chmod(0o644)
    assert "has group or world access" in attempt(sealed, "certy", **env)


def test_tables_are_made_and_the_load_runs_over_tls(sealed):
    made = run(ours(), "-i", "-q", "-s", "2", **variables(sealed, "loader", PGSSLMODE="require"))
    assert made.status == 0, made.stderr
    done = run(
        ours(), "-n", "-S", "-t", "50", "-c", "4", "-C", "-M", "prepared",
        **variables(sealed, "sealed", PGPASSWORD=PASSWORD, PGSSLMODE="require"),
    )  # fmt: skip
    assert (done.status, done.stderr) == (0, "")
    assert "number of transactions actually processed: 200/200" in done.stdout


@pytest.mark.parametrize("protocols", [["postgresql"], []], ids=["agreed", "not agreed"])
def test_tls_starts_at_once_if_asked_to_and_the_protocol_is_agreed_on(sealed, authority, protocols):
    with TlsDoor(sealed, authority, protocols) as port:
        env = {"PGPORT": str(port), "PGSSLMODE": "require", "PGSSLNEGOTIATION": "direct"}
        said = attempt(sealed, "postgres", **env)
    if protocols:
        assert said == ""
    else:
        assert "direct SSL connection was established without ALPN protocol negotiation extension" in said


@pytest.fixture(scope="module")
def self_signed(workspace, tmp_path_factory):
    """Yields a server with a self-signed certificate, and a directory with lists of revoked certificates: an empty one,
    one that contains the certificate, an outdated one, and those of another certificate.
    """
    require(shutil.which("openssl"), "the openssl command")
    directory = tmp_path_factory.mktemp("self-signed")

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=directory, check=True, capture_output=True)

    for name in ("server", "other"):
        files = ("-keyout", f"{name}.key", "-out", f"{name}.crt")
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", *files, "-days", "2", "-subj", f"/CN={name}")
        (directory / f"{name}.index").touch()
        (directory / f"{name}.number").write_text("01\n")
        (directory / f"{name}.cnf").write_text(
            f"[ca]\ndefault_ca=x\n[x]\ndatabase={name}.index\ncrlnumber={name}.number\ndefault_md=sha256\n"
            "default_crl_days=2\ncrl_extensions=version_2\n[version_2]\nauthorityKeyIdentifier=keyid\n"
        )
        who = ("-config", f"{name}.cnf", "-keyfile", f"{name}.key", "-cert", f"{name}.crt")
        openssl("ca", *who, "-gencrl", "-out", f"{name}-empty.crl")
        openssl("ca", *who, "-revoke", f"{name}.crt")
        openssl("ca", *who, "-gencrl", "-out", f"{name}-revoked.crl")
        openssl("ca", *who, "-gencrl", "-crl_lastupdate", "200101000000Z", "-crl_nextupdate", "200102000000Z",
                "-out", f"{name}-old.crl")  # fmt: skip

    def install(cluster):
        for name in ("server.crt", "server.key"):
            cluster.run_directory.own(write_private(cluster.data_directory / name, (directory / name).read_text()))

    with serving(workspace, 15, "hostssl all postgres 127.0.0.1/32 trust\n", {"ssl": "on"}, install) as cluster:
        yield cluster, directory


@pytest.mark.parametrize(
    ("lists", "is_taken"),
    [(None, True), ("server-empty", True), ("server-revoked", False), ("server-old", False), ("other-empty", False)],
)
def test_a_self_signed_certificate_is_judged_by_its_own_list(self_signed, tmp_path, lists, is_taken):
    cluster, directory = self_signed
    script = write_private(tmp_path / "script.sql", "SELECT 1;\n")
    env = {"PGSSLMODE": "verify-ca", "PGSSLROOTCERT": str(directory / "server.crt")}
    env["PGSSLCRL"] = str(directory / f"{lists or 'no'}.crl")
    said = []
    for program in (peer(cluster), ours()):
        done = run(program, "-n", "-f", str(script), "-t", "1", **variables(cluster, "postgres", **env))
        assert (done.status == 0) == is_taken, done.stderr
        said.append(done.stderr)
    assert said[1] == said[0]


@pytest.mark.parametrize(("lists", "is_taken"), [("server-empty", True), ("server-revoked", False)])
def test_lists_may_lie_in_one_of_several_directories(self_signed, tmp_path, lists, is_taken):
    cluster, directory = self_signed
    script = write_private(tmp_path / "script.sql", "SELECT 1;\n")
    source = directory / f"{lists}.crl"
    command = ["openssl", "crl", "-hash", "-noout", "-in", str(source)]
    name = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    (tmp_path / "lists").mkdir()
    shutil.copy(source, tmp_path / "lists" / f"{name}.r0")
    env = {"PGSSLMODE": "verify-ca", "PGSSLROOTCERT": str(directory / "server.crt")}
    env["PGSSLCRLDIR"] = f"{tmp_path}/none:{tmp_path}/lists"
    for program in (peer(cluster), ours()):
        done = run(program, "-n", "-f", str(script), "-t", "1", **variables(cluster, "postgres", **env))
        assert (done.status == 0) == is_taken, done.stderr


class TlsDoor:
    """A door with TLS, as servers from 17 on have it, in front of a cluster's socket."""

    def __init__(self, cluster, authority, protocols):
        self._socket_file = str(cluster.socket_directory / f".s.PGSQL.{cluster.port}")
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(authority / "server.crt", authority / "server.key")
        if protocols:
            self._context.set_alpn_protocols(protocols)
        self._listener = socket.create_server((ADDRESS, 0))

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self._listener.getsockname()[1]

    def __exit__(self, *error):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain):
        try:
            with socket.socket(socket.AF_UNIX) as server, self._context.wrap_socket(plain, server_side=True) as client:
                server.connect(self._socket_file)
                while _forward(client, server):
                    pass
        except OSError:  # the test's program hangs up as it likes
            return


def _forward(client, server):
    """Pass on what one of them says; false when one has ended."""
    ready = [client] if client.pending() else select.select([client, server], [], [])[0]
    for source in ready:
        piece = source.recv(65536)
        if not piece:
            return False
        (server if source is client else client).sendall(piece)
    return True
