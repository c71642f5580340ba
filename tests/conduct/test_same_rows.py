"""Tests of the comparison of the arms' rows before the first trial, which runs wherever arms load the user's data
apart.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pgtrial.conduct.progress import Preparing, StudyBegins
from pgtrial.conduct.run_study import rehearse_alone, run_study
from pgtrial.model.errors import StudyError
from pgtrial.model.marks import in_toml
from pgtrial.report.data import read_measured
from tests.conduct.small import each_once, small_study
from tests.conftest import require_engine, require_server

pytestmark = pytest.mark.server

RANDOM = """CREATE TABLE codes (n int PRIMARY KEY, code uuid);
INSERT INTO codes SELECT i, gen_random_uuid() FROM generate_series(1, 500) AS i;
CREATE TABLE fixed (n int); INSERT INTO fixed SELECT generate_series(1, 20);
"""
STEADY = """CREATE TYPE mood AS ENUM ('sad', 'fine');
CREATE TABLE codes (n int PRIMARY KEY, code uuid, x float8, y float4, day date, at timestamptz, doc json, b bytea,
    list text[], feels mood, twice int GENERATED ALWAYS AS (n * 2) STORED);
INSERT INTO codes (n, code, x, y, day, at, doc, b, list, feels) SELECT i, md5(i::text)::uuid, i / 7.0, i * 0.1,
    date '2020-01-01' + i, timestamptz '2020-03-29 00:00+00' + i * interval '1h', '{"a":  1}', decode(md5('b'), 'hex'),
    array['x', NULL], 'fine' FROM generate_series(1, 500) AS i;
