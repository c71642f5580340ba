"""Studies of suites on real servers: times and answers of queries, an index that is missing, and empty caches."""

from __future__ import annotations

import os
import re
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pgtrial.conduct import preliminary
from pgtrial.conduct.progress import QueryEnds, StudyBegins, TrialBegins
from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.study_directory import find_or_create
from pgtrial.model.errors import BudgetError, StudyError
from pgtrial.model.records.trial import Trial
from pgtrial.report.brief import brief
from pgtrial.report.data import read_data
from pgtrial.report.sections import sections
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.running import ask_to_stop
from pgtrial.store.study_file import build_study
from tests.conftest import require_engine

pytestmark = pytest.mark.server

SHOP = """CREATE TABLE orders AS SELECT i AS id, i % 97 AS customer, i * 3 AS cents FROM generate_series(1, 50000) i;
CREATE INDEX orders_id ON orders (id);
"""

QUERIES = {
    "one": "-- by its number\nSELECT * FROM orders WHERE id = 4711;\n",
    "all": "SET work_mem = '8MB'; SELECT customer, sum(cents) FROM orders GROUP BY customer",
    "server": "SELECT current_setting('work_mem')",
}

ARMS = {"indexed": {}, "dropped": {"setup_sql": ["DROP INDEX orders_id"], "settings": {"work_mem": "5MB"}}}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workspace: Any) -> None:
    require_engine()
    monkeypatch.chdir(tmp_path)
    write(QUERIES)
    Path("shop.sql").write_text(SHOP)


def write(queries: dict[str, str]) -> None:
    Path("queries").mkdir(exist_ok=True)
    for name, text in queries.items():
        Path("queries", f"{name}.sql").write_text(text)


def run(blocks: int = 1, arms: dict[str, Any] | None = None, **suite: Any) -> tuple[StudyDirectory, list[Any]]:
    load = {"workload": "suite:queries", "data": "shop.sql", "suite": suite}
    verdict = {"blocks": blocks}
    return start({"load": load, "arms": arms or ARMS, "verdict": verdict, "study": {"seed": 5}})


def start(sections: dict[str, Any], blocks: int | None = None) -> tuple[StudyDirectory, list[Any]]:
    """Runs a study to its end, or its first block alone; returns it with its events."""
    spec = build_study(sections, "test")
    study, _ = find_or_create(spec, None, anew=True)
    events: list[Any] = []

    def on_event(event: Any) -> None:
        events.append(event)
        if blocks == 1 and isinstance(event, TrialBegins):
            ask_to_stop(study.path)

    run_study(study, on_event, spec=spec)
    return study, events


def store_other_blocks(study: StudyDirectory, slower: str) -> None:
    """Stores copies of the trials of the first block as those of all other blocks, an hour apart, with some noise. One
    query takes as long as it took in the same arm, and all others as long as they took in the first arm: measured in
    all blocks, a query that is no slower would be called slower in one of a few hundred studies.
    """
    noise = np.random.default_rng(3)
    first = by_arm(study)
    base = first[study.plan.baseline].suite
    assert base is not None
    for planned in study.plan.trials[len(first) :]:
        trial = first[planned.arm]
        assert trial.suite is not None
        measured = [
            ours if ours.query == slower else theirs
            for ours, theirs in zip(trial.suite.queries, base.queries, strict=True)
        ]
        queries = [
            query.model_copy(update={"times_us": [time_us * noise.normal(1, 0.02) for time_us in query.times_us]})
            for query in measured
        ]
        shutil.copytree(study.trial_path(trial), study.begin_trial(planned), dirs_exist_ok=True)
        own: dict[str, Any] = {"index": planned.index, "block": planned.block, "seed": planned.seed}
        for moment in ("started", "ended"):
            own[moment] = _later(getattr(trial, moment), planned.block)
        suite = trial.suite.model_copy(update={"queries": queries})
        study.write_trials([trial.model_copy(update={**own, "suite": suite})])


def _later(moment: str, hours: int) -> str:
    return (datetime.fromisoformat(moment) + timedelta(hours=hours)).isoformat(timespec="milliseconds")


