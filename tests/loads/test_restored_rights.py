"""Restores by a role without superuser: no dump runs a program or gains a right; what needs more is made or named."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgtrial.loads.target import Target, value
from pgtrial.model.errors import ArmError
from pgtrial.servers.postmaster import OWNER
from tests.loads.test_restored_dump import dump_of, in_database, pg_dump

pytestmark = pytest.mark.server

FUNCTIONS = """
CREATE SCHEMA app;
CREATE FUNCTION app.second() RETURNS int VOLATILE LANGUAGE plpgsql AS $$ BEGIN
    IF current_database() = 'restored' AND (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
        EXECUTE 'COPY (SELECT 1) TO PROGRAM ''cat > {place}''';
    END IF;
    RETURN 1;
END $$;
CREATE FUNCTION app.first(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN app.second() + $1; END $$;
CREATE FUNCTION app.touched() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM app.second(); RETURN NEW; END $$;
CREATE TABLE app.customers (id int PRIMARY KEY, grown int GENERATED ALWAYS AS (app.first(id)) STORED)
    WITH (autovacuum_enabled = off);
CREATE TRIGGER touch BEFORE INSERT ON app.customers FOR EACH ROW EXECUTE FUNCTION app.touched();
ALTER TABLE app.customers ENABLE ALWAYS TRIGGER touch;
ALTER TABLE app.customers ADD CHECK (app.first(id) > 0);
INSERT INTO app.customers SELECT i FROM generate_series(1, 50) i;
CREATE INDEX customers_first ON app.customers (app.first(id)) WHERE app.first(1) = 2;
CREATE MATERIALIZED VIEW app.seen AS SELECT app.second() AS n FROM app.customers;
CREATE DOMAIN app.small AS int CHECK (app.first(VALUE) > 0);
CREATE TABLE app.sizes (size app.small DEFAULT app.second());
INSERT INTO app.sizes DEFAULT VALUES;
"""
"""A dump with a function of each kind that a restore calls. Run by a superuser in the database `restored`, each
function would run a program.

In the source database pg_dump runs as a superuser, and calls the functions while it plans queries.
"""


@pytest.mark.parametrize("form", ["plain", "inserts", "custom", "tar", "directory"])
def test_no_function_of_a_dump_runs_by_a_superusers_rights(clusters, tmp_path, form):
    target = clusters(18).target
    source, copy = in_database(target, "dumped"), in_database(target, "restored")
    place = Path(str(value_of(target, "SHOW data_directory"))) / f"owner-was-here-{form}"
    with source.connect_as_user() as connection:
        connection.execute(FUNCTIONS.replace("{place}", str(place)))
    path = tmp_path / "shop.dump"
    pg_dump(source, path, "--inserts" if form == "inserts" else f"--format={form}")
    dump_of(path).make(copy, lambda line: None)
    assert not place.exists()
    with copy.connect_as_user() as connection:
        assert value(connection, "SELECT count(*) FROM app.customers") == 50
        assert value(connection, "SELECT count(*) FROM app.seen") == 50
        assert value(connection, "SELECT count(*) FROM pg_class WHERE relname = 'customers_first'") == 1


def value_of(target: Target, query: str) -> object:
    with target.connect_as_user() as connection:
        return value(connection, query)


@pytest.mark.parametrize(
    "text",
    [
        "RESET ROLE; {attack}",
        "RESET SESSION AUTHORIZATION; {attack}",
        "SET SESSION AUTHORIZATION postgres; {attack}",
        "SET ROLE postgres; {attack}",
        "ALTER ROLE pgtrial SUPERUSER; {attack}",
        "GRANT pg_execute_server_program TO pgtrial; {attack}",
        "CREATE ROLE strong SUPERUSER; SET ROLE strong; {attack}",
        "DO $$ BEGIN EXECUTE 'ALTER ROLE pgtrial SUPERUSER'; END $$; {attack}",
        "COPY t FROM PROGRAM '{program}';",
        "CREATE FUNCTION g() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'; "
        "ALTER FUNCTION g() OWNER TO postgres; {attack}",
        "SELECT lo_export(lo_from_bytea(0, 'x'), '{place}');",
        "\\! {program}\n",
        "\\copy t from program '{program}'\n",
        "SELECT pg_read_file('/etc/passwd');",
        "SET dynamic_library_path = '/tmp'; {attack}",
        "SET session_preload_libraries = 'auto_explain'; {attack}",
        "CREATE EXTENSION dblink; SELECT dblink_exec('host={host} port={port} user=postgres', $q${attack}$q$);",
        "CREATE EXTENSION file_fdw; CREATE SERVER f FOREIGN DATA WRAPPER file_fdw; "
        "CREATE FOREIGN TABLE p (n text) SERVER f OPTIONS (program '{program}'); SELECT * FROM p;",
        "CREATE EXTENSION pg_stat_statements; CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION f(); {attack}",
    ],
)
def test_a_file_of_sql_does_not_escape_its_role(clusters, tmp_path, text):
    server = clusters(18).target
    target = in_database(server, "attacked")
    place = Path(str(value_of(server, "SHOW data_directory"))) / "escaped"
    program = f"cat > {place}"
    attack = f"COPY (SELECT 1) TO PROGRAM '{program}';"
    filled = (
        text.replace("{attack}", attack)
        .replace("{program}", program)
        .replace("{place}", str(place))
        .replace("{host}", server.host)
        .replace("{port}", str(server.port))
    )
    path = tmp_path / "attack.sql"
    path.write_text(f"CREATE TABLE t (n text);\n{filled}\n")
    with pytest.raises(ArmError, match=r"permission denied|must be|is a command of psql|password|Only roles"):
        dump_of(path).make(target, lambda line: None)
    assert not place.exists()
    with server.connect_as_user() as connection:
        assert value(connection, f"SELECT rolsuper FROM pg_roles WHERE rolname = '{OWNER}'") is False
        members = connection.execute(
            f"SELECT r.rolname FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid "
            f"WHERE m.member = '{OWNER}'::regrole AND r.rolname LIKE 'pg\\_%'"
        ).fetchall()
        assert {name for (name,) in members} == {"pg_monitor", "pg_checkpoint"}


def test_a_function_that_fails_where_tables_are_analysed_is_told_with_the_words_of_postgresql(clusters, tmp_path):
    """The session is a superuser's there, which a function sees though it has the rights of its table's owner."""
    target = in_database(clusters(18).target, "analysed")
    path = tmp_path / "shop.sql"
    path.write_text("""
        CREATE FUNCTION public.picky(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
            IF pg_catalog.current_setting('is_superuser') = 'on' THEN RAISE EXCEPTION 'not by you'; END IF;
            RETURN $1;
        END $$;
        CREATE TABLE public.t AS SELECT generate_series(1, 100) AS id;
        CREATE INDEX ON public.t (public.picky(id));
    """)
    words = r"^the dump shop\.sql is restored, but VACUUM \(FREEZE, ANALYZE\) failed: PostgreSQL says: not by you"
    with pytest.raises(ArmError, match=words):
        dump_of(path).make(target, lambda line: None)


def test_roles_that_a_block_makes_unless_they_exist_are_made_first(clusters, tmp_path):
    target = clusters(18).target
    copy, path = in_database(target, "restored"), tmp_path / "shop.sql"
    path.write_text("""
        DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'block_reader') THEN
                CREATE ROLE block_reader LOGIN PASSWORD 'x';
            END IF;
        END $$;
        CREATE TABLE item (id int);
        GRANT SELECT ON item TO block_reader;
    """)
    try:
        told = dump_of(path).make(copy, lambda line: None)
        assert told == ["the dump shop.sql names the role block_reader, which pgtrial created here without login"]
        with copy.connect_as_user() as session:
            assert value(session, "SELECT has_table_privilege('block_reader', 'item', 'SELECT')") is True
    finally:
        in_database(target, "restored")
        with target.connect_as_user() as session:
            session.execute("DROP ROLE IF EXISTS block_reader")


SHOP = """
CREATE ROLE shop_reader; CREATE ROLE shop_owner; CREATE ROLE "Shop Boss";
CREATE SCHEMA extensions;
CREATE EXTENSION pg_trgm WITH SCHEMA extensions;
CREATE EXTENSION citext;
COMMENT ON EXTENSION citext IS 'changed';
CREATE TABLE item (id int PRIMARY KEY, name citext, parent int);
INSERT INTO item SELECT i, 'n' || i, 61 - i FROM generate_series(1, 60) i;
ALTER TABLE item ADD FOREIGN KEY (parent) REFERENCES item;
CREATE INDEX ON item USING gin ((name::text) extensions.gin_trgm_ops);
ALTER TABLE item OWNER TO shop_owner;
ALTER TABLE item ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON item FOR SELECT TO shop_reader USING (name = current_user::text::citext);
GRANT SELECT ON item TO shop_reader;
GRANT EXECUTE ON FUNCTION extensions.show_trgm(text) TO shop_reader;
ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO "Shop Boss";
CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
CREATE EVENT TRIGGER guard ON ddl_command_end EXECUTE FUNCTION refuse();
CREATE PUBLICATION every_table FOR ALL TABLES;
CREATE PUBLICATION items FOR TABLE item;
"""
ROLES = ("shop_reader", "shop_owner", '"Shop Boss"')


@pytest.mark.parametrize("form", ["plain", "custom", "data alone"])
def test_roles_and_extensions_are_made_first_and_what_is_left_out_is_named(clusters, tmp_path, form):
    target = clusters(18).target
    source, copy = in_database(target, "dumped"), in_database(target, "restored")
    path = tmp_path / "shop.dump"
    with source.connect_as_user() as connection:
        connection.execute(SHOP)
    pg_dump(source, path, f"--format={'custom' if form == 'custom' else 'plain'}")
    dumps = [path]
    if form == "data alone":
        schema, rows = tmp_path / "schema.sql", tmp_path / "rows.sql"
        pg_dump(source, schema, "--schema-only")
        pg_dump(source, rows, "--data-only", "--disable-triggers")
        dumps = [schema, rows]
    with source.connect_as_user() as connection:
        connection.execute("DROP EVENT TRIGGER guard")
    in_database(target, "dumped")
    with target.connect_as_user() as connection:
        for role in ROLES:
            connection.execute(f"DROP ROLE {role}")
    try:
        whole = dump_of(path)
        told = type(whole)(whole.sha256, whole.size, tuple(dumps), whole.name).make(copy, lambda line: None)
        assert told[0].startswith("the dump shop.dump names the roles ")
        assert {"shop_reader", "Shop Boss"} <= set(
            told[0].removesuffix(", which pgtrial created here without login").replace("roles ", "roles, ").split(", ")
        )
        [left_out] = told[1:]
        assert "the event trigger guard" in left_out
        assert "the publication every_table" in left_out
        assert left_out.endswith(" are left out, since pgtrial restores data as a role without superuser rights")
        with copy.connect_as_user() as connection:
            rows = connection.execute("SELECT count(*), max(parent) FROM item").fetchone()
            assert rows == (60, 60)
            assert value(connection, "SELECT relowner::regrole::text FROM pg_class WHERE relname = 'item'") == OWNER
            assert (
                value(connection, "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'pg_trgm'")
                == "extensions"
            )
            assert value(connection, "SELECT count(*) FROM pg_event_trigger") == 0
            assert connection.execute("SELECT pubname FROM pg_publication").fetchall() == [("items",)]
            assert (
                value(connection, "SELECT bool_or(rolcanlogin OR rolsuper) FROM pg_roles WHERE rolname ILIKE 'shop%'")
                is False
            )
        with copy.connect_as_load() as connection:
            connection.execute("SET ROLE shop_reader")
            assert value(connection, "SELECT count(*) FROM item") == 0, "the policy is in force"
    finally:
        in_database(target, "restored")
        with target.connect_as_user() as connection:
            for role in ROLES:
                connection.execute(f"DROP ROLE IF EXISTS {role}")
