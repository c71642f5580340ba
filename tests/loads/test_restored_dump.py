"""Data of replays on real servers: dumps in each format of pg_dump are restored, and what cannot be is named."""

from __future__ import annotations

import shutil
import subprocess
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from pgtrial.loads.client_processes import wait_for_clients_to_leave
from pgtrial.loads.data.dump_text import DumpText
from pgtrial.loads.data.plain_files import PlainFile
from pgtrial.loads.data.restored_dump import RestoredDump, dump_lines
from pgtrial.loads.data.restored_statements import treated
from pgtrial.loads.process import environment
from pgtrial.loads.target import Target
from pgtrial.model.errors import ArmError
from pgtrial.servers.postmaster import OWNER
from tests.conftest import require_root

ROWS = "SELECT id, name FROM shop.item ORDER BY id"
SHOP = r"""
CREATE SCHEMA shop;
CREATE TABLE shop.item (id integer PRIMARY KEY, name text);
INSERT INTO shop.item VALUES (1, 'a;b'), (2, E'line\nbreak'), (3, '\.'), (4, NULL);
CREATE FUNCTION shop.twice(integer) RETURNS integer LANGUAGE sql AS $$ SELECT 2 * $1; $$;
CREATE INDEX item_name ON shop.item (name);
"""


def dump_of(path: Path) -> RestoredDump:
    return RestoredDump("0" * 64, 1000, (path,), f"the dump {path.name}")


def in_database(target: Target, name: str) -> Target:
    """Makes a database that a role without a superuser's rights owns, like those on servers that pgtrial starts, and
    returns it.
    """
    with target.connect_as_user() as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}")
        connection.execute(f"CREATE DATABASE {name} OWNER {OWNER}")
    return replace(target, dbname=name, owner=OWNER)


def pg_dump(source: Target, path: Path, *options: str) -> None:
    """Dumps a database with pg_dump as the superuser, who owns the objects that the tests make."""
    assert source.programs is not None
    command = [source.programs / "pg_dump", f"--file={path}", *options]
    subprocess.run(command, env=environment(replace(source, owner=None).environment()), check=True)


def refusal(dump: RestoredDump, target: Target) -> str:
    with pytest.raises(ArmError) as refused:
        dump.make(target, lambda line: None)
    return str(refused.value)


@pytest.mark.server
@pytest.mark.parametrize("form", ["plain", "custom", "tar", "directory"])
def test_a_dump_in_each_format_gives_the_same_rows(clusters, tmp_path, form):
    target = clusters(18).target
    assert target.programs is not None
    source, copy = in_database(target, "dumped"), in_database(target, "restored")
    with source.connect_as_user() as connection:
        connection.execute(SHOP)
        expected = connection.execute(ROWS).fetchall()
    path = tmp_path / "shop.dump"
    pg_dump(source, path, f"--format={form}")
    dump_of(path).make(copy, lambda line: None)
    with copy.connect_as_user() as connection:
        assert connection.execute(ROWS).fetchall() == expected
        assert connection.execute("SELECT shop.twice(4)").fetchone() == (8,)
        frozen = "SELECT relallvisible > 0, reltuples FROM pg_class WHERE oid = 'shop.item'::regclass"
        assert connection.execute(frozen).fetchone() == (True, 4)
        relations = dump_of(path).relations(connection)
        found = connection.execute(f"SELECT count(*) FROM pg_class c WHERE {relations}").fetchone()
    assert found == (3,), "the table and its two indexes"


