"""The rows of tables as digests: equal for equal rows on all versions, and other ones for one value that differs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgtrial.loads.data.kinds import NO_TABLES
from pgtrial.loads.data.named_relations import changed_in
from pgtrial.loads.data.table_rows import read_as_whole, rows_of, sample_keys, tables_of
from tests.conftest import OLD_VERSIONS, VERSIONS

pytestmark = pytest.mark.server

MANY_TYPES = """
CREATE SCHEMA "Odd%";
CREATE TYPE "Odd%".mood AS ENUM ('sad', 'it''s fine');
CREATE DOMAIN positive AS numeric CHECK (VALUE > 0);
CREATE TABLE "Odd%".everything ("Id%" int PRIMARY KEY, "Odd ""name" text, r float4, d float8, n positive, m money,
    at timestamptz, day date, span interval, b bytea, j jsonb, plain json, tags text[], feeling "Odd%".mood,
    pair point, net inet, bits bit(5), vector tsvector, range int4range, id uuid, fixed char(7));
INSERT INTO "Odd%".everything SELECT i, 'grüße ' || i, i / 7.0, i * 0.1 + 0.2, i + 0.50, i::numeric::money,
    timestamptz '2026-03-29 00:30:00+00' + i * interval '1h', date '2000-01-01' + i, i * interval '1 day 1 second',
    decode(md5(i::text), 'hex'), json_build_object('a', i, 'b', array[i, NULL])::jsonb, '{"z":  1, "a": 2}',
    array['x', NULL, 'a,"b'], CASE i % 3 WHEN 0 THEN 'sad' WHEN 1 THEN 'it''s fine' END::"Odd%".mood,
    point(i, i / 3.0), '10.0.0.1/24', '10101', to_tsvector('simple', 'a b ' || i),
    int4range(i, i + 5), md5(i::text)::uuid, 'c' || i
    FROM generate_series(1, 300) AS g (i) ORDER BY g.{order};
