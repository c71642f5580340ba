"""Given servers: every way that leads to one, one clear sentence for each that does not, and no password told."""

from __future__ import annotations

import pytest

from pgtrial.loads.data.pgbench_tables import PgbenchTables
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.servers.given import without_password
from pgtrial.servers.server_record import write_down
from pgtrial.servers.settings_record import SettingsRecord
from tests.engine.fake_server import FakeServer, complete, description
from tests.engine.guarded import ADDRESS
from tests.servers.given import PASSWORD, checked, dsn_of, silent, spec_of


@pytest.mark.server
def test_the_password_comes_from_the_environment_and_stays_out_of_everything_written(guarded, workspace, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    arm = checked(spec_of(f"{guarded}?sslpassword=battery"), workspace)
    target = arm.targets[0]
    assert target.environment()["PGPASSWORD"] == PASSWORD
    entry = write_down(SettingsRecord("A", target, {"work_mem": None}, {"work_mem": "8MB"}, [], {}), workspace.root)
    assert "battery" not in entry.read_text() + repr(target)
    entry.unlink()
    written = repr(target) + repr(arm.__dict__) + target.label
    written += "".join(path.read_text() for path in workspace.root.rglob("*.json"))
    assert PASSWORD not in written


@pytest.mark.server
def test_the_password_comes_from_a_password_file(guarded, workspace, tmp_path, monkeypatch):
    passwords = tmp_path / "pgpass"
    passwords.write_text(f"127.0.0.1:*:*:ann:{PASSWORD}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    monkeypatch.delenv("PGPASSWORD", raising=False)
    dsn = guarded.replace("127.0.0.1", "db.example") + "?hostaddr=127.0.0.1&passfile=" + str(passwords)
    passwords.write_text(f"*:*:*:ann:{PASSWORD}\n")
    target = checked(spec_of(dsn), workspace).targets[0]
    assert (target.host, target.name, target.password) == ("127.0.0.1", "db.example", PASSWORD)
    assert checked(spec_of(guarded), workspace).targets[0].password == PASSWORD


@pytest.mark.server
def test_a_wrong_password_is_told_without_repeating_it(guarded, workspace, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "battery staple")
    with pytest.raises(StudyError) as error:
        checked(spec_of(guarded), workspace)
    assert 'password authentication failed for user "ann"' in str(error.value)
    assert str(error.value).endswith("; correct PGPASSWORD; if it has expired, ALTER ROLE ... VALID UNTIL")
    assert "battery staple" not in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.server
def test_a_wrong_password_of_the_dsn_is_to_be_corrected_there(guarded, workspace, monkeypatch):
    monkeypatch.delenv("PGPASSWORD", raising=False)
    with pytest.raises(StudyError, match=r'failed for user "ann"; correct the password in the dsn') as error:
        checked(spec_of(guarded.replace("ann@", "ann:staple@")), workspace)
    assert "staple" not in str(error.value)


@pytest.mark.server
def test_a_password_that_is_changed_in_mid_study_is_told(guarded, workspace, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    arm = checked(spec_of(guarded), workspace)
    with arm.targets[0].connect_as_user() as connection:
        connection.execute("ALTER ROLE ann PASSWORD 'another'")
    with pytest.raises(ArmError, match=r"password authentication failed for user .ann.; correct PGPASSWORD"):
        arm.prepare(PgbenchTables(1), silent)


@pytest.mark.server
def test_a_missing_password_is_told(guarded, workspace, monkeypatch, tmp_path):
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    with pytest.raises(StudyError, match="set PGPASSWORD"):
        checked(spec_of(guarded), workspace)


@pytest.mark.server
def test_a_refused_connection_is_told(workspace, free_port):
    with pytest.raises(StudyError, match="Connection refused; check that the server runs"):
        checked(spec_of(f"host=127.0.0.1 port={free_port} user=ann dbname=x"), workspace)


@pytest.mark.server
def test_a_socket_that_is_not_there_is_told(workspace, tmp_path):
    with pytest.raises(StudyError, match="No such file or directory; check that the server runs"):
        checked(spec_of(f"host={tmp_path} user=ann dbname=x"), workspace)


@pytest.mark.server
@pytest.mark.parametrize(
    ("dsn", "words"),
    [
        ("service=nowhere", r'definition of service "nowhere" not found; add it to ~/.pg_service.conf'),
        ("host=127.0.0.1 port=abc", r'invalid integer value "abc" for connection option "port"; correct the dsn'),
        ("env", r'on socket "/.*\.s\.PGSQL\.\d+": No such file or directory; .* and set PGHOST'),
    ],
)
def test_what_names_no_server_is_told_with_what_to_mend(workspace, dsn, words, tmp_path, monkeypatch):
    monkeypatch.setenv("PGHOST", str(tmp_path))
    with pytest.raises(StudyError, match=words) as error:
        checked(spec_of(dsn), workspace)
    assert "connection is bad" not in str(error.value)


@pytest.mark.server
def test_an_absent_database_is_told(given, workspace):
    with pytest.raises(StudyError, match='database "absent" does not exist; correct the dsn'):
        checked(spec_of(dsn_of(given, dbname="absent")), workspace)


@pytest.mark.server
@pytest.mark.parametrize(
    ("dsn", "words"),
    [
        ("hst=x passwort=geheim", "the dsn is not a connection string"),
        ("host=x password=very geheim", "the dsn is not a connection string"),
        ("postgresql://ann:with@geheim:x@127.0.0.1/db", "more than one @"),
    ],
)
def test_a_dsn_that_is_none_is_told_without_repeating_it(workspace, dsn, words):
    with pytest.raises(StudyError, match=words) as error:
        checked(spec_of(dsn), workspace)
    assert "geheim" not in str(error.value)


@pytest.mark.server
@pytest.mark.parametrize("how", ["PG*", "service file"])
def test_the_server_of_the_environment_is_used(given, workspace, tmp_path, monkeypatch, how):
    address = {"host": str(given.socket_directory), "port": str(given.port), "dbname": "postgres", "user": "postgres"}
    if how == "PG*":
        for name, value in address.items():
            monkeypatch.setenv(f"PG{name.upper().replace('DBNAME', 'DATABASE')}", value)
        dsn = "env"
    else:
        (tmp_path / "services").write_text("[ours]\n" + "".join(f"{key}={value}\n" for key, value in address.items()))
        monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
        dsn = "service=ours"
    target = checked(spec_of(dsn, reset="none"), workspace).targets[0]
    assert (target.host, target.port, target.user) == (address["host"], given.port, "postgres")
    assert "PGSERVICE" not in target.environment()


def test_connection_strings_are_shown_without_secrets():
    shown = without_password("postgresql://ann:geheim@db.example:5433/shop?sslpassword=auchgeheim")
    assert "geheim" not in shown
    assert "host=db.example" in shown
    assert "geheim" not in without_password("nonsense geheim")


@pytest.mark.server
def test_a_version_that_is_too_old_is_named(workspace):
    no_rows = description("a") + complete("SELECT 0")
    with FakeServer(lambda: no_rows, version="9.5.25") as server:
        dsn = f"host={ADDRESS} port={server.port} user=a dbname=a sslmode=disable gssencmode=disable"
        with pytest.raises(StudyError) as error:
            checked(spec_of(dsn), workspace)
    assert str(error.value) == (
        "arms.A: the server is PostgreSQL 9.5.25, but pgtrial needs 9.6 or later; name another server"
    )