@pytest.mark.server
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1;\n\nSELEC 2;\n", 'line 3 (SELEC 2): PostgreSQL says: syntax error at or near "SELEC"'),
        (
            "CREATE TABLE t ();\nCREATE FUNCTION f() RETURNS int LANGUAGE c AS 'libc.so.6', 'getpid';\n",
            "): PostgreSQL says: permission denied for language c; pgtrial restores data as a role without superuser",
        ),
        (
            "CREATE TABLE t (n text);\nCOPY t FROM '/etc/passwd';\n",
            "line 2 (COPY t FROM '/etc/passwd'): PostgreSQL says: permission denied to COPY from a file; ",
        ),
        (
            "--\n-- PostgreSQL database cluster dump\n--\nCREATE ROLE shopkeeper;\n\\connect shop\n",
            "line 5: the file is the output of pg_dumpall, with all databases of a server; give a dump of the one "
            "database that the load uses",
        ),
        (
            "CREATE TABLE n (n integer);\nCOPY n FROM stdin;\nx\n\\.\n",
            "line 3 (COPY n FROM stdin): PostgreSQL says: invalid input syntax",
        ),
        ("CREATE TABLE n (n integer);\nCOPY n FROM stdin;\n1\n", "ends within the rows of a COPY; make the dump again"),
        (
            "CREATE TABLE n (n integer);\nCOPY n FROM stdin;\n1\n2\n\\.\nSELEC 2;\n",
            "line 6 (SELEC 2): PostgreSQL says: syntax",
        ),
        (
            "CREATE TABLE n (n int PRIMARY KEY);\n\nINSERT INTO n VALUES (1);\nINSERT INTO n\n VALUES (1);\nSELECT;",
            "line 4 (INSERT INTO n VALUES (1)): PostgreSQL says: duplicate key",
        ),
        (
            "CREATE TABLE a ();\nCREATE TABLE a ();\n",
            'line 2 (CREATE TABLE a ()): PostgreSQL says: relation "a" already',
        ),
        (
            "CREATE TABLE n (n int);\nBEGIN;\nINSERT INTO n VALUES (1);\n",
            "ends within a transaction, so that PostgreSQL undoes what the file has done since its last BEGIN; write",
        ),
        (
            "CREATE TABLE n (n text);\nINSERT INTO n VALUES ('a);\nSELECT 1;\n",
            "line 2 (INSERT INTO n VALUES ('a); SELECT 1;): PostgreSQL says: unterminated quoted string at or near "
            '"\'a); SELECT 1; "',
        ),
        ("ALTER SYSTEM SET work_mem = '1GB';\nSELECT 1;\n", "permission denied to set parameter"),
        ("SELECT 1;; SELECT x;\n", 'line 1 (SELECT x): PostgreSQL says: column "x" does not exist'),
        (
            "-- Dumped by pg_dump version 99.1\nSET future_timeout = 0;\n",
            "the dump was made by pg_dump 99.1: make it with the pg_dump of this server's version",
        ),
        ("\\connect shop\n", "line 1: the dump connects to another database; make it without pg_dump's option --cre"),
        ("SELECT 1;\n  \\i more.sql\n", r"line 2: \i is a command of psql, which pgtrial does not run; write SQL"),
        ("SELECT 1;\n\n COPY (SELECT 1) TO STDOUT;\n", "line 3: pgtrial does not read the rows of COPY ... TO STDOUT"),
    ],
)
def test_what_a_plain_dump_cannot_have_is_named_with_its_line(clusters, tmp_path, text, message):
    path = tmp_path / "shop.sql"
    path.write_text(text)
    assert message in refusal(dump_of(path), in_database(clusters(18).target, "refused"))


@pytest.mark.server
@pytest.mark.parametrize(
    "copy",
    [
        "COPY n FROM stdin;\n",
        "  copy n (n)\n  from STDIN -- the rows\n;\n",
        "COPY n FROM stdin WITH (FORMAT csv); /* rows */ -- follow\n",
        "INSERT INTO n VALUES (0); DELETE FROM n; COPY public.n FROM STDIN NULL 'x';\n",
        "COPY n FROM stdin;\r\n",
        "/* COPY n FROM stdin; */ SELECT 'COPY n FROM stdin;';\nCOPY n FROM stdin;\n",
    ],
)
def test_the_rows_of_a_copy_are_read_however_it_is_written(clusters, tmp_path, copy):
    path = tmp_path / "rows.sql"
    path.write_bytes(f"CREATE TABLE n (n integer);\n{copy}1\n2\n\\.\nINSERT INTO n VALUES (3);\n".encode())
    target = in_database(clusters(18).target, "copied")
    dump_of(path).make(target, lambda line: None)
    with target.connect_as_user() as connection:
        assert connection.execute("SELECT n FROM n ORDER BY n").fetchall() == [(1,), (2,), (3,)]


@pytest.mark.server
def test_an_archive_needs_the_pg_restore_of_the_servers_installation(clusters, tmp_path):
    target = in_database(clusters(18).target, "refused")
    path = tmp_path / "shop.dump"
    path.write_bytes(b"PGDMP but no more")
    assert f"pg_restore cannot restore {path}: " in refusal(dump_of(path), target)
    assert f"there is no pg_restore in {tmp_path} to restore {path}; " in refusal(
        dump_of(path), replace(target, programs=tmp_path)
    )
    assert "give a plain dump (pg_dump --format=plain)" in refusal(dump_of(path), replace(target, programs=None))


