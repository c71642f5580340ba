"""The tables of a pack on a server that others use: found again, replaced by other data; those of others stay."""

from __future__ import annotations

import psycopg
import pytest

from pgtrial.loads.data.kinds import data_of
from pgtrial.loads.data.pack_tables import PackTables
from pgtrial.loads.target import Target, value
from pgtrial.model.errors import StudyError
from pgtrial.model.study.spec import load_points
from pgtrial.store.study_file import build_study
from tests.packs import write_pack

pytestmark = pytest.mark.server


@pytest.fixture
def database(clusters):
    """Yields an empty database that only this test uses."""
    target = clusters(18).target
    with target.connect_as_user() as session:
        session.execute("CREATE DATABASE packs")
    yield Target(target.host, target.port, target.user, "packs", target.password, target.extra)
    with target.connect_as_user() as session:
        session.execute("DROP DATABASE packs WITH (FORCE)")


@pytest.fixture
def tables(tmp_path):
    """Makes the data of a pack at a scale, with these files."""

    def make(scale: int = 1, **changed: str) -> PackTables:
        write_pack(tmp_path / "counters", **changed)
        data = {"load": {"workload": "./counters", "scale": scale}, "arms": {"a": {}, "b": {}}}
        spec = build_study(data, "test", tmp_path)
        found = data_of(spec, load_points(spec)[0])
        assert isinstance(found, PackTables)
        return found

    return make


def silent(line: str) -> None:
    del line


def counted(session: psycopg.Connection) -> int:
    return value(session, "SELECT count(*) FROM counters")


def test_data_that_is_there_is_found_and_other_data_replaces_it(database, tables):
    small, large = tables(1), tables(3)
    with database.connect_as_user() as session:
        assert not small.find(session)
        small.make(database, silent)
        assert small.find(session)
        assert small.table_names(session) == ["public.counters"]
        assert not large.find(session)
        assert large.clear(session) is False, "no load is resumed"
        large.make(database, silent)
        assert counted(session) == 30
        assert large.find(session)
        assert not small.find(session)


def test_a_load_that_failed_is_no_data_and_gone_before_the_next(database, tables):
    broken = tables(1, data_sql="INSERT INTO counters VALUES (1, 1);\nINSERT INTO counter VALUES (1);\n")
    with pytest.raises(StudyError, match=r"data\.sql, line 2"):
        broken.make(database, silent)
    whole = tables(1)
    with database.connect_as_user() as session:
        assert counted(session) == 1
        assert not broken.find(session)
        whole.clear(session)
        whole.make(database, silent)
        assert counted(session) == 10


def test_tables_of_others_are_never_dropped(database, tables):
    with database.connect_as_user() as session:
        session.execute("CREATE TABLE counters AS SELECT 1 AS id")
        data = tables(1)
        assert not data.find(session)
        data.clear(session)
        with pytest.raises(
            StudyError, match=r'schema\.sql, line 1 .*PostgreSQL says: relation "counters" already exists'
        ):
            data.make(database, silent)
        assert counted(session) == 1
        data.clear(session)
        assert counted(session) == 1


def test_rows_come_from_a_file_of_the_pack(database, tables):
    copied = tables(1, data_sql="COPY counters (id, value) FROM 'rows.csv' WITH (FORMAT csv);\n", rows_csv="1,7\n2,8\n")
    copied.make(database, silent)
    with database.connect_as_user() as session:
        assert value(session, "SELECT sum(value) FROM counters") == 15


def test_bodies_in_standard_sql_and_rules_of_two_commands_are_one_statement_each(database, tables):
    made = (
        "\ufeffCREATE FUNCTION twice(n int) RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; SELECT 2 * n; END;\n"
        "CREATE TABLE log (id int);\n"
        "CREATE RULE noted AS ON DELETE TO counters DO ALSO "
        "(INSERT INTO log VALUES (1); INSERT INTO log VALUES (2));\n"
        "INSERT INTO counters SELECT i, 0 FROM generate_series(1, 10) i;\n"
    )
    tables(1, data_sql=made).make(database, silent)
    with database.connect_as_user() as session:
        assert value(session, "SELECT twice(4)") == 8
        session.execute("DELETE FROM counters WHERE id = 1")
        assert value(session, "SELECT count(*) FROM log") == 2


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("COPY counters TO STDOUT;\n", r"pgtrial does not read the rows of COPY \.\.\. TO STDOUT; write SELECT"),
        ("\\copy counters FROM 'rows.csv'\n", r"\\copy is a command of psql, which pgtrial does not run"),
        ("-- more\n\\i more.sql\n", r"\\i is a command of psql"),
    ],
)
def test_what_needs_psql_is_said_in_our_words(database, tables, sql, words):
    with pytest.raises(StudyError, match=rf"data\.sql, line \d: {words}"):
        tables(1, data_sql=sql).make(database, silent)


def test_rows_that_follow_a_copy_are_said_to_belong_into_a_file(database, tables):
    piped = tables(1, data_sql="SELECT 1;\nCOPY counters (id, value) FROM stdin;\n1\t7\n\\.\n")
    with pytest.raises(
        StudyError,
        match=r"data\.sql, line 2: pgtrial does not read the rows of COPY \.\.\. FROM STDIN here; put them into the "
        r"file rows\.csv or rows\.tsv in the folder of the pack",
    ):
        piped.make(database, silent)
