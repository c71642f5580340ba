"""A rehearsal of an upgrade from 15 to 18 of data and statements with planted differences, on real servers."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from pgtrial.cli import main
from pgtrial.cli import upgrade as command
from pgtrial.conduct.upgrade.rehearse import Rehearsed
from pgtrial.model.errors import StudyError
from tests.conftest import require_engine, require_server

pytestmark = pytest.mark.server

DATA = """
CREATE TABLE customers (id int PRIMARY KEY, name text);
INSERT INTO customers SELECT g, 'Müller ' || g FROM generate_series(1, 200) g;
CREATE TABLE orders (id int PRIMARY KEY, customer int, total numeric);
INSERT INTO orders SELECT g, g % 200, g FROM generate_series(1, 5000) g;
CREATE INDEX orders_customer ON orders (customer);
"""
QUERIES = {
    "chance": "SELECT random() FROM customers",
    "fails": "SELECT * FROM absent",
    "function": "SELECT pg_stat_get_bgwriter_timed_checkpoints()",
    "lookup": "SELECT total FROM orders WHERE customer = 7",
    "selfjoin": "SELECT a.total FROM orders a JOIN orders b ON a.id = b.id WHERE b.customer = 7",
    "upper": "SELECT id, upper(name) FROM customers",
    "write": "UPDATE orders SET total = total + 1 WHERE customer = 7 RETURNING total",
}
"""Statements with planted differences: 18 has no function of this name, joins a table only once with itself, and maps
`ü` to `Ü` by the locale of its cluster.
"""
BY_LOCALE = "postgres=18,initdb=--locale-provider=builtin --builtin-locale=C.UTF-8"


@pytest.fixture(scope="module")
def database(clusters):
    """Yields the connection string of a database of version 15 with the data."""
    target = clusters(15).target
    with target.connect() as session:
        session.execute("CREATE DATABASE upgraded")
    with replace(target, dbname="upgraded").connect_as_load() as session:
        session.execute(DATA)
    yield f"host={target.host} port={target.port} user={target.user} dbname=upgraded"
    with target.connect() as session:
        session.execute("DROP DATABASE upgraded")


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory, database):
    """Returns the exit status of a rehearsal, its record, and its directory."""
    require_engine()
    require_server(18)
    folder = tmp_path_factory.mktemp("upgrade")
    (folder / "queries").mkdir()
    for name, text in QUERIES.items():
        (folder / "queries" / f"{name}.sql").write_text(f"{text};\n")
    words = ["upgrade", "15", BY_LOCALE, "--data", database, "--no-times"]
    words += ["--workload", f"suite:{folder / 'queries'}", "--results", str(folder / "found")]
    with pytest.raises(SystemExit) as end:
        main(words)
    return end.value.code, json.loads((folder / "found" / "upgrade.json").read_text()), folder / "found"


def on(record, name):
    """Returns what is different with a statement, by the arm of the new version."""
    (found,) = [statement for statement in record["statements"] if statement["name"] == name]
    return found["on"]


def test_each_planted_difference_is_named_and_nothing_else(rehearsed):
    status, record, _ = rehearsed
    assert status == 1
    assert (record["old"].partition(".")[0], record["new"].partition(".")[0]) == ("15", "18")
    arms = ["restored", "pg_upgraded", "pg_upgraded, analysed"]
    assert [(arm["name"], arm["failure"]) for arm in record["arms"]] == [(arm, None) for arm in arms]
    found = {
        kind: {name: [arm for arm in arms if on(record, name)[arm][kind]] for name in QUERIES if name != "fails"}
        for kind in ("error", "rows", "plan")
    }
    nothing = {name: [] for name in found["error"]}
    assert found["error"] == {**nothing, "function": arms}
    assert found["rows"] == {**nothing, "upper": ["restored"]}
    assert found["plan"] == {**nothing, "selfjoin": arms}
    assert on(record, "function")["restored"]["error"]["sqlstate"] == "42883"
    rows = on(record, "upper")["restored"]["rows"]
    assert (rows["column"], rows["old_value"], rows["new_value"]) == ("upper", "MüLLER 1", "MÜLLER 1")
    plan = on(record, "selfjoin")["restored"]["plan"]
    assert len(plan["old"]) > len(plan["new"])


def test_rows_of_chance_and_statements_that_fail_before_the_upgrade_are_no_difference(rehearsed):
    _, record, _ = rehearsed
    by_name = {statement["name"]: statement for statement in record["statements"]}
    assert [name for name, statement in by_name.items() if statement["rows_vary"]] == ["chance"]
    assert by_name["fails"]["not_compared"].startswith("it fails on the old version: relation")


def test_the_reports_name_the_statements_in_the_order_of_the_parts(rehearsed):
    _, _, directory = rehearsed
    text = (directory / "upgrade.md").read_text()
    places = [text.index(word) for word in ("| function |", "| upper |", "| selfjoin |", "| fails |")]
    assert places == sorted(places)
    page = (directory / "upgrade.html").read_text()
    assert all(f">{name}</th>" in page for name in ("function", "upper", "selfjoin"))
    assert sorted(path.name for path in directory.iterdir()) == [
        "data.dump",
        "statements",
        "upgrade.html",
        "upgrade.json",
        "upgrade.md",
    ]
    assert {path.stem for path in Path(directory, "statements").iterdir()} == set(QUERIES)


def test_a_database_is_dumped_once_into_a_file_that_only_this_account_reads(rehearsed):
    _, record, directory = rehearsed
    assert record["data"] == [str(directory / "data.dump")]
    assert stat.S_IMODE((directory / "data.dump").stat().st_mode) == 0o600


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Returns the words of a rehearsal with a file as its data."""
    require_engine()
    monkeypatch.chdir(tmp_path)
    Path("shop.sql").write_text("CREATE TABLE t (a int);\n")
    return ["upgrade", "15", "18", "--data", "shop.sql", "--query", "SELECT 1", "--results", "found"]