@pytest.mark.server
@pytest.mark.parametrize("writable", ["the program", "its directory"])
def test_root_runs_no_program_that_another_account_can_write(clusters, fresh_state, writable):
    require_root()
    programs = fresh_state / "bin"
    programs.mkdir()
    program = programs / "pg_restore"
    program.write_text(f"#!/bin/sh\ntouch {fresh_state}/ran\n")
    program.chmod(0o755)
    shutil.chown(program if writable == "the program" else programs, "nobody")
    path = fresh_state / "shop.dump"
    path.write_bytes(b"PGDMP but no more")
    target = replace(in_database(clusters(18).target, "refused"), programs=programs)
    assert f"root does not run {program} to restore {path}: " in refusal(dump_of(path), target)
    assert not (fresh_state / "ran").exists()


def test_what_a_dump_takes_is_estimated_from_its_bytes(tmp_path):
    (tmp_path / "plain.sql").write_text("SELECT 1;")
    (tmp_path / "archive").write_bytes(b"PGDMP")
    plain, archive = (RestoredDump("0" * 64, 10**9, (tmp_path / name,), name) for name in ("plain.sql", "archive"))
    assert (plain.mb, archive.mb) == (1500, 6000)
    moved = shutil.copy(tmp_path / "plain.sql", tmp_path / "moved.sql")
    assert dump_of(Path(moved)) == dump_of(tmp_path / "plain.sql"), "a template depends on the digest alone"


IN_STANDARD_SQL = """
CREATE TABLE item (id int, name text);
CREATE FUNCTION twice(n int) RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT 2 * n; END;
CREATE RULE noted AS ON DELETE TO item DO ALSO (INSERT INTO item VALUES (7, 'x'); INSERT INTO item VALUES (8, 'y'));
CREATE FUNCTION doc() RETURNS text LANGUAGE plpgsql AS $é$ BEGIN RETURN '
COPY item FROM stdin;
\\connect elsewhere
'; END $é$;
"""


@pytest.mark.server
@pytest.mark.parametrize("inserts", [[], ["--inserts"]])
def test_a_plain_dump_is_split_as_psql_splits_it(clusters, tmp_path, inserts):
    """Bodies in standard SQL, rules of two commands, lines of texts that look like psql's own, a byte order mark."""
    target = clusters(18).target
    assert target.programs is not None
    source, copy = in_database(target, "dumped"), in_database(target, "restored")
    with source.connect_as_user() as connection:
        connection.execute(IN_STANDARD_SQL)
        connection.execute(
            "INSERT INTO item SELECT i, E'a\nCOPY item FROM stdin;\n\\\\connect b\n;' FROM generate_series(1, 5) i"
        )
        expected = connection.execute("SELECT id, name, doc() FROM item ORDER BY id").fetchall()
    path = tmp_path / "shop.sql"
    pg_dump(source, path, *inserts)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    with dump_lines(path, copy.programs) as (lines, named), copy.connect_as_load() as session:
        text = DumpText(lines, named, partial(treated, schemas=()), together=100)
        PlainFile(session, text, None, has_lines=True).run()
    with copy.connect_as_user() as connection:
        assert connection.execute("SELECT id, name, doc() FROM item ORDER BY id").fetchall() == expected
        assert connection.execute("SELECT twice(4)").fetchone() == (8,)
        connection.execute("DELETE FROM item WHERE id = 1")
        assert connection.execute("SELECT count(*) FROM item WHERE id IN (7, 8)").fetchone() == (2,)


ALONE = """CREATE TABLE n (i int, m text); INSERT INTO n SELECT 1; VACUUM (ANALYZE) n; /* and
so on */ CREATE INDEX CONCURRENTLY n_i ON n (i);
CREATE TYPE mood AS ENUM ('sad'); ALTER TYPE mood ADD VALUE 'glad'; CREATE TABLE moods AS SELECT 'glad'::mood AS m;
CREATE PROCEDURE fill() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO n VALUES (2); COMMIT; INSERT INTO n VALUES (3); END $$;
CALL fill(); DO $$ BEGIN INSERT INTO n VALUES (4); COMMIT; END $$;
INSERT INTO n VALUES (5); BEGIN; DELETE FROM n; ROLLBACK;
INSERT INTO n VALUES (6); BEGIN; INSERT INTO n VALUES (7); COMMIT; REINDEX TABLE CONCURRENTLY n;
"""
"""SQL whose statements PostgreSQL accepts only one by one, as psql sends them."""