"""
"""A table of many types; `{order}` is the order in which the rows are written."""
GENERATED = """CREATE TABLE made (a int, twice int GENERATED ALWAYS AS (a * 2) STORED);
    INSERT INTO made SELECT generate_series(1, 50);"""


def many_types(order):
    return MANY_TYPES.replace("{order}", order)


@pytest.fixture
def database(clusters):
    """Yields a function that makes a database on the server of a version and returns it. Its settings differ as much as
    possible from those that the comparison of rows sets.
    """
    made = []

    def make(major, sql, encoding="UTF8"):
        target = clusters(major).target
        name = f"rows_{major}_{len(made)}"
        with target.connect_as_user() as session:
            session.execute(f"DROP DATABASE IF EXISTS {name}")
            session.execute(
                f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"
            )
            for setting in ("datestyle = 'German'", "timezone = 'Asia/Tokyo'", "bytea_output = 'escape'"):
                session.execute(f"ALTER DATABASE {name} SET {setting}")
        there = replace(target, dbname=name)
        made.append(there)
        with there.connect_as_user() as session:
            session.execute(sql)
        return there

    yield make
    for target in made:
        with replace(target, dbname="postgres").connect_as_user() as session:
            session.execute(f"DROP DATABASE {target.dbname}")


def rows_by_name(target, **options):
    with target.for_load.connect() as session:
        return {table.label: rows_of(session, table, **options) for table in all_tables(session)}


def all_tables(session):
    names = ["everything", "made", "plain", "keyed", "other", "heap"]
    return tables_of(session, NO_TABLES, names)


@pytest.mark.parametrize("major", [*OLD_VERSIONS, *VERSIONS[:-1]])
def test_equal_rows_of_all_types_are_equal_on_all_versions(database, major):
    generated = GENERATED if major >= 12 else ""
    here = rows_by_name(database(18, many_types("i") + generated))
    there = rows_by_name(database(major, many_types("i DESC") + generated))
    assert here["Odd%.everything"].rows == 300
    assert here == there
    assert len({found.digest for found in here.values()}) == len(here)


def test_equal_rows_are_equal_in_another_encoding(database):
    sql = "CREATE TABLE plain (a text); INSERT INTO plain SELECT 'grüße ' || i FROM generate_series(1, 20) AS i;"
    assert rows_by_name(database(18, sql)) == rows_by_name(database(18, sql, encoding="LATIN1"))


def test_one_value_that_differs_is_found_and_its_column_is_named(database):
    first = database(18, many_types("i"))
    changed = database(18, many_types("i") + """UPDATE "Odd%".everything SET d = d + 1 WHERE "Id%" = 77;""")
    [one], [other] = rows_by_name(first).values(), rows_by_name(changed).values()
    assert one.rows == other.rows == 300
    assert one.digest != other.digest
    [one], [other] = (rows_by_name(target, by_column=True).values() for target in (first, changed))
    assert [name for name in one.columns if one.columns[name] != other.columns[name]] == ["d"]


def test_columns_in_another_order_are_the_same_rows_and_values_in_other_rows_are_not(database):
    sql = "CREATE TABLE plain (a int, b int); INSERT INTO plain SELECT i, i % 3 FROM generate_series(1, 9) AS i;"
    turned = "CREATE TABLE plain (b int, a int); INSERT INTO plain SELECT i % 3, i FROM generate_series(1, 9) AS i;"
    mixed = sql + "UPDATE plain SET b = CASE b WHEN 1 THEN 2 WHEN 2 THEN 1 ELSE 0 END;"
    [found], [same], [other] = (rows_by_name(database(18, text)).values() for text in (sql, turned, mixed))
    assert found == same
    assert found.digest != other.digest


@pytest.mark.parametrize("major", [10, 18])
def test_large_objects_are_compared_by_their_content_and_not_by_their_oids(database, major):
    sql = """CREATE DOMAIN lo AS oid; CREATE TABLE plain (id int, content lo, kind oid);
        INSERT INTO plain SELECT i, lo_from_bytea(0, ('{}' || i)::bytea), 'int4'::regtype
            FROM generate_series(1, 3) i;"""
    first, same, other = (database(major, sql.format(text)) for text in ("a", "a", "b"))
    oids = "SELECT array_agg(content::oid) FROM plain"
    with first.connect_as_user() as one, same.connect_as_user() as two:
        assert one.execute(oids).fetchone() != two.execute(oids).fetchone()
    assert rows_by_name(first) == rows_by_name(same)
    [one], [two] = (rows_by_name(target, by_column=True).values() for target in (first, other))
    assert [name for name in one.columns if one.columns[name] != two.columns[name]] == ["content"]


@pytest.mark.parametrize("major", [10, 18])
def test_a_large_table_is_compared_by_a_sample_of_its_keys(database, monkeypatch, major):
    monkeypatch.setattr("pgtrial.loads.data.table_rows.WHOLE_BYTES", 50_000)
    sql = """CREATE TABLE keyed (a int, "b%" text, v text, PRIMARY KEY ("b%", a));
        INSERT INTO keyed SELECT i, 'k' || i, repeat('x', 50) FROM generate_series(1, 3000) AS g (i) ORDER BY g.{order};
        CREATE TABLE heap (v text); INSERT INTO heap SELECT repeat('x', 500) FROM generate_series(1, 300);
        CREATE TABLE other (n int); INSERT INTO other VALUES (1); ANALYZE;"""
    first = database(18, sql.format(order="i"))
    places = [first, database(major, sql.format(order="i DESC"))]
    places.append(database(18, sql.format(order="i") + "UPDATE keyed SET v = 'y';"))
    found = []
    with first.for_load.connect() as session:
        tables = {table.label: table for table in all_tables(session)}
        assert [table.label for table in read_as_whole(list(tables.values()))] == ["public.other"]
        keys = sample_keys(session, tables["public.keyed"], seed=7)
        assert sample_keys(session, tables["public.heap"], seed=7) is None
    assert keys is not None
    for place in places:
        with place.for_load.connect() as session:
            [table] = [one for one in all_tables(session) if one.name == "keyed"]
            found.append(rows_of(session, table, keys))
    assert found[0].sample == found[0].rows == len(keys[0]) > 1000
    assert found[0] == found[1]
    assert found[0].digest != found[2].digest


def test_tables_are_named_by_the_load_also_through_views_and_functions(database):
    target = database(
        18,
        """CREATE TABLE plain (a int); CREATE TABLE keyed (a int); CREATE TABLE other (a int);
        CREATE TABLE heap (a int);
        CREATE VIEW seen AS SELECT * FROM keyed;
        CREATE FUNCTION asked() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM other JOIN seen USING (a)';""",
    )
    with target.for_load.connect() as session:
        assert {one.name for one in tables_of(session, NO_TABLES, ["SELECT asked()"])} == {"other", "keyed"}
        assert {one.name for one in tables_of(session, NO_TABLES, ["SELECT * FROM Plain"])} == {"plain"}
        assert tables_of(session, NO_TABLES, []) == []


def test_what_a_role_may_not_read_is_unknown(database):
    target = database(18, "CREATE TABLE plain (a int); DROP ROLE IF EXISTS nosy; CREATE ROLE nosy LOGIN;")
    nosy = replace(target, user="nosy", password=None, owner=None)
    [found] = rows_by_name(nosy).values()
    assert found.rows is None
    assert found.digest is None
    assert found.unread == "permission denied for table plain"