"""
APART = {"one": {"postgres": "18"}, "two": {"postgres": "18", "initdb": ["--no-data-checksums"]}}
"""Two arms with the same version of the server, whose data come from two templates."""
CALM = {"clients": 1, "warmup": "0s", "duration": "4s", "rate": 50}
READ = "SELECT 1 FROM codes WHERE n = 7;\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch, workspace):
    require_engine()
    monkeypatch.chdir(tmp_path)


def run(arms, spec_load):
    """Runs a study of one block; returns it, and its messages before it began and while it ran."""
    Path("read.sql").write_text(READ)
    load = {**CALM, "workload": "read.sql", **spec_load}
    server = {"settings": {}} if "dsn" in next(iter(arms.values())) else {}
    study = small_study(Path("results"), blocks=1, load=load, arms=arms, server=server)
    before, later = [], []

    def on_event(event):
        if isinstance(event, StudyBegins):
            before.extend(later)
            later.clear()
        elif isinstance(event, Preparing):
            later.append(in_toml(event.text))

    run_study(study, on_event)
    assert each_once(study)
    return study, before, later


def unequal(study):
    return [found for found in study.audit().findings if found.rule == "unequal_data"]


def test_rows_drawn_by_each_template_withhold_the_verdict_and_are_told_before_the_first_trial():
    Path("codes.sql").write_text(RANDOM)
    study, before, later = run(APART, {"data": "codes.sql"})
    [found] = unequal(study)
    assert (found.severity, found.arms) == ("withhold", ["one", "two"])
    assert found.message == (
        "The arms do not have the same rows: the table public.codes differs in the column code "
        "(500 rows in one and 500 in two)."
    )
    assert [text for text in before if "do not have the same rows" in text] == [
        f"there will be no verdict: {found.message} {found.cure}"
    ]
    assert not [text for text in later if "do not have the same rows" in text], "it is told once"
    assert f"{found.message} {found.cure}" in read_measured(study).result.withheld
    facts = study.facts()["one"].facts["data"]
    assert facts.keys() == {"public.codes", "public.fixed"}
    assert facts["public.fixed"] == study.facts()["two"].facts["data"]["public.fixed"]


def test_a_materialized_view_drawn_by_each_template_withholds_the_verdict():
    Path("codes.sql").write_text(STEADY + "CREATE MATERIALIZED VIEW drawn AS SELECT n, random() AS r FROM codes;\n")
    study, _, _ = run(APART, {"data": "codes.sql"})
    [found] = unequal(study)
    assert (found.severity, "public.drawn differs in the column r" in found.message) == ("withhold", True)


def test_a_rehearsal_alone_tells_it_too():
    Path("codes.sql").write_text(RANDOM)
    Path("read.sql").write_text(READ)
    study = small_study(Path("results"), load={**CALM, "workload": "read.sql", "data": "codes.sql"}, arms=APART)
    said = []
    rehearse_alone(study.spec, study.plan, lambda event: said.append(event.text))
    [sentence] = [text for text in said if "do not have the same rows" in text]
    assert "differs in the column code" in sentence


def test_values_that_another_arm_does_not_have_refuse_the_study_before_its_first_trial():
    Path("codes.sql").write_text(RANDOM)
    with pytest.raises(StudyError, match=r"arms\.two: \[load\] values: c = codes\.code: all of the values .* on one"):
        run(APART, {"data": "codes.sql", "values": {"c": "codes.code"}})
    assert not list(Path("results/trials").glob("*"))


def test_values_that_all_arms_have_refuse_nothing():
    Path("codes.sql").write_text(STEADY)
    study, _, _ = run(APART, {"data": "codes.sql", "values": {"c": "codes.code"}})
    assert unequal(study) == []


def test_equal_rows_in_two_versions_are_read_once_for_each_template():
    require_server(15)
    Path("codes.sql").write_text(f"{STEADY}-- {os.getpid()}, so that no test before has made the templates\n")
    arms = {"old": {"postgres": "15"}, "new": {"postgres": "18"}}
    study, before, _ = run(arms, {"data": "codes.sql"})
    assert unequal(study) == []
    assert study.facts()["old"].facts["data"] == study.facts()["new"].facts["data"] != {}
    read = [text for text in before if ": read the rows of 1 table" in text]
    assert [text.partition(":")[0] for text in read] == ["old", "new"]

    Path("results").rename("earlier")
    again, before, _ = run(arms, {"data": "codes.sql"})
    assert again.facts()["old"].facts["data"] == study.facts()["old"].facts["data"]
    assert not [text for text in before if "rows of" in text], "it is kept with the templates"


@pytest.mark.parametrize(
    ("arms", "load"),
    [
        (APART, {"workload": "simple-update", "scale": 1}),
        ({"one": {}, "two": {"settings": {"jit": "off"}}}, {"data": "codes.sql"}),
    ],
    ids=["rows of pgtrial's own generators", "one template for both"],
)
def test_rows_that_are_the_same_by_construction_are_not_read(arms, load):
    Path("codes.sql").write_text(RANDOM)
    study, before, _ = run(arms, load)
    assert not [text for text in before if "rows of" in text]
    assert "data" not in study.facts()["one"].facts


def test_a_statement_that_finds_rows_in_one_arm_only_withholds_the_verdict():
    Path("codes.sql").write_text(STEADY)
    counting = {"settings": {"shared_preload_libraries": "pg_stat_statements"}}
    made = "CREATE EXTENSION pg_stat_statements"
    arms = {
        "one": {**counting, "setup_sql": [made]},
        "two": {**counting, "setup_sql": [made, "DELETE FROM codes WHERE n < 100"]},
    }
    study, _, _ = run(arms, {"data": "codes.sql", "rate": 400, "duration": "2s"})
    [reason] = [text for text in read_measured(study).result.withheld if "finds rows in one arm only" in text]
    assert {text for trial in study.trials() for text in trial.statement_rows} == {"SELECT $1 FROM codes WHERE n = $2"}
    assert "'SELECT $1 FROM codes WHERE n = $2' finds rows in one arm only" in reason


@pytest.fixture
def two_databases(clusters):
    """Makes arms of two databases with the same tables, of which one has a changed value."""
    target = clusters(18).target
    arms = {}
    for name in ("rows_one", "rows_two"):
        with target.connect_as_user() as session:
            session.execute(f"DROP DATABASE IF EXISTS {name}")
            session.execute(f"CREATE DATABASE {name}")
        there = replace(target, dbname=name)
        with there.connect_as_user() as session:
            session.execute(STEADY + "CREATE TABLE log (at timestamptz); INSERT INTO log SELECT clock_timestamp();")
        arms[name.removeprefix("rows_")] = {
            "dsn": f"host={there.host} port={there.port} user={there.user} dbname={name}"
        }
    with there.connect_as_user() as session:
        session.execute("UPDATE codes SET x = x + 1 WHERE n = 77")
    yield arms
    with target.connect_as_user() as session:
        for name in ("rows_one", "rows_two"):
            session.execute(f"DROP DATABASE {name}")


def test_tables_of_given_servers_that_the_load_names_are_compared(two_databases):
    study, _, _ = run(two_databases, {})
    [found] = unequal(study)
    assert found.severity == "withhold"
    assert "the table public.codes differs in the column x (500 rows in one and 500 in two)" in found.message
    assert study.facts()["one"].facts["data"].keys() == {"public.codes"}, "the load does not name the other table"


def test_a_table_that_the_load_changes_on_given_servers_is_a_warning(two_databases):
    Path("write.sql").write_text("UPDATE codes SET y = 1 WHERE n = 7;\n")
    study, _, _ = run(two_databases, {"workload": "write.sql"})
    [found] = unequal(study)
    assert found.severity == "warning"
    assert "given servers keep what earlier trials wrote" in found.message


def test_a_large_table_without_a_key_is_not_called_equal(two_databases, monkeypatch):
    monkeypatch.setattr("pgtrial.loads.data.table_rows.WHOLE_BYTES", 0)
    Path("log.sql").write_text("SELECT 1 FROM log;\n")
    study, _, _ = run(two_databases, {"workload": "log.sql"})
    assert unequal(study) == []
    found = [one for one in study.audit().findings if one.rule == "rows_not_compared"]
    assert [one.arms for one in found] == [["one"], ["two"]]
    assert all("public.log" in one.message and "too large" in one.message for one in found)


def test_a_large_table_with_more_rows_than_the_sampled_ones_is_not_called_equal(two_databases, clusters, monkeypatch):
    monkeypatch.setattr("pgtrial.loads.data.table_rows.WHOLE_BYTES", 0)
    for name, more in (("rows_one", 500), ("rows_two", 1500)):
        with replace(clusters(18).target, dbname=name).connect_as_user() as session:
            session.execute("UPDATE codes SET x = 7 WHERE n = 77")
            session.execute(f"INSERT INTO codes (n) SELECT generate_series(501, {more})")
            session.execute("ANALYZE codes")
    study, _, _ = run(two_databases, {})
    [found] = unequal(study)
    assert found.severity == "withhold"
    assert "the table public.codes has about 500 rows in one and 1,500 in two" in found.message


def test_rows_that_the_role_of_the_load_may_not_see_are_not_called_equal(two_databases, clusters):
    target = clusters(18).target
    try:
        with target.connect_as_user() as session:
            session.execute("CREATE ROLE rows_reader LOGIN")
        for number, name in enumerate(("rows_one", "rows_two")):
            with replace(target, dbname=name).connect_as_user() as session:
                session.execute(
                    "GRANT CREATE ON SCHEMA public TO rows_reader; GRANT SELECT ON codes, log TO rows_reader;"
                    "ALTER TABLE codes ENABLE ROW LEVEL SECURITY;"
                    f"CREATE POLICY seen ON codes USING (n > 100); DELETE FROM codes WHERE n = {number + 1};"
                    "REVOKE SELECT ON log FROM rows_reader; UPDATE codes SET x = 1 WHERE n = 77;"
                    "CREATE FUNCTION hidden() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT 1 FROM log'"
                )
        arms = {
            arm: {"dsn": server["dsn"].replace(f"user={target.user}", "user=rows_reader")}
            for arm, server in two_databases.items()
        }
        Path("hidden.sql").write_text("SELECT hidden() FROM codes WHERE n = 7;\n")
        study, before, _ = run(arms, {"workload": "hidden.sql"})
        assert unequal(study) == []
        found = {one.arms[0]: one.message for one in study.audit().findings if one.rule == "rows_not_compared"}
        assert found.keys() == {"one", "two"}
        assert all("public.log in" in text and "permission denied" in text for text in found.values())
        assert all("1 more table" in text for text in found.values())
        data = study.facts()["one"].facts["data"]
        assert data["public.codes"]["has_policies"]
        assert "permission denied" in data["public.log"]["unread"]
        told = [text for text in before if "are not compared" in text]
        assert len(told) == 4
    finally:
        with target.connect_as_user() as session:
            for name in ("rows_one", "rows_two"):
                with replace(target, dbname=name).connect_as_user() as there:
                    there.execute("DROP OWNED BY rows_reader")
            session.execute("DROP ROLE rows_reader")