def status_of(words):
    with pytest.raises(SystemExit) as end:
        main(words)
    return end.value.code


def test_a_directory_that_other_accounts_may_read_and_a_setup_with_a_load_are_refused(asked, capsys):
    Path("found").mkdir(mode=0o755)
    assert status_of(asked) == 3
    assert "other accounts may read found" in capsys.readouterr().err
    assert list(Path("found").iterdir()) == []
    for setup in ("data=shop.sql", "query=SELECT 2", "command=true"):
        assert status_of(["upgrade", "15", f"postgres=18,{setup}", *asked[3:]]) == 3
        assert "both versions have the same data and statements" in " ".join(capsys.readouterr().err.split())


def test_a_rehearsal_that_fails_removes_only_what_it_has_made(asked, monkeypatch):
    def fails(spec, named, directory, *_, **__):
        assert (directory / "statements" / "q1.sql").exists()
        (directory / "mine.txt").write_text("kept")
        raise StudyError("the server did not answer")

    monkeypatch.setattr(command, "rehearse_upgrade", fails)
    Path("found").mkdir(mode=0o700)
    assert status_of(asked) == 3
    assert [path.name for path in Path("found").iterdir()] == ["mine.txt"]


def test_findings_that_are_stored_before_the_times_say_that_these_are_missing(asked, monkeypatch):
    found = Rehearsed(("15.18", "18.6"), ["shop.sql"], [], [])
    stored = []

    def measured(_asked, upgrade, directory, *_):
        stored.append(json.loads((directory / "upgrade.json").read_text())["no_times"])
        return upgrade, 0

    monkeypatch.setattr(command, "rehearse_upgrade", lambda *_, **__: found)
    monkeypatch.setattr(command, "time_statements", measured)
    assert status_of(asked) == 0
    assert stored == ["the measurement did not end"]
    assert json.loads(Path("found/upgrade.json").read_text())["no_times"] is None
