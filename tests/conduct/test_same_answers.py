"""Arms with queries or scripts of their own, on real servers: the same rows, other rows, and what takes time."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.conduct.progress import Preparing, StudyBegins
from pgtrial.conduct.run_study import rehearse_alone, run_study
from pgtrial.model.errors import StudyError
from pgtrial.model.marks import in_toml
from pgtrial.model.records.answers import ArmAnswers
from pgtrial.model.study.spec import StudySpec
from pgtrial.report.build import build_report, differences
from pgtrial.report.data import read_measured
from pgtrial.store.bundle import open_study, write_bundle
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from tests.conduct.small import FAST, each_once, undeclared_differences
from tests.conftest import require_engine

pytestmark = pytest.mark.server

SHOP = """CREATE TABLE customers (id int PRIMARY KEY, city int);
INSERT INTO customers SELECT i, i % 30 FROM generate_series(1, 600) AS i;
CREATE TABLE orders (id int PRIMARY KEY, customer int, total int);
INSERT INTO orders SELECT i, 1 + i % 500, i % 77 FROM generate_series(1, 4000) AS i;
CREATE INDEX ON orders (customer);
"""
IN = "SELECT id FROM customers WHERE city = :c AND id IN (SELECT customer FROM orders) ORDER BY id"
EXISTS = """SELECT id FROM customers AS a WHERE city = :c AND EXISTS (SELECT FROM orders WHERE customer = a.id)
  ORDER BY id DESC"""
OTHER = "SELECT id FROM customers AS a WHERE city = :c AND (city < 20 OR id < 400) AND id <= 500"
"""A query that finds the same rows as the others for 20 of the 30 cities, and other rows for ten."""
SLOW = f"SELECT a.* FROM (SELECT pg_sleep(0.03) OFFSET 0) AS s CROSS JOIN LATERAL ({EXISTS}) AS a"
LOAD = {"clients": 1, "warmup": "0s", "duration": "1s", "interleave": "auto", "data": "shop.sql"}
VALUES = {"c": "customers.city"}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch, workspace):
    require_engine()
    monkeypatch.chdir(tmp_path)
    Path("shop.sql").write_text(SHOP)


def spec_of(queries, load=None, blocks=1, server=None) -> StudySpec:
    arms = {arm: query if isinstance(query, dict) else {"query": query} for arm, query in queries.items()}
    wanted = {**LOAD, "values": VALUES, **(load or {})}
    data = {
        "load": {key: value for key, value in wanted.items() if value is not None},
        "server": server or {"settings": FAST},
        "arms": arms,
        "verdict": {"blocks": blocks},
    }
    return build_study(data, "test")


def study_of(queries, load=None, blocks=1, server=None) -> StudyDirectory:
    spec = spec_of(queries, load, blocks, server)
    return StudyDirectory.create(Path("results"), spec, make_plan(spec, 11, "2026-11-29T14:12:00+00:00"))


def run(study):
    """Prepares a study and returns the messages that it printed before the first trial."""
    said, begun = [], []
    run_study(study, lambda event: (begun if isinstance(event, StudyBegins) else said).append(event))
    assert each_once(study)
    assert all(trial.reason is None for trial in study.trials())
    return [in_toml(event.text) for event in said if isinstance(event, Preparing)]


def rehearsed(queries, load=None, server=None):
    """Rehearses a study without running it, and returns the messages that are not overwritten on the terminal."""
    shutil.rmtree("results", ignore_errors=True)
    study, said = study_of(queries, load, server=server), []
    rehearse_alone(spec_of(queries, load, server=server), study.plan, said.append)
    return [in_toml(event.text) for event in said if event.stays]


def findings(study):
    return [found for found in study.audit().findings if found.rule == "other_answers"]


def test_in_and_exists_of_the_same_rows_share_a_server_and_nothing_is_withheld():
    study = study_of({"in": IN, "exists": EXISTS})
    said = run(study)
    assert study.plan.shares_server
    assert not [text for text in said if "rows" in text]
    facts = {arm: facts.facts for arm, facts in study.facts().items()}
    answers = ArmAnswers.model_validate(facts["exists"]["answers"])
    assert answers == ArmAnswers(draws=answers.draws)
    assert answers.draws >= 20
    assert facts["exists"]["load"]["script"].startswith("exists.query.sql (SHA-256 ")
    assert findings(study) == []
    assert undeclared_differences(study.audit().findings) == []
    measured = read_measured(study)
    assert not [text for text in measured.result.withheld if "rows" in text]
    base, other = study.trials()
    assert base.load_point == other.load_point == study.plan.load_points[0]
    texts = {trial.arm: " ".join(statement.text for statement in trial.statements.values()) for trial in (base, other)}
    assert " IN (" in texts["in"]
    assert "EXISTS" in texts["exists"]
    assert measured.result.plans == []


def test_a_planted_slow_query_is_found():
    study = study_of({"in": IN, "slow": SLOW}, blocks=6)
    run(study)
    assert findings(study) == []
    [claim] = read_measured(study).result.primary
    assert (claim.arm, claim.verdict) == ("slow", "worse")


def test_other_rows_withhold_the_verdict_and_the_first_differing_value_is_named_before_the_first_trial():
    study = study_of({"in": IN, "other": OTHER})
    said = run(study)
    [found] = findings(study)
    assert (found.severity, found.arms) == ("withhold", ["in", "other"])
    message = (
        "The scripts of in and other do not find the same rows: with c = 2[0-9], in finds 1[67] rows and other 13 "
    )
    assert re.match(message, found.message), found.message
    assert f"there will be no verdict: {found.message} {found.cure}" in said
    assert f"{found.message} {found.cure}" in read_measured(study).result.withheld


def test_rows_are_compared_in_any_order_each_as_often_as_it_is_there_and_null_is_no_text():
    once = "SELECT * FROM (VALUES (1, 'a'), (1, 'a'), (2, NULL)) AS v (n, t)"
    same = "SELECT * FROM (VALUES (2, NULL), (1, 'a'), (1, 'a')) AS v (n, t)"
    assert rehearsed({"a": once, "b": same}) == []
    for unlike in ("(1, 'a'), (2, NULL), (2, NULL)", "(1, 'a'), (1, 'a'), (2, 'N')", "(1, 'a'), (1, 'a'), (2, '')"):
        [told] = rehearsed({"a": once, "b": f"SELECT * FROM (VALUES {unlike}) AS v (n, t)"})
        assert "do not find the same rows: both find 3 rows, which are not the same." in told


def test_the_last_digits_of_floating_point_numbers_depend_on_the_plan_and_are_not_compared():
    total = "SELECT sum(x), avg(x), sum(x::real) FROM (SELECT id / 7.0::float8 AS x FROM orders ORDER BY {}) AS o"
    assert rehearsed({"a": total.format("id"), "b": total.format("total, id DESC")}) == []
    for same, other in (
        ("0.3::float8, 4::float8, -0.0::float8", "0.1::float8 + 0.2, 3.9999999999999996::float8, 0::float8"),
        ("'nan'::float8, 'infinity'::real, NULL::real", "'nan'::float8, 'infinity'::real, NULL::real"),
    ):
        assert rehearsed({"a": f"SELECT {same}", "b": f"SELECT {other}"}) == []
    for one, unlike in (("2.5::float8", "2.500001"), ("2.5::float8", "-2.5"), ("2.5::real", "2.51"), ("0::real", "1")):
        [told] = rehearsed({"a": f"SELECT {one}", "b": f"SELECT ({unlike})::{one.partition('::')[2]}"})
        assert "both find 1 row, which are not the same" in told


def test_answers_that_may_differ_are_not_compared_and_the_scope_says_so():
    study = study_of({"in": IN, "other": OTHER}, {"answers": "may differ"})
    assert "the answers of the arms not compared" in study.plan.scope
    run(study)
    assert findings(study) == []
    assert "answers" not in study.facts()["other"].facts


def test_values_that_change_by_themselves_are_counted():
    queries = {"a": "SELECT clock_timestamp(), :c", "b": "SELECT clock_timestamp(), :c"}
    [told] = rehearsed(queries)
    assert "only the numbers were compared" in told
    [told] = rehearsed({**queries, "b": "SELECT now() FROM generate_series(1, 2) WHERE :c = :c"})
    assert "a finds 1 row and b 2" in told


def test_numbers_of_rows_that_change_by_themselves_are_not_compared():
    drawn = "SELECT id FROM orders WHERE random() < 0.5 AND id <> :c"
    [told] = rehearsed({"a": drawn, "b": drawn})
    assert told.startswith(
        "The rows that a and b find were not compared: the script of a finds another number of rows each time that it "
        "is executed."
    )


def test_scripts_that_write_are_compared_by_what_they_return_and_nothing_of_the_comparison_stays():
    """Each drawn set of values runs on the data as they were loaded, although both arms share one server."""
    script = (
        "BEGIN;\nUPDATE orders SET total = total + 1 WHERE id = {id};\nSELECT sum(total) FROM orders{which};\nEND;\n"
    )
    for name, which in (("old", ""), ("new", " WHERE id > 0"), ("other", " WHERE id <> 3")):
        Path(f"{name}.sql").write_text(script.format(id=":c + 1", which=which))
    old = {"workload": "old.sql"}
    assert rehearsed({"old": old, "new": {"workload": "new.sql"}}) == []
    [told] = rehearsed({"old": old, "other": {"workload": "other.sql"}})
    assert "old finds" not in told
    assert "both find 1 row, which are not the same (" in told
    Path("none.sql").write_text("UPDATE orders SET total = 0 WHERE id = :c;\n")
    assert rehearsed({"a": {"workload": "none.sql"}, "b": {"workload": "none.sql"}}) == [], "no rows to compare"


def test_of_unlike_numbers_of_statements_the_last_ones_are_compared():
    one = "SELECT count(*) FROM customers WHERE city = :c AND id <= 500"
    load = {"protocol": "simple"}
    Path("two.sql").write_text(f"SELECT 1;\nSELECT count(*) FROM ({IN}) AS t;\n")
    assert rehearsed({"two": {"workload": "two.sql"}, "one": one}, load) == []
    [told] = rehearsed({"two": {"workload": "two.sql"}, "one": one.replace("500", "5")}, load)
    assert "both find 1 row, which are not the same by the last statement" in told


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("SELECT 1 AS x \\gset\nSELECT :x;\n", "has values that only its server knows"),
        ("\\if :c > 3\nSELECT 1;\n\\else\nSELECT 2;\n\\endif\n", r"has \if"),
        ("UPDATE orders SET total = 0 WHERE id = :c;\n", "b returns rows"),
        ("\\set mine random(1, 9)\nSELECT :mine;\n", "has the variable mine, which the script of the first arm"),
    ],
)
def test_what_cannot_be_compared_is_said(script, words):
    Path("b.sql").write_text(script)
    [told] = rehearsed({"a": IN, "b": {"workload": "b.sql"}})
    assert told.startswith("The rows that a and b find were not compared: ")
    assert words in told


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (
            "SELECT id FROM customrs WHERE city = :c",
            r"the query of b, line 1 .*\"customrs\" does not exist.*, on b alone",
        ),
        ("SELECT 1 / (:c / 20 - 1)", r"the query of b, line 1 .*division by zero.*, on b alone"),
        ("SELECT :c; COPY orders TO STDOUT", r"COPY is not supported in pgbench, aborting, on b alone"),
        ("SELECT :who, :c", r"the query of b.*who.* has no value, on b alone; give the variable a value"),
    ],
    ids=["no such table", "for one value alone", "what pgbench does not know", "another variable than the values give"],
)
def test_a_query_that_fails_in_one_arm_is_refused_with_the_arm_and_the_error(query, words):
    with pytest.raises(StudyError, match=words):
        rehearsed({"a": "SELECT :c", "b": query})


@pytest.fixture
def shop(clusters):
    """Returns a database on a server that belongs to somebody else, for studies of a given server."""
    cluster = clusters(18)
    with cluster.target.connect_as_user() as session:
        session.execute("DROP DATABASE IF EXISTS shop_of_others")
        session.execute("CREATE DATABASE shop_of_others")
    target = replace(cluster.target, dbname="shop_of_others")
    with target.connect_as_user() as session:
        session.execute(SHOP)
    return target


_STATE = """SELECT (SELECT array_agg(c.oid::text || c.relname || c.relfilenode ORDER BY c.oid) FROM pg_class AS c),
    (SELECT array_agg(s.name || '=' || s.setting ORDER BY s.name) FROM pg_settings AS s
        WHERE s.name NOT LIKE 'transaction%'),
    (SELECT md5(string_agg(o::text, ' ' ORDER BY id)) FROM orders AS o)"""


def test_a_given_server_is_shared_and_left_as_it_was(shop):
    with shop.connect_as_user() as session:
        before = session.execute(_STATE).fetchall()
        dsn = f"host={shop.host} port={shop.port} user={shop.user} dbname={shop.dbname}"
        study = study_of({"in": IN, "exists": EXISTS}, {"data": None}, server={"dsn": dsn})
        assert study.plan.shares_server
        run(study)
        assert session.execute(_STATE).fetchall() == before
    assert study.facts()["exists"].facts["answers"].keys() == {"draws"}
    writes = {"a": IN, "b": "UPDATE orders SET total = 0 WHERE id = :c"}
    Path("results").rename("first")
    with pytest.raises(StudyError, match=r"b\.query\.sql changes data, and on a given server the changes stay"):
        run(study_of(writes, {"data": None}, server={"dsn": dsn}))
    with shop.connect_as_user() as session:
        assert session.execute(_STATE).fetchall() == before


def test_a_report_shows_the_texts_and_the_plans_of_both_and_a_bundle_keeps_the_scripts(tmp_path):
    study = study_of({"in": IN, "exists": EXISTS})
    run(study)
    build_report(study)
    text = (study.path / "report.md").read_text()
    page = (study.path / "report.html").read_text()
    assert re.search(r"In the rehearsal exists finds the same rows as in \(\d+ draws of values\)", page)
    assert "answers.draws" not in text
    assert "in runs in.query.sql; exists runs exists.query.sql." in text
    assert "id IN (SELECT customer FROM orders)" in text
    assert "Plans of the statement of each arm" in text
    assert "Semi Join" in text.partition("Plans of the statement of each arm")[2]
    path = tmp_path / "b.tar.xz"
    with path.open("wb") as file:
        write_bundle(study, file, everything=True)
    with open_study(path) as kept:
        assert kept.spec.scripts == study.spec.scripts
        assert kept.plan.load_points == study.plan.load_points
        assert differences(kept) == []


INDEXED = {"setup_sql": "CREATE INDEX ON customers (city)"}
FEWER = {"setup_sql": ["CREATE INDEX ON customers (city)", "DELETE FROM customers WHERE city = 29"]}


def of_setups(queries, **load):
    return queries, {"query": EXISTS, **load}


def test_arms_that_differ_in_an_index_find_the_same_rows_on_copies_of_their_own():
    study = study_of(*of_setups({"plain": {}, "indexed": INDEXED}))
    said = run(study)
    assert not study.plan.shares_server
    assert not [text for text in said if "find the same rows" in text]
    answers = ArmAnswers.model_validate(study.facts()["indexed"].facts["answers"])
    assert answers == ArmAnswers(draws=answers.draws)
    assert answers.draws >= 20
    assert findings(study) == []
    build_report(study)
    text = (study.path / "report.md").read_text()
    assert "The SQL that each arm runs on its own copy of the data before each trial" in text
    assert "CREATE INDEX ON customers (city)" in text
    page = (study.path / "report.html").read_text()
    assert "The arms differ in the SQL that runs on their data before each trial." in page
    assert re.search(r"In the rehearsal indexed finds the same rows as plain \(\d+ draws of values\)", page)


def test_sql_of_an_arm_that_changes_what_the_load_finds_withholds_the_verdict_unless_that_is_meant():
    arms = {"plain": {}, "fewer": FEWER}
    [told] = rehearsed(*of_setups(arms))
    assert re.match(
        r"there will be no verdict: plain and fewer do not find the same rows: with c = 29, plain finds \d+ rows and "
        r"fewer 0 \(\d+ of \d+ draws of values differ\)\. Correct the setup_sql of the arms; if other answers",
        told,
    ), told
    assert rehearsed(*of_setups(arms, answers="may differ")) == []


@pytest.mark.parametrize("weights", ["", "=1"], ids=["one after the other", "a mix"])
def test_of_several_scripts_the_one_that_finds_other_rows_is_named(weights):
    Path("one.sql").write_text("SELECT count(*) FROM orders;\n")
    Path("two.sql").write_text("\\set c random(0, 29)\nSELECT id FROM customers WHERE city = :c;\n")
    load = {"query": None, "values": None, "workload": [f"one.sql{weights}", f"two.sql{weights}"]}
    assert rehearsed(*of_setups({"plain": {}, "indexed": INDEXED}, **load)) == []
    [told] = rehearsed(*of_setups({"plain": {}, "fewer": FEWER}, **load))
    assert re.match(
        "there will be no verdict: plain and fewer do not find the same rows: in two.sql, with c = 29, plain finds",
        told,
    ), told


def test_a_query_that_the_sql_of_one_arm_breaks_is_refused_with_the_arm_and_the_error():
    with pytest.raises(StudyError, match=r'column "city" does not exist, on gone alone'):
        rehearsed(*of_setups({"plain": {}, "gone": {"setup_sql": "ALTER TABLE customers DROP city"}}))