@pytest.mark.server
def test_statements_that_no_transaction_may_hold_are_sent_one_by_one_as_by_psql(clusters, tmp_path):
    target, path = in_database(clusters(18).target, "one_by_one"), tmp_path / "seed.sql"
    path.write_text(ALONE)
    dump_of(path).make(target, lambda line: None)
    with target.connect_as_user() as session:
        assert session.execute("SELECT array_agg(i ORDER BY i) FROM n").fetchone() == ([1, 2, 3, 4, 5, 6, 7],)
        assert session.execute("SELECT m::text FROM moods").fetchall() == [("glad",)]
    path.write_text(f"{ALONE}SELECT 1; VACUUM\n absent;\n")
    told = 'line 8 (VACUUM absent): PostgreSQL says: relation "absent" does not exist'
    assert told in refusal(dump_of(path), in_database(clusters(18).target, "one_by_one"))


OLD = r"""SET client_encoding = 'LATIN1';
SET standard_conforming_strings = off;
SET escape_string_warning = off;
CREATE TABLE old (s text DEFAULT 'größe\\ä;');
INSERT INTO old VALUES ('größe\\ä;');
INSERT INTO old DEFAULT VALUES;
"""
"""A dump of an old database: its encoding is LATIN1, and backslashes in its texts are doubled."""


@pytest.mark.server
def test_a_dump_in_another_encoding_with_doubled_backslashes_gives_its_own_texts(clusters, tmp_path):
    target, path = in_database(clusters(18).target, "old_texts"), tmp_path / "old.sql"
    path.write_bytes(OLD.encode("latin-1"))
    dump_of(path).make(target, lambda line: None)
    with target.connect_as_user() as session:
        assert session.execute("SELECT s FROM old").fetchall() == [("größe\\ä;",)] * 2
    path.write_bytes(OLD.partition("\n")[2].encode("latin-1"))
    assert refusal(dump_of(path), in_database(clusters(18).target, "old_texts")).endswith(
        "line 3 (CREATE TABLE old (s text DEFAULT 'gr\xf6\xdfe\\\\\xe4;')): PostgreSQL says: invalid byte sequence for "
        'encoding "UTF8": 0xf6 0xdf 0x65 0x5c; save the file in UTF-8, or name its encoding at its beginning: SET '
        "client_encoding = 'LATIN1';"
    )


@pytest.mark.server
def test_rows_of_a_session_that_ends_late_are_counted_once(clusters, tmp_path, monkeypatch):
    target = in_database(clusters(18).target, "late")
    path = tmp_path / "t.sql"
    path.write_text("CREATE TABLE t (n int);\nINSERT INTO t SELECT generate_series(1, 50);\n")
    ending = []

    run = PlainFile.run

    def run_and_end_late(text: PlainFile) -> None:
        run(text)
        late = target.connect_as_user()
        late.execute("SELECT 1")  # what follows within a second of a report is reported at the end
        late.execute("INSERT INTO t SELECT generate_series(51, 60)")
        ending.append(threading.Timer(1.0, late.close))
        ending[0].start()

    monkeypatch.setattr(PlainFile, "run", run_and_end_late)
    dump_of(path).make(target, lambda line: None)
    ending[0].join()
    with target.connect_as_user() as connection:
        wait_for_clients_to_leave(connection, 0, 60.0)
        assert connection.execute("SELECT n_live_tup FROM pg_stat_user_tables").fetchall() == [(60,)]


@pytest.mark.server
def test_rows_whose_commits_nobody_waited_for_are_all_visible(start_cluster, tmp_path):
    """Else no plan has an index-only scan."""
    # an autovacuum that has begun before would keep the rows from being visible to all
    settings = {"synchronous_commit": "off", "wal_writer_delay": "10s", "autovacuum": "off"}
    cluster = start_cluster(18, settings=settings)
    target = in_database(cluster.target, "seen")
    path = tmp_path / "t.sql"
    path.write_text("CREATE TABLE t (n int);\nINSERT INTO t SELECT generate_series(1, 50000);\n")
    dump_of(path).make(target, lambda line: None)
    with target.connect() as connection:
        pages = "SELECT relallvisible, relpages FROM pg_class WHERE relname = 't'"
        (visible, pages) = connection.execute(pages).fetchone() or (None, None)
    assert visible == pages > 0