def test_texts_say_which_tables_they_change():
    texts = [
        "COPY g (n) FROM '/tmp/g'; COPY h TO '/tmp/h'",
        "insert into a values (1)",
        'UPDATE ONLY s."B.b" SET x = 1; delete from C',
        'INSERT INTO "order-items" VALUES (1)',
        "SELECT * FROM d FOR UPDATE",
    ]
    assert changed_in([*texts, "CREATE TABLE IF NOT EXISTS e (n int)"]) == {"a", "B.b", "c", "e", "g", "order-items"}


def used(session, text):
    return {one.name for one in tables_of(session, NO_TABLES, [text])}


def test_what_the_load_uses_is_found_by_dependencies_and_by_names_that_are_no_words(database):
    target = database(
        18,
        """CREATE TABLE plain (a int); CREATE TABLE keyed (a int); CREATE TABLE other (a int);
        CREATE TABLE "order-items" (a int); CREATE TABLE log (a int);
        CREATE TABLE children () INHERITS (other);
        CREATE FUNCTION atomic() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT count(*) FROM plain; END;
        CREATE VIEW seen AS SELECT atomic() AS n, a FROM keyed;
        CREATE FUNCTION asked() RETURNS bigint LANGUAGE plpgsql AS
            $$ BEGIN EXECUTE format('SELECT n FROM %I', 'seen'); RETURN 1; END $$;
        CREATE FUNCTION writes() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO log VALUES (1); RETURN NULL; END $$;
        CREATE TRIGGER logged AFTER INSERT ON keyed EXECUTE FUNCTION writes();""",
    )
    with target.for_load.connect() as session:
        assert used(session, "SELECT atomic()") == {"plain"}
        assert used(session, "SELECT asked()") == {"plain", "keyed"}
        assert used(session, 'SELECT * FROM "order-items"') == {"order-items"}
        assert used(session, "SELECT * FROM other") == {"other", "children"}
        assert used(session, "SELECT * FROM keyed") == {"keyed"}
        found = tables_of(session, NO_TABLES, ["INSERT INTO keyed VALUES (1); SELECT * FROM plain"])
        assert {one.name: one.is_changed for one in found} == {"keyed": True, "log": True, "plain": False}


@pytest.mark.parametrize("major", [10, 18])
def test_a_table_with_partitions_has_the_rows_of_one_without(database, major):
    rows = "INSERT INTO everything SELECT i, 'x' || i FROM generate_series(1, 90) AS i;"
    parts = """CREATE TABLE everything (a int, b text) PARTITION BY RANGE (a);
        CREATE TABLE low PARTITION OF everything FOR VALUES FROM (1) TO (50);
        CREATE TABLE high PARTITION OF everything FOR VALUES FROM (50) TO (1000) PARTITION BY RANGE (a);
        CREATE TABLE highest PARTITION OF high FOR VALUES FROM (50) TO (1000);"""
    whole = database(18, "CREATE TABLE everything (a int, b text);" + rows)
    divided = database(major, parts + rows)
    changed = database(18, parts + rows + "UPDATE everything SET b = 'y' WHERE a = 77;")
    one, same, other = (rows_by_name(target) for target in (whole, divided, changed))
    assert one == same
    assert one["public.everything"].rows == 90
    assert other.keys() == one.keys()
    assert other != one
    with divided.for_load.connect() as session:
        [found] = all_tables(session)
        assert found.bytes_on_disk > 0
        assert used(session, "SELECT * FROM high") == {"high"}
        assert used(session, "SELECT * FROM low") == {"low"}


def test_a_materialized_view_has_rows_of_its_own(database):
    sql = "CREATE TABLE plain (a int); {early} CREATE MATERIALIZED VIEW made AS SELECT * FROM plain; {late}"
    fill = "INSERT INTO plain VALUES (1), (2);"
    fresh, stale = database(18, sql.format(early=fill, late="")), database(18, sql.format(early="", late=fill))
    one, other = rows_by_name(fresh), rows_by_name(stale)
    assert one["public.plain"] == other["public.plain"]
    assert (one["public.made"].rows, other["public.made"].rows) == (2, 0)


def test_rows_that_policies_hide_are_told(database):
    target = database(
        18,
        """CREATE TABLE plain (a int); INSERT INTO plain VALUES (1), (2); ALTER TABLE plain ENABLE ROW LEVEL SECURITY;
        CREATE POLICY one ON plain USING (a = 1); DROP ROLE IF EXISTS nosy; CREATE ROLE nosy LOGIN;
        GRANT SELECT ON plain TO nosy;""",
    )
    [found] = rows_by_name(replace(target, user="nosy", password=None, owner=None)).values()
    assert (found.rows, found.has_policies) == (1, True)
    [found] = rows_by_name(target).values()
    assert (found.rows, found.has_policies) == (2, False)


def test_rows_without_columns_are_counted(database):
    [found] = rows_by_name(database(18, "CREATE TABLE plain (); INSERT INTO plain DEFAULT VALUES;")).values()
    assert found.rows == 1
    assert found.digest is not None