def test_a_block_that_does_not_count_finds_the_time_of_the_queries() -> None:
    spec = build_study({"load": {"workload": "suite:queries", "data": "shop.sql"}, "arms": ARMS}, "test")
    study, _ = find_or_create(spec, None, anew=True)
    run_study(study, lambda event: ask_to_stop(study.path) if isinstance(event, TrialBegins) else None, spec=spec)
    plan = study.plan
    assert [trial.block for trial in study.trials()] == [0, 0]
    assert plan.lengths is not None
    block = plan.lengths.preliminary
    assert block is not None
    assert 0 < 2 * block.load_s < block.wall_s
    assert plan.block_estimate_s == pytest.approx(2 * block.load_s + block.overhead_s)
    assert plan.max_blocks == int((spec.verdict.budget - block.wall_s) / plan.block_estimate_s)


def test_queries_that_are_too_long_for_the_budget_end_the_study_before_its_first_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(preliminary, "longest_loads", lambda spec: 0.0)
    with pytest.raises(BudgetError, match=r"the queries took .*s on \w+, but a verdict needs at least 8 blocks; set"):
        start({"load": {"workload": "suite:queries", "data": "shop.sql"}, "arms": ARMS})


def by_arm(study: StudyDirectory) -> dict[str, Trial]:
    return {trial.arm: trial for trial in study.trials()}


def test_queries_are_timed_and_their_answers_and_plans_compared() -> None:
    study, events = run(runs=2)
    trials = by_arm(study)
    for trial in trials.values():
        assert trial.reason is None
        assert trial.suite is not None
        assert [(query.query, len(query.times_us)) for query in trial.suite.queries] == [
            ("all", 2),
            ("one", 2),
            ("server", 2),
        ]
        assert [[answer.rows for answer in query.answers] for query in trial.suite.queries] == [[97], [1], [1]]
        assert trial.measured is not None
        assert trial.measured.transactions == 6
    base, other = (trials[arm].suite for arm in ("indexed", "dropped"))
    assert base is not None
    assert other is not None
    assert base.queries[0].answers == other.queries[0].answers
    assert base.queries[2].answers != other.queries[2].answers
    ended = [event for event in events if isinstance(event, QueryEnds)]
    assert [(event.number, event.of, event.counted) for event in ended[:9]] == [
        (number, 9, number > 3) for number in range(1, 10)
    ]
    begins = next(event for event in events if isinstance(event, StudyBegins))
    assert 0 < begins.left_s < 600, "as rehearsed, and not the budget of an hour"
    data = read_data(study)
    findings = {finding.rule: finding for finding in data.result.findings}
    assert findings["unequal_results"].message.startswith("The query server does not return the same rows: 1 rows in")
    assert "unsteady_results" not in findings
    assert [row.query for row in data.result.queries] == [None, "all", "one", "server"]
    shown = {section.topic.key: section for section in sections(data)}
    assert [row[0] for row in shown["queries"].tables[0].rows] == ["all, geometric mean", "all", "one", "server"]
    # of the three queries one alone has other plans, and they are shown
    same = {row[1]: row[2] for row in shown["plans"].tables[0].rows}
    assert same == {"all": "yes", "one": "no", "server": "yes"}
    assert "Index" in str(shown["plans"].tables[1].rows)
    assert "tps" not in shown


def test_the_report_names_the_query_of_a_dropped_index_with_both_plans_and_no_other() -> None:
    write(
        {
            # without the index each of the numbers reads the whole table, some hundred times as long
            "numbers": "SELECT i, (SELECT max(cents) FROM orders WHERE id = i) FROM generate_series(1, 30) i",
            "customers": "SELECT customer, count(*) FROM orders GROUP BY customer",
            "newest": "SELECT cents FROM orders ORDER BY cents DESC LIMIT 3",
            "server": "SELECT count(*) FROM orders WHERE cents % 7 = 0",
        }
    )
    for query in ("all", "one"):
        Path("queries", f"{query}.sql").unlink()
    arms = {"indexed": {}, "dropped": {"setup_sql": ["DROP INDEX orders_id"]}}
    asked = {
        "load": {"workload": "suite:queries", "data": "shop.sql"},
        "arms": arms,
        "verdict": {"blocks": 10, "margin": "40%"},
        "study": {"seed": 5},
    }
    study, _ = start(asked, blocks=1)
    store_other_blocks(study, slower="numbers")
    data = read_data(study)
    slower = [claim.query for claim in data.result.queries if claim.query and claim.is_slower]
    assert slower == ["numbers"]
    lines = {line.label: line.text for line in brief(data.result, data.plan).headlines[0].lines}
    assert re.match(r"of 4: 1 slower: numbers \([\d.,]+ times as long\)", lines["queries"])
    assert "faster" not in lines["queries"]
    plans = next(section for section in sections(data) if section.topic.key == "plans")
    (caption,) = (table.caption for table in plans.tables[1:])
    assert re.fullmatch(r"Plans of numbers, [\d.,]+ times as long in dropped", caption)
    indexed, dropped = ("\n".join(column) for column in zip(*plans.tables[1].rows, strict=True))
    assert "Index Scan using orders_id" in indexed
    assert "Seq Scan on orders" in dropped


