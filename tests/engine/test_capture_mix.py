"""Synthetic mixes of a real server's pg_stat_statements and pg_stats: calls, values, and what is left out."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pgtrial.conduct.upgrade.statements import Statements, capture_counted
from pgtrial.loads.target import Target
from pgtrial.model.errors import StudyError
from pgtrial.servers.workspace import Workspace
from tests.conftest import NEWER_VERSION, VERSIONS, require_engine, running_clusters
from tests.engine import captures
from tests.engine.capture_program import capture, captured, refused
from tests.engine.programs import Program

TABLES = """
create extension pg_stat_statements;
create table item (id int primary key, kind text, price numeric(8, 2), sold timestamptz);
insert into item
  select i, case when i % 10 < 8 then 'book' else 'it''s a pen' end, i / 100.0, now() - i * interval '1 min'
  from generate_series(1, 10000) i;
create table sale (sale bigint primary key, item int, note text);
insert into sale select i, 1 + i % 10000, null from generate_series(1, 5000) i;
analyze;
select pg_stat_statements_reset();
"""

CALLS = {
    "select price from item where id = 17": 60,
    "select kind, id from item where kind = 'book' limit 3": 20,
    "select id, price from item where id between 100 and 119": 10,
    "update item set price = price + 1 where id in (3, 4)": 10,
}
LEFT_OUT = {"values-unknown": 3, "other-command": 4}


@dataclass(frozen=True)
class Counted:
    """The files that psql wrote from the statistics of a server, and that server."""

    statements: Path
    columns: Path
    target: Target
    major: int


@pytest.fixture(scope="module", params=[VERSIONS[0], VERSIONS[-1], NEWER_VERSION], ids=lambda major: f"pg{major}")
def counted(
    request: pytest.FixtureRequest, workspace: Workspace, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Counted]:
    """Yields the files that psql writes with the queries that `--queries` prints."""
    with running_clusters(workspace, {"shared_preload_libraries": "pg_stat_statements"}) as running:
        target = running(request.param).target
        with target.connect_as_user() as connection:
            for statement in TABLES.split(";\n"):
                connection.execute(statement.encode())
            for text, calls in CALLS.items():
                for _ in range(calls):
                    connection.execute(text.encode())
            for sale in range(20):
                connection.execute(f"insert into sale values ({10_000 + sale}, 7, null)".encode())
            for _ in range(LEFT_OUT["values-unknown"]):
                connection.execute(b"select * from item where lower(kind) = 'book' limit 1")
            for _ in range(LEFT_OUT["other-command"] // 2):
                connection.execute(b"begin")
                connection.execute(b"commit")
            folder = tmp_path_factory.mktemp("counted")
            for name, query in written().items():
                with connection.cursor().copy(f"COPY {query} TO STDOUT CSV HEADER".encode()) as copy:
                    (folder / name).write_bytes(b"".join(bytes(part) for part in copy))
        yield Counted(folder / "statements.csv", folder / "columns.csv", target, request.param)


def written() -> dict[str, str]:
    """Returns the queries by the file that each writes."""
    printed = subprocess.run([require_engine(), "capture", "--queries"], capture_output=True, text=True, check=True)
    found = re.findall(r"^\\copy (\(.*\)) TO '(\S+)' CSV HEADER$", printed.stdout, re.MULTILINE)
    assert len(found) == 2
    return {name: query for query, name in found}


def mixed(counted: Counted, directory: Path, *more: str) -> captures.Capture:
    files = [f"--statements={counted.statements}", f"--columns={counted.columns}"]
    return captured(directory, *files, "--counted=60", *more)


def texts(found: captures.Capture) -> list[str]:
    return [statement.text for session in found.sessions for statement in session.statements]


@pytest.mark.server
def test_each_statement_is_there_as_often_as_it_was_called(counted: Counted, tmp_path: Path) -> None:
    found = mixed(counted, tmp_path / "mix")
    shapes = Counter(re.sub(r"'[^']*(''[^']*)*'|\b\d+(\.\d+)?", "?", text) for text in texts(found))
    assert shapes["select price from item where id = ?"] == 60
    assert shapes["select kind, id from item where kind = ? limit ?"] == 20
    assert shapes["select id, price from item where id between ? and ?"] == 10
    # from 18 on the length of a list is not counted
    ids = "?, ?" if counted.major < 18 else "?, ?, ?, ?, ? "
    assert shapes[f"update item set price = price + ? where id in ({ids})"] == 10
    assert shapes["insert into sale values (?, ?, NULL)"] == 20
    assert found.left_out() == LEFT_OUT
    assert len(found.sessions) == 10
    assert 50e6 < max(s.start_us for session in found.sessions for s in session.statements) < 61e6
    assert [source["format"] for source in found.about["sources"]] == ["pg_stat_statements", "pg_stats"]


@pytest.mark.server
def test_a_rehearsal_of_an_upgrade_takes_each_counted_statement_once(counted: Counted, tmp_path: Path) -> None:
    target = counted.target
    dsn = f"host={target.host} port={target.port} user={target.user} dbname={target.dbname}"
    source = capture_counted(dsn, tmp_path / "mix")
    statements = Statements()
    statements.add_capture(tmp_path / "mix", source)
    found = Counter(re.sub(r"'[^']*(''[^']*)*'|\b\d+(\.\d+)?", "?", one.text).strip(";\n") for one in statements.found)
    assert found["select price from item where id = ?"] == 1
    assert found["insert into sale values (?, ?, NULL)"] == 1
    assert len(found) == len(CALLS) + 1
    assert set(found.values()) == {1}
    assert len(statements.left_out) == len(LEFT_OUT)
    with pytest.raises(StudyError, match="--statements-of: cannot connect to"):
        capture_counted(f"{dsn} port=1", tmp_path / "none")


@pytest.mark.server
def test_values_are_those_of_the_columns(counted: Counted, tmp_path: Path) -> None:
    found = texts(mixed(counted, tmp_path / "mix", "--length=6000"))
    keys = [int(text.split("= ")[1]) for text in found if text.startswith("select price")]
    assert len(keys) == 6000
    assert min(keys) < 500
    assert max(keys) > 9500
    assert max(keys) <= 10_000
    kinds = Counter("pen" if "it''s a pen" in text else "book" for text in found if text.startswith("select kind"))
    assert 0.75 < kinds["book"] / kinds.total() < 0.85
    assert all(text.endswith("limit 3") for text in found if text.startswith("select kind"))
    ranges = [re.findall(r"\d+", text) for text in found if "between" in text]
    assert all(19 <= int(high) - int(low) <= 21 for low, high in ranges)
    new = [int(re.findall(r"\d+", text)[0]) for text in found if text.startswith("insert")]
    assert len(set(new)) == len(new)
    assert min(new) > 5000


@pytest.mark.server
def test_the_seed_decides(counted: Counted, tmp_path: Path) -> None:
    seen = [
        mixed(counted, tmp_path / name, "--length=30", "--sessions=3", f"--random-seed={seed}").sessions
        for name, seed in (("one", 7), ("same", 7), ("other", 8))
    ]
    assert len(seen[0]) == 3
    assert seen[0] == seen[1] != seen[2]


@pytest.mark.server
def test_a_mix_is_replayed_without_an_error(counted: Counted, tmp_path: Path) -> None:
    mixed(counted, tmp_path / "mix")
    replay = Program("replay", (str(require_engine()), "replay"))
    events = tmp_path / "events"
    done = replay.run(counted.target, "--as-fast-as-possible", "--events", str(events), str(tmp_path / "mix"))
    assert done.status == 0, done.stderr
    said = json.loads(events.read_text().splitlines()[-1])["replay"]
    assert said["statements"] == 120
    assert said["unexpected_failures"] == {}


@pytest.mark.parametrize(
    ("statements", "columns", "words"),
    [
        (
            "query,calls\nselect 1,2\n",
            None,
            'statements.csv" has no column rows; write the file again with the queries of',
        ),
        ('query,calls,rows\n"select 1,2,3\n', None, 'statements.csv" is cut short: a quote has no end'),
        ("query,calls,rows\nselect 1,2\n", None, 'line 2 of "'),
        ("query,calls,rows\nselect 1,many,3\n", None, "calls in line 2"),
        ("query,calls,rows\n", None, "has no calls"),
        ("query,calls,rows\n<insufficient privilege>,5,5\n", None, "grant it pg_read_all_stats"),
        ("query,calls,rows\nselect 1,2,3\n", "a,b\n", 'columns.csv" has no column table'),
    ],
)
def test_files_that_cannot_be_used_are_one_sentence(
    tmp_path: Path, statements: str, columns: str | None, words: str
) -> None:
    (tmp_path / "statements.csv").write_text(statements)
    (tmp_path / "columns.csv").write_text(columns or "table,column,type\nt,a,integer\n")
    files = [f"--statements={tmp_path / 'statements.csv'}", f"--columns={tmp_path / 'columns.csv'}"]
    assert words in refused("-o", tmp_path / "mix", *files, "--counted=1")


def test_options_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    assert "needs all three of --statements, --columns and --counted" in refused("-o", tmp_path, "--statements=a.csv")
    assert "is not made from logs" in refused("-o", tmp_path, "--columns=a.csv", "server.log")
    assert '--sessions "0" is not a number from 1 to 100000' in refused("-o", tmp_path, "--sessions=0", "x")
    assert capture("--queries").returncode == 0
