"""Arms with data or values of their own, on real servers: what is drawn, compared, and said."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from pgtrial.conduct.planning.plan import More, make_plan
from pgtrial.conduct.progress import Preparing
from pgtrial.conduct.run_study import rehearse_alone, run_study
from pgtrial.model.errors import StudyError
from pgtrial.model.marks import in_toml
from pgtrial.model.records.answers import ArmAnswers
from pgtrial.model.study.spec import StudySpec
from pgtrial.report.build import build_report
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from tests.conduct.small import FAST, each_once, undeclared_differences
from tests.conftest import require_engine

pytestmark = pytest.mark.server

V4 = """CREATE TABLE events (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), body text);
INSERT INTO events (body) SELECT repeat('e', 80) FROM generate_series(1, 2000);
"""
COLUMNS = """CREATE TABLE orders (id int PRIMARY KEY, customer int);
INSERT INTO orders SELECT i, i % 50 FROM generate_series(1, 1000) AS i;
"""
DOCUMENTS = """CREATE TABLE orders (id int PRIMARY KEY, body jsonb);
INSERT INTO orders SELECT i, jsonb_build_object('customer', i % 50) FROM generate_series(1, 1000) AS i;
"""
OF_COLUMNS = "SELECT id FROM orders WHERE customer = (SELECT customer FROM orders WHERE id = :id)"
OF_DOCUMENTS = "SELECT id FROM orders WHERE body -> 'customer' = (SELECT body -> 'customer' FROM orders WHERE id = :id)"
FOUND = "SELECT 1 / count(*) FROM events WHERE id = :id"
"""A query that fails for an id that is not in the table."""
ID = {"id": "events.id"}
LOAD = {"clients": 1, "warmup": "0s", "duration": "1s", "interleave": "off"}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch, workspace):
    require_engine()
    monkeypatch.chdir(tmp_path)
    texts = {"v4": V4, "v7": V4.replace("gen_random_uuid", "uuidv7"), "columns": COLUMNS, "documents": DOCUMENTS}
    for name, text in texts.items():
        Path(f"{name}.sql").write_text(text)
    Path("insert.sql").write_text("INSERT INTO events (body) VALUES (repeat('e', 80));\n")


def spec_of(arms, load) -> StudySpec:
    keys = {"load": {**LOAD, **load}, "server": {"settings": FAST}, "arms": arms, "verdict": {"blocks": 1}}
    return build_study(keys, "test")


def run(arms, load) -> tuple[StudyDirectory, list[str]]:
    """Runs a study of one block. Returns it, and the messages that it printed before the first trial."""
    spec, said = spec_of(arms, load), []
    study = StudyDirectory.create(Path("results"), spec, make_plan(spec, 11, "2026-11-29T14:12:00+00:00"))
    run_study(study, said.append)
    assert each_once(study)
    assert [trial.reason for trial in study.trials()] == [None, None]
    return study, [in_toml(event.text) for event in said if isinstance(event, Preparing)]


def rehearsed(arms, load) -> list[str]:
    shutil.rmtree("results", ignore_errors=True)
    spec, said = spec_of(arms, load), []
    study = StudyDirectory.create(Path("results"), spec, make_plan(spec, 11, "2026-11-29T14:12:00+00:00"))
    rehearse_alone(spec, study.plan, said.append)
    texts = [in_toml(event.text) for event in said if event.stays]
    return [text for text in texts if "same rows" in text]  # a busy machine may have more to say


def test_data_that_are_the_difference_are_declared_and_their_rows_are_not_compared():
    study, said = run({"v4": {"data": "v4.sql"}, "v7": {"data": "v7.sql"}}, {"workload": "insert.sql"})
    assert not [text for text in said if "rows" in text]
    facts = {arm: facts.facts for arm, facts in study.facts().items()}
    assert facts["v4"]["load"]["data"].startswith("v4.sql (SHA-256 ")
    assert facts["v7"]["load"]["data"].startswith("v7.sql (SHA-256 ")
    assert all("data" not in of_arm for of_arm in facts.values())
    found = study.audit().findings
    assert undeclared_differences(found) == []
    assert not {"unequal_data", "other_answers", "rows_not_compared"} & {each.rule for each in found}
    build_report(study)
    text = (study.path / "report.md").read_text()
    assert "insert.sql on v4.sql or v7.sql" in text
    assert "each arm with its own loaded data" in text


def test_two_schemas_with_a_query_each_have_to_find_the_same_rows():
    arms = {
        "columns": {"data": "columns.sql", "query": OF_COLUMNS},
        "documents": {"data": "documents.sql", "query": OF_DOCUMENTS},
    }
    load = {"values": {"id": "orders.id"}}
    study, _ = run(arms, load)
    answers = ArmAnswers.model_validate(study.facts()["documents"].facts["answers"])
    assert answers == ArmAnswers(draws=answers.draws)
    assert answers.draws >= 20
    Path("documents.sql").write_text(DOCUMENTS.replace("i % 50", "i % 40"))
    [told] = rehearsed(arms, load)
    assert re.match(r"there will be no verdict: The scripts of columns and documents do not find the same rows: ", told)
    assert rehearsed(arms, {**load, "answers": "may differ"}) == []


def test_values_that_only_the_data_of_one_arm_have_are_refused_with_the_key_of_the_arm():
    arms = {"v4": {"data": "v4.sql"}, "v7": {"data": "v7.sql"}}
    with pytest.raises(StudyError, match=r"all of the values .* or give the arm values of its own data: \[arms\.v7\]"):
        rehearsed(arms, {"query": FOUND, "values": ID})


def test_each_arm_finds_the_values_of_its_own_data_and_so_it_does_in_a_study_that_goes_on():
    arms = {arm: {"data": f"{arm}.sql", "values": ID} for arm in ("v4", "v7")}
    study, _ = run(arms, {"query": FOUND, "observe": False})
    [found] = [each for each in study.audit().findings if each.rule == "other_answers"]
    assert (found.severity, found.arms) == ("warning", ["v4", "v7"])
    assert "were not compared: the variable id has values of its own in v4" in found.message
    run_study(study, lambda event: None, more=More(blocks=1))
    trials = study.trials()
    assert len(trials) == 4
    assert not [
        trial for trial in trials if trial.reason is not None or trial.measured is None or trial.measured.failures
    ]


def test_values_of_one_arm_come_from_its_own_table_on_a_server_that_both_share():
    made = (
        f"{V4}CREATE TABLE later (id uuid PRIMARY KEY);\nINSERT INTO later SELECT uuidv7() FROM generate_series(1, 99);"
    )
    Path("v4.sql").write_text(made)
    arms = {"old": {"query": FOUND}, "new": {"query": FOUND.replace("events", "later"), "values": {"id": "later.id"}}}
    study, _ = run(arms, {"data": "v4.sql", "values": ID, "interleave": "auto"})
    assert study.plan.shares_server
    assert study.facts()["old"].facts["load"]["values"] == "id = events.id"
    assert study.facts()["new"].facts["load"]["values"] == "id = later.id"
    with pytest.raises(StudyError, match=r"\[arms\.new\] values: id = nowhere\.id: PostgreSQL says: relation"):
        rehearsed(
            {"old": {}, "new": {"values": {"id": "nowhere.id"}}}, {"query": FOUND, "data": "v4.sql", "values": ID}
        )
