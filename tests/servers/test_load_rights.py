"""A superuser's load on what other roles own is refused before anything is changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgtrial.loads.names import qualified
from pgtrial.loads.target import value
from pgtrial.model.errors import ArmError, StudyError
from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import StudySpec
from pgtrial.servers.arm import Needs
from pgtrial.servers.given_data import data_journal
from tests.conftest import require_engine
from tests.servers.given import checked, dsn_of, execute, silent, spec_of

pytestmark = pytest.mark.server

APP = (
    "CREATE ROLE app LOGIN",
    "GRANT CREATE ON SCHEMA public TO app",
    "SET ROLE app",
    "CREATE TABLE public.invoices AS SELECT 1 AS id, 'c7'::text AS customer",
    "CREATE FUNCTION public.mine() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "RESET ROLE",
)


def with_script(spec: StudySpec, text: str, name: str = "own.sql") -> StudySpec:
    return spec.with_scripts({name: text})


def own(given, text, user="postgres", name="own.sql"):
    return with_script(spec_of(dsn_of(given, user=user), workload=name, reset="none"), text, name)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("SELECT count(*) FROM invoices WHERE customer = 'c7'", "own.sql"),
        ("SELECT public.mine()", "own.sql"),
        ("\\set n 1\nSELECT * FROM invoices_:n", "own.sql"),
        ("SET search_path = app;\nSELECT 1", "own.sql"),
        ("SELECT 1", "own.sql"),
        ("function event() end", "own.lua"),
    ],
)
def test_statements_of_a_user_are_refused_for_a_superuser_where_others_own_anything(given, workspace, text, name):
    """pgtrial does not guess which objects the statements use, since their texts need not name them."""
    execute(given, *APP)
    words = r"^arms\.A: the load would run as postgres, a superuser, .*public\.invoices of app.*user=app$"
    with pytest.raises(StudyError, match=words):
        checked(own(given, text, name=name), workspace)
    checked(own(given, text, user="app", name=name), workspace)


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TYPE app.mood AS ENUM ('ok')",
        "CREATE FUNCTION app.same(int, int) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "CREATE VIEW app.over_it AS SELECT 1 AS id",
    ],
)
def test_any_object_of_another_role_counts(given, workspace, made):
    execute(given, "CREATE ROLE app LOGIN", "CREATE SCHEMA app AUTHORIZATION app")
    checked(own(given, "SELECT 1"), workspace)
    execute(given, "SET ROLE app", made)
    with pytest.raises(StudyError, match=r"a superuser, .*app\..* of app"):
        checked(own(given, "SELECT 1"), workspace)


def test_a_superuser_may_run_what_is_superusers_alone(given, workspace):
    execute(given, "CREATE ROLE other_dba LOGIN SUPERUSER", "CREATE ROLE member LOGIN IN ROLE other_dba")
    execute(given, "CREATE TABLE dbas AS SELECT 1 AS id", "ALTER TABLE dbas OWNER TO other_dba")
    execute(given, "CREATE TABLE members AS SELECT 1 AS id", "ALTER TABLE members OWNER TO member")
    checked(own(given, "SELECT * FROM dbas WHERE id = 1"), workspace)
    execute(given, "CREATE ROLE app LOGIN", "ALTER TABLE dbas OWNER TO app")
    with pytest.raises(StudyError, match=r"a superuser, .*public\.dbas of app"):
        checked(own(given, "SELECT * FROM dbas WHERE id = 1"), workspace)


@pytest.mark.parametrize(
    "granted",
    [
        "GRANT postgres TO dba",
        "CREATE ROLE between IN ROLE postgres; GRANT between TO dba",
        "CREATE ROLE between NOINHERIT IN ROLE postgres; GRANT between TO dba; ALTER ROLE dba NOINHERIT",
        "GRANT pg_execute_server_program TO dba",
        "GRANT pg_write_server_files TO dba",
        "CREATE ROLE between IN ROLE pg_read_server_files; GRANT between TO dba",
    ],
)
def test_a_role_that_may_become_a_superuser_counts_as_one(given, workspace, granted):
    execute(given, *APP, "CREATE ROLE dba LOGIN", "GRANT CREATE ON SCHEMA public TO dba")
    execute(given, "CREATE TABLE dbas AS SELECT 1 AS id", "ALTER TABLE dbas OWNER TO dba")
    checked(own(given, "SELECT * FROM dbas", user="dba"), workspace)
    execute(given, *granted.split("; "))
    with pytest.raises(StudyError, match=r"run as dba, a superuser, .* of app.*user=app$") as refusal:
        checked(own(given, "SELECT * FROM dbas", user="dba"), workspace)
    assert "dbas" not in str(refusal.value)


def test_a_search_path_of_an_arm_makes_pgtrials_own_tables_those_of_others(given, workspace):
    execute(given, *APP)
    checked(spec_of(dsn_of(given)), workspace)
    with pytest.raises(StudyError, match=r"a superuser, .* of app"):
        checked(spec_of(dsn_of(given), {"search_path": "app, public"}), workspace)


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        (
            "CREATE TRIGGER t BEFORE UPDATE ON pgbench_accounts FOR EACH ROW EXECUTE PROCEDURE mine()",
            r"public\.mine\(\)",
        ),
        ("ALTER TABLE pgbench_tellers OWNER TO app", r"public\.pgbench_tellers"),
        ("CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE PROCEDURE ends()", r"public\.ends\(\)"),
        ("ALTER TABLE pgbench_branches ALTER bbalance SET DEFAULT app_default()", r"public\.app_default\(\)"),
        ("CREATE POLICY p ON pgbench_history USING (app_default() = 1)", r"public\.app_default\(\)"),
        (
            "GRANT REFERENCES ON pgbench_branches TO app; SET ROLE app; CREATE TABLE public.hers (bid int REFERENCES "
            "pgbench_branches ON DELETE CASCADE); RESET ROLE",
            r"public\.hers",
        ),
        ("CREATE INDEX ON pgbench_accounts (app_index(abalance))", r"public\.app_index\(integer\)"),
        ("ALTER TABLE pgbench_accounts ADD CHECK (app_index(1) = 1)", r"public\.app_index\(integer\)"),
        ("CREATE RULE r AS ON INSERT TO pgbench_history DO ALSO SELECT app_default()", r"public\.app_default\(\)"),
        ("CREATE DOMAIN one AS int CHECK (app_index(VALUE) = 1)", r"public\.app_index\(integer\)"),
        ("CREATE STATISTICS s ON (app_index(abalance)) FROM pgbench_accounts", r"public\.app_index\(integer\)"),
        (
            "CREATE OPERATOR === (LEFTARG = name, RIGHTARG = int4, PROCEDURE = app_eq)",
            r"public\.app_eq\(name,integer\)",
        ),
        ("CREATE FUNCTION one() RETURNS int LANGUAGE sql RETURN app_index(1)", r"public\.app_index\(integer\)"),
        ("ALTER FUNCTION app_default() RENAME TO sum", r"public\.sum\(\)"),
        (
            "SET ROLE app; CREATE OPERATOR public.= (LEFTARG = name, RIGHTARG = int4, PROCEDURE = app_eq); RESET ROLE",
            r"public\.=\(name,integer\)",
        ),
    ],
)
def test_tables_of_pgbench_on_which_others_have_code_are_refused_in_mid_study(
    given, workspace, tmp_path, statement, named
):
    require_engine()
    execute(
        given,
        *APP,
        "SET ROLE app",
        "CREATE FUNCTION public.app_default() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION public.app_index(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION public.app_eq(name, int) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "RESET ROLE",
        "CREATE FUNCTION ends() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'",
        "ALTER FUNCTION ends() OWNER TO app",
    )
    spec = spec_of(dsn_of(given))
    arm = checked(spec, workspace)
    [data] = Needs.of(Design(spec)).data
    arm.prepare(data, silent)
    with arm.serve(data, tmp_path / "log", {}):
        pass
    execute(given, *statement.split("; "))
    with pytest.raises(ArmError, match=rf"a superuser, .*{named} of app"), arm.serve(data, tmp_path / "log", {}):
        pass
    with pytest.raises(StudyError, match=rf"a superuser, .*{named} of app"):
        checked(spec, workspace)


def test_nothing_is_made_before_the_refusal(given, workspace):
    execute(given, *APP, "ALTER FUNCTION mine() RENAME TO count")
    with pytest.raises(StudyError, match=r"public\.count\(\) of app"):
        checked(spec_of(dsn_of(given)), workspace)
    with given.target.connect() as session:
        assert qualified(session, ["pgbench_accounts"]) == ["pgbench_accounts"]
    assert [
        record for record in data_journal(workspace.state).records() if record.target.host == given.target.host
    ] == []


def test_a_superuser_who_became_another_role_at_login_is_one(given, workspace):
    execute(given, *APP, "CREATE ROLE dba LOGIN SUPERUSER", "ALTER ROLE dba SET role = app")
    with replace(given.target, user="dba").connect() as session:
        assert value(session, "SELECT current_user") == "app"
    with pytest.raises(StudyError, match=r"public\.invoices of app"):
        checked(own(given, "SELECT * FROM invoices", user="dba"), workspace)
