"""Packs for tests: a small one that is written to a folder, with files replaced or added."""

from __future__ import annotations

from pathlib import Path

MANIFEST = """
description = "counters that are raised"
transaction = "one counter raised by one"
scale = "10 counters"

[variables]
step = 1

[scripts]
"raise.sql" = 1
"""

FILES = {
    "pack.toml": MANIFEST,
    "schema.sql": "CREATE TABLE counters (id int PRIMARY KEY, value bigint NOT NULL);\n",
    "data.sql": "INSERT INTO counters SELECT i, 0 FROM generate_series(1, 10 * :scale) AS i;\n",
    "raise.sql": "\\set id random(1, 10 * :scale)\nUPDATE counters SET value = value + :step WHERE id = :id;\n",
    "check.sql": "SELECT format('counter %s is at %s', id, value) FROM counters WHERE value < 0 ORDER BY id;\n",
}


def write_pack(folder: Path, **changed: str | None) -> Path:
    """Writes a workload folder and returns it. Keywords such as `pack_toml=...` replace the usual content of a file;
    None leaves the file out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    named = {".".join(name.rsplit("_", 1)): text for name, text in changed.items()}
    for name, text in {**FILES, **named}.items():
        if text is not None:
            (folder / name).write_text(text)
    return folder


QUALITY = MANIFEST + '\n[quality]\nname = "freshness"\ntolerance = 0.1\n'

OBJECTS = """
CREATE SCHEMA app;
CREATE TYPE app.mood AS ENUM ('good', 'bad');
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TYPE pair AS (a int, b int);
CREATE FUNCTION next_of(i int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT i + 1';
CREATE TABLE counters (id int PRIMARY KEY DEFAULT next_of(1), value bigint NOT NULL, kind app.mood, p positive);
CREATE TABLE lines (id serial PRIMARY KEY, counter int REFERENCES counters);
ALTER TABLE counters ADD COLUMN line int REFERENCES lines;
CREATE TABLE parts (id int) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE FUNCTION total() RETURNS numeric LANGUAGE sql BEGIN ATOMIC SELECT sum(value) FROM counters; END;
CREATE PROCEDURE raise() LANGUAGE sql AS 'UPDATE counters SET value = value + 1';
CREATE AGGREGATE product(bigint) (sfunc = int8mul, stype = bigint);
CREATE OPERATOR === (leftarg = int, rightarg = int, function = int4eq);
CREATE FUNCTION filled() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
CREATE TRIGGER filled BEFORE INSERT ON counters FOR EACH ROW EXECUTE FUNCTION filled();
CREATE SEQUENCE numbers;
CREATE VIEW seen AS SELECT id, total() FROM counters;
CREATE MATERIALIZED VIEW kept AS SELECT * FROM seen;
CREATE VIEW above AS SELECT * FROM kept;
COMMENT ON FUNCTION total() IS 'what all counters have';
COMMENT ON TABLE lines IS 'a comment of the pack';
BEGIN;
CREATE TABLE late (id int);
COMMENT ON TABLE late IS 'another one';
COMMIT;
VACUUM late;
DO $$ BEGIN CREATE TABLE done (id int); END $$;
SELECT 1 AS one INTO taken;
CREATE TABLE app.inner AS SELECT 1 AS one;
CREATE TABLE before (id int);
ALTER TABLE before RENAME TO after;
ALTER FUNCTION filled RENAME TO fulfilled;
DO $$ BEGIN ALTER SEQUENCE numbers RENAME TO figures; END $$;
"""
"""A schema with objects of many kinds."""


def write_pack_of_objects(folder: Path) -> Path:
    """Writes a workload folder whose schema has objects of many kinds and needs an extension, and returns it."""
    manifest = f'server = 15\nextensions = ["pg_trgm"]\n{MANIFEST.lstrip()}'
    data = "INSERT INTO counters (id, value) SELECT i, 0 FROM generate_series(1, 10 * :scale) AS i;\n"
    return write_pack(folder, pack_toml=manifest, schema_sql=OBJECTS, data_sql=data)