@pytest.mark.parametrize("cache", ["warm", "os", "cold"])
def test_queries_read_what_their_cache_does_not_have(
    cache: str, state_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write({"one": "SELECT count(*) FROM orders", "all": "SELECT sum(cents) FROM orders"})
    on_device = os.major(state_root.stat().st_dev) > 0
    dropped: list[Any] = []

    def drop(machine: Any) -> None:
        """Empties the kernel's cache of the files of this test's servers alone: other programs use it, too."""
        dropped.append(machine)
        for file in filter(Path.is_file, (state_root / "runs").rglob("*")):
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    monkeypatch.setattr("pgtrial.servers.made.drop_caches", drop)
    monkeypatch.setattr("pgtrial.servers.made.may_drop_caches", lambda machine: True)
    study, _ = run(cache=cache, unchecked="server", arms={"a": {}, "b": {"settings": {"jit": "off"}}})
    trials = study.trials()
    assert len(dropped) == (3 * len(trials) if cache == "cold" else 0)
    for trial in trials:
        assert trial.reason is None
        assert trial.server_log_tail == []
        pages = trial.relations["orders"]["bytes_table"] / 8192
        read = trial.server_deltas["database"]["blks_read"]
        # each of two queries reads the whole table again, or none does
        assert read < pages / 2 if cache == "warm" else read > 1.9 * pages
        from_device = trial.server_deltas["host"].get("device_read_bytes")
        if cache == "cold" and on_device and from_device is not None:
            assert from_device > 1.9 * 8192 * pages
    if cache != "cold" or on_device:
        assert "caches_not_empty" not in {finding.rule for finding in read_data(study).result.findings}


def test_the_cache_of_the_kernel_takes_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgtrial.servers.made.may_drop_caches", lambda machine: False)
    with pytest.raises(StudyError, match=r'arms\.indexed: \[load\.suite\] cache = "cold" empties the kernel') as error:
        run(cache="cold")
    assert str(error.value).endswith('run pgtrial as root, or write cache = "os"')


def test_a_query_that_fails_ends_the_study_before_its_first_trial() -> None:
    write({"server": "SELECT * FROM ordres"})
    with pytest.raises(StudyError) as error:
        run()
    assert str(error.value) == (
        'queries/server.sql: PostgreSQL says: relation "ordres" does not exist, on all arms; correct the name, or add '
        "what is missing to the data"
    )


def test_a_given_server_has_its_own_data(clusters: Any) -> None:
    target = clusters(18).target
    dsn = f"host={target.host} port={target.port} user={target.user} dbname={target.dbname}"
    given = {"as it is": {"dsn": dsn}, "no jit": {"dsn": dsn, "settings": {"jit": "off"}}}
    for query in QUERIES:
        Path("queries", f"{query}.sql").unlink()
    write({"tables": "SET LOCAL work_mem = '5MB'; SELECT relname FROM pg_class WHERE relkind = 'r' AND oid < 10000"})

    study = {"load": {"workload": "suite:queries"}, "arms": given, "verdict": {"blocks": 1}}
    directory, _ = start(study)
    for trial in directory.trials():
        assert trial.reason is None
        assert trial.suite is not None
        assert trial.suite.queries[0].answers[0].rows > 10
    write({"tables": "DELETE FROM orders"})
    with pytest.raises(StudyError) as error:
        start(study)
    assert str(error.value).startswith('queries/tables.sql, line 1: PostgreSQL says: relation "orders" does not exist')
    write({"tables": "CREATE TABLE orders AS SELECT 1"})
    with pytest.raises(StudyError, match=r"arms.as it is: the query queries/tables.sql changes data, and on a given"):
        start(study)
