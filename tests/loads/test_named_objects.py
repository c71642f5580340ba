"""The names of what statements create and drop."""

from __future__ import annotations

import pytest

from pgtrial.loads.named_objects import Named, dropped, made, names_of_job, only_drops


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("CREATE INDEX orders_k ON app.orders (customer)", [Named("relation", "app.orders_k")]),
        ('create unique index concurrently if not exists "K 1" on only t (a)', [Named("relation", '"K 1"')]),
        ("CREATE INDEX ON orders (a)", []),
        ("CREATE UNLOGGED TABLE IF NOT EXISTS app . t (a int)", [Named("relation", "app . t")]),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1", [Named("relation", "v")]),
        ("CREATE TEMP TABLE t ()", []),
        ("SELECT 1 AS a INTO made", [Named("relation", "made")]),
        ("SELECT 1", []),
        ("ALTER TABLE app.t RENAME TO u", [Named("relation", "app.u")]),
        (
            "ALTER TABLE t ADD COLUMN a int, ADD IF NOT EXISTS b int, ADD CONSTRAINT c CHECK (a > 0)",
            [Named("column", "a", "t"), Named("column", "b", "t"), Named("constraint", "c", "t")],
        ),
        ("ALTER TABLE t ADD PRIMARY KEY (id)", []),
        ("CREATE SCHEMA s", [Named("schema", "s")]),
        ("CREATE OR REPLACE FUNCTION f(i int) RETURNS int LANGUAGE sql AS ''", [Named("routine", "f")]),
        ("CREATE AGGREGATE total(int) (SFUNC = f, STYPE = int)", [Named("routine", "total")]),
        ("CREATE STATISTICS IF NOT EXISTS app.s ON a, b FROM t", [Named("statistics", "app.s")]),
        ("CREATE STATISTICS ON a, b FROM t", []),
        ("CREATE STATISTICS (ndistinct) ON a, b FROM t", []),
        (
            "CREATE OR REPLACE TRIGGER stamped BEFORE UPDATE OF a ON app.t EXECUTE FUNCTION f()",
            [Named("trigger", "stamped", "app.t")],
        ),
        ("CREATE RULE r AS ON INSERT TO t DO NOTHING", [Named("rule", "r", "t")]),
        ("CREATE POLICY p ON t USING (true)", [Named("policy", "p", "t")]),
        ("CREATE TEXT  SEARCH CONFIGURATION c (COPY = english)", [Named("text search configuration", "c")]),
        ("CREATE OR REPLACE TRUSTED PROCEDURAL LANGUAGE l", [Named("language", "l")]),
        ("CREATE ROLE app LOGIN", [Named("role", "app")]),
        ("CREATE USER app", [Named("role", "app")]),
        ("CREATE USER MAPPING FOR app SERVER s", []),
        ("CREATE PUBLICATION p FOR ALL TABLES", [Named("publication", "p")]),
    ],
)
def test_what_a_statement_makes(statement, names):
    assert made(statement) == names


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("DROP INDEX CONCURRENTLY IF EXISTS app.orders_k", [Named("relation", "app.orders_k")]),
        ("DROP TABLE a, b CASCADE", [Named("relation", "a"), Named("relation", "b")]),
        ("DROP FUNCTION f(int, int)", [Named("routine", "f")]),
        ("DROP TRIGGER IF EXISTS stamped ON app.t CASCADE", [Named("trigger", "stamped", "app.t")]),
        ("drop policy p on t", [Named("policy", "p", "t")]),
        ("DROP EVENT TRIGGER IF EXISTS e", [Named("event trigger", "e")]),
        ("DROP ROLE IF EXISTS a, b", [Named("role", "a"), Named("role", "b")]),
        ("DROP USER MAPPING FOR app SERVER s", []),
        (
            "ALTER TABLE t DROP COLUMN IF EXISTS a, DROP CONSTRAINT c",
            [Named("column", "a", "t"), Named("constraint", "c", "t")],
        ),
        ("DELETE FROM t", []),
    ],
)
def test_what_a_statement_drops(statement, names):
    assert dropped(statement) == names
    assert only_drops(statement) is bool(names)


def test_what_a_job_drops_first_and_what_its_undo_makes_again_is_the_users_own():
    index, table = Named("relation", "k"), Named("relation", "made")
    assert names_of_job(["CREATE INDEX k ON t (a)"], ["DROP INDEX IF EXISTS k"]) == (index,)
    assert names_of_job(["DROP INDEX k", "CREATE INDEX k ON t (a)"], ["DROP INDEX k", "CREATE INDEX k ON t (b)"]) == ()
    assert names_of_job(["DROP INDEX k"], ["CREATE INDEX k ON t (a)"]) == ()
    assert names_of_job([], ["DROP TABLE IF EXISTS made"]) == (table,)
