"""Suites as studies name them: folders of queries, their files, and what goes with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pgtrial.conduct.planning.interleaving import why_not
from pgtrial.conduct.planning.lengths import in_words, measured_lengths
from pgtrial.conduct.planning.plan import make_plan, with_lengths
from pgtrial.loads.data.kinds import NO_TABLES, data_of
from pgtrial.loads.data.suite_tables import SuiteTables
from pgtrial.model.errors import StudyError
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import PreliminaryBlock
from pgtrial.model.study.design import Design
from pgtrial.model.study.frozen import freeze, thaw
from pgtrial.model.study.spec import StudySpec, is_paced, load_points
from pgtrial.statistics.p9 import first_look
from pgtrial.store.study_file import build_study

ARMS = {"off": {"settings": {"jit": "off"}}, "on": {"settings": {"jit": "on"}}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    queries = tmp_path / "queries"
    queries.mkdir()
    (queries / "q02.sql").write_text("select 2;\n")
    (queries / "q01.sql").write_text("select 1;\r\n")
    (queries / "README").write_text("not a query")
    return tmp_path


def study(
    folder: Path, arms: dict[str, Any] | None = None, verdict: dict[str, Any] | None = None, **load: Any
) -> StudySpec:
    load = {"workload": "suite:queries", **load}
    return build_study({"load": load, "arms": arms or ARMS, "verdict": verdict or {}}, "study.toml", folder)


def test_a_suite_is_a_folder_with_a_file_for_each_query(folder: Path) -> None:
    spec = study(folder)
    assert spec.load.workload == ["suite:scripts/queries"]
    assert spec.scripts == {"queries/q01.sql": "select 1;\r\n", "queries/q02.sql": "select 2;\n"}
    assert spec.origin("queries/q02.sql") == "queries/q02.sql"
    (point,) = load_points(spec)
    assert point.suite is not None
    assert (point.suite.queries, point.suite.limit_s, point.suite.cache) == (["q01", "q02"], 60.0, "warm")
    assert (point.label, point.slug) == ("suite:queries, 2 queries, caches warm", "suite-queries-own-warm")
    assert is_paced(spec)
    assert data_of(spec, point) == NO_TABLES
    assert why_not(Design(spec)) == "the queries of a suite run to their end"


def test_a_frozen_suite_is_read_again(folder: Path) -> None:
    spec = study(folder, suite={"runs": 3, "limit": "5s", "cache": "os", "unchecked": "q02"})
    again = thaw(freeze(spec)).with_scripts(spec.scripts)
    assert load_points(again) == load_points(spec)
    assert again.load.longest_s == 6 * 65.0 + 60.0
    # the study's own directory is a study file too
    (folder / "scripts").mkdir()
    for name, text in spec.scripts.items():
        (folder / "scripts" / name).parent.mkdir(exist_ok=True)
        (folder / "scripts" / name).write_bytes(text.encode())
    (folder / "study.toml").write_text(freeze(spec))
    assert build_study(again.model_dump(exclude_none=True), "study.toml", folder) == again


def test_the_scale_of_a_suite_may_be_a_fraction_and_a_whole_number_stays_one(folder: Path) -> None:
    spec = study(folder, workload="suite:reports", scale=0.1)
    assert thaw(freeze(spec)).load == spec.load
    (point,) = load_points(spec)
    assert (point.load, point.slug) == ("suite:reports, scale 0.1", "suite-reports-s0.1-warm")
    assert data_of(spec, point) == SuiteTables("reports", 0.1)
    (whole,) = load_points(study(folder, workload="suite:reports", scale=2.0))
    assert '"scale":2,' in whole.model_dump_json()
    assert LoadPoint.model_validate_json(whole.model_dump_json()).label == whole.label


def test_own_data_is_that_of_the_study(folder: Path) -> None:
    (folder / "shop.sql").write_text("create table orders (id int);")
    (point,) = load_points(study(folder, data="shop.sql"))
    assert (point.data, point.label) == ("shop.sql", "suite:queries on shop.sql, 2 queries, caches warm")


def test_the_limit_is_that_of_the_study_or_of_the_suite(folder: Path) -> None:
    (folder / "queries" / "suite.toml").write_text('description = "Two numbers."\nlimit = "2min"\n')
    assert study(folder).load.suite.limit_s == 120
    assert study(folder, suite={"limit": "90s"}).load.suite.limit_s == 90


@pytest.mark.parametrize(
    ("load", "words"),
    [
        ({"workload": "suite:nothing"}, "suite:nothing is neither a folder of queries (*.sql) nor a suite of pgtrial"),
        ({"workload": "suite:queries/q01.sql"}, "suite:queries/q01.sql is a file; a suite is a folder"),
        ({"workload": "suite:"}, "is neither a folder"),
        ({"workload": ["suite:queries", "select-only"]}, "give the suite a study of its own"),
        ({"clients": 4}, "clients is not for a suite: its queries run one after the other"),
        ({"duration": "10s"}, "duration is not for a suite"),
        ({"scale": 5}, "[load] scale has no effect for the suite queries, whose data pgtrial does not make"),
        ({"scale": [1, 2]}, "a suite has one scale"),
        ({"workload": "suite:joins", "scale": 0.005}, "a suite's scale is 0.01 to 100 with at most two decimals, and"),
        ({"workload": "suite:joins", "scale": 101}, "not 101; change it"),
        ({"workload": "suite:joins", "scale": "small"}, "[load] scale: 'small' is not a scale factor; write a"),
        ({"workload": "suite:joins", "scale": -1}, "[load] scale: -1 is not a scale factor; write a number above"),
        ({"workload": "tpcb-like", "scale": 0.5}, "scale is 0.5, and for tpcb-like it has to be a whole number; round"),
        ({"values": {"id": "orders.id"}}, "values are only for queries and pgbench scripts"),
        ({"suite": {"unchecked": ["q3"]}}, "[load.suite] unchecked: there is no query 'q3' in queries; there are q01"),
        ({"suite": {"cache": "hot"}}, "[load] suite.cache must be 'warm', 'os' or 'cold'"),
        ({"suite": {"limits": 3}}, "unknown key 'limits' in [load.suite]; did you mean 'limit'?"),
        ({"workload": "select-only", "suite": {"runs": 2}}, "suite is for the workload suite:NAME"),
    ],
)
def test_what_does_not_go_with_a_suite_is_a_sentence(folder: Path, load: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as error:
        study(folder, **load)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("limit = ", "suite.toml is not valid TOML"),
        ('generator = "x"', "suite.toml: line 1: unknown key 'generator'; known are description, data, limit"),
        ('data = "x"', "suite.toml: line 1: data: 'x' is not a data set of the load engine"),
        ("limit = 0", "suite.toml: line 1: limit must be greater than 0"),
    ],
)
def test_a_wrong_suite_file_is_a_sentence(folder: Path, text: str, words: str) -> None:
    (folder / "queries" / "suite.toml").write_text(text)
    with pytest.raises(StudyError) as error:
        study(folder)
    assert words in str(error.value)


def test_files_that_are_no_queries_are_refused(folder: Path) -> None:
    (folder / "queries" / "q 3.sql").write_text("select 3")
    with pytest.raises(StudyError, match=r"'q 3\.sql' cannot be the name of a suite or a query"):
        study(folder)
    (folder / "queries" / "q 3.sql").unlink()
    (folder / "queries" / "q01.sql").write_bytes(b"select '\xff'")
    with pytest.raises(StudyError, match=r"the file q01\.sql of the suite queries is not a text in UTF-8"):
        study(folder)
    (folder / "empty").mkdir()
    with pytest.raises(StudyError, match="the suite empty has no queries"):
        study(folder, workload="suite:empty")


@pytest.mark.parametrize("cache", ["os", "cold"])
def test_a_given_server_keeps_its_caches(folder: Path, cache: str) -> None:
    given = {"here": {"dsn": "host=/tmp"}, "there": {"dsn": "host=/var"}}
    with pytest.raises(
        StudyError, match=rf'arms.here\] \[load.suite\] cache = "{cache}" needs a restart of the server before'
    ):
        study(folder, given, suite={"cache": cache})
    assert load_points(study(folder, given))


def test_a_block_that_does_not_count_finds_the_time_of_a_suite(folder: Path) -> None:
    spec = study(folder, verdict={"budget": "10min"})
    plan = make_plan(spec, 1, "now")
    assert plan.awaits_lengths
    assert plan.max_blocks == first_look(2) == 7
    assert "7 blocks if a trial takes 38s" in next(in_words(plan, Design(spec)))
    block = PreliminaryBlock(wall_s=10.0, load_s=3.0, overhead_s=4.0, checkpoint_s=0.1, shapes=[])
    known = with_lengths(
        plan, Design.planned(spec, plan), measured_lengths(Design.planned(spec, plan), plan, block, None)
    )
    assert (known.max_blocks, known.trial_estimate_s) == ((600 - 10) // 10, 5.0)
    assert next(in_words(known, Design(spec))) == "the suite takes 3s in the mean of all arms; 59 blocks of about 10s"


def test_a_suite_that_is_too_long_for_the_budget_is_answered_with_the_budget_that_it_takes(folder: Path) -> None:
    spec = study(folder, verdict={"budget": "10min"})
    plan = make_plan(spec, 1, "now")
    block = PreliminaryBlock(wall_s=100.0, load_s=45.0, overhead_s=10.0, checkpoint_s=0.1, shapes=[])
    with pytest.raises(StudyError) as refused:
        with_lengths(plan, Design.planned(spec, plan), measured_lengths(Design.planned(spec, plan), plan, block, None))
    assert str(refused.value) == (
        "a verdict needs at least 7 blocks of about 1min 40s, and the budget of 10min holds 5; set [verdict] budget = "
        '"12min" or more, take less data ([load] scale), or use fewer queries'
    )


def test_a_number_of_blocks_needs_no_block_before_them(folder: Path) -> None:
    plan = make_plan(study(folder, verdict={"blocks": 9}), 1, "now")
    assert (plan.lengths, plan.max_blocks) == (None, 9)


def test_the_first_look_is_one_that_can_decide_each_query(folder: Path) -> None:
    for number in range(3, 23):
        (folder / "queries" / f"q{number:02}.sql").write_text("select 3")
    spec = study(folder)
    assert Design(spec).claims == 22
    plan = make_plan(spec, 1, "2026-11-20T14:12:00+00:00")
    assert plan.looks[0] == first_look(22) > first_look(1)
