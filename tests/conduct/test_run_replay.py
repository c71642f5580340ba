"""Studies that replay a capture on real servers: a shop's sessions, with an index and without it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import psycopg
import pytest

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.conduct.progress import Preparing
from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.statement_plans import missing_plans
from pgtrial.conduct.trial.run_trials import run_trials
from pgtrial.loads.target import Target
from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.report.brief import brief
from pgtrial.report.data import read_data
from pgtrial.report.tables.statements import plan_tables
from pgtrial.servers.arm import Arm
from pgtrial.servers.arms import make_arms
from pgtrial.store.bundle import files_of
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from tests.conduct.small import FAST
from tests.conftest import require_engine
from tests.recorded_shop import DATA, HISTORY, LOGGING, recorded, serve_customers

pytestmark = pytest.mark.server


ARMS = {"as it is": {}, "no index": {"setup_sql": "DROP INDEX orders_customer"}}
TABLES = {"customer": "id, spent", "item": "id, price", "orders": "customer, item, amount"}
"""The columns whose contents do not depend on the order of the sessions; numbers from a sequence would."""


@pytest.fixture
def shop(start_cluster, tmp_path) -> Path:
    """Returns a folder with the capture of three sessions, which ran one after the other. The last session is the help
    desk's.
    """
    require_engine()
    cluster = start_cluster(18, settings=LOGGING)
    with recorded(cluster, cluster.data_directory.with_suffix(".log"), tmp_path / "capture") as target:
        serve_customers(target, sessions=3, rounds=60)
    return tmp_path


def study_of(folder: Path, blocks: int, arms: object = None, **replay: object) -> StudyDirectory:
    """Returns a study that replays the folder's capture on one connection, one session after the other, without
    pauses.
    """
    asked = {"data": str(DATA), "speed": "as-fast-as-possible", "max_connections": 1, **replay}
    data = {
        "load": {"workload": "replay:capture", "replay": asked, "observe": False},
        "server": {"settings": FAST},
        "arms": arms or ARMS,
        "verdict": {"blocks": blocks, "margin": "25%", "allow_busy_client": True},
    }
    spec = build_study(data, "test", folder)
    return StudyDirectory.create(folder / "results", spec, make_plan(spec, 11, "2026-11-23T14:12:00+00:00"))


def test_both_arms_have_the_same_rows_after_a_replay(shop, workspace):
    study = study_of(shop, blocks=1, hash_results=True)
    contents: dict[str, list[list[tuple[object, ...]]]] = {}

    def look(arm: Arm, target: Target, place: int | None, program: str | None) -> None:
        with target.connect_as_user() as session:
            contents[arm.name] = [
                session.execute(f"SELECT {columns} FROM {table} ORDER BY {columns}".encode()).fetchall()
                for table, columns in TABLES.items()
            ]

    arms = make_arms(study.design, workspace)
    for planned in study.plan.trials:
        run_trials(study, [planned], arms, lambda event: None, while_served=look)
    trials = StudyDirectory.open(study.path).trials()
    assert [(trial.status, trial.reason) for trial in trials] == [("completed", None)] * 2
    assert contents["as it is"] == contents["no index"]
    assert len(contents["no index"][2]) > 100_000
    for trial in trials:
        assert trial.replay is not None
        assert trial.measured is not None
        assert trial.measured.transactions == trial.replay.statements == study.plan.load_points[0].replay.statements
        assert trial.replay.sessions["finished"] == 3
        assert (trial.replay.unexpected_failures, trial.warmup) == ({}, None)
        (history,) = [each for each in trial.replay.templates if each.text == HISTORY]
        assert history.statements <= history.rows <= 10 * history.statements
        assert history.time_us is not None
        assert 0 < history.time_us.mean <= history.time_us.max
    rows = [{each.template: (each.rows, each.rows_hash) for each in trial.replay.templates} for trial in trials]
    assert rows[0] == rows[1]
    assert any(rows_hash is not None for _, rows_hash in rows[0].values())


def test_what_the_engine_has_against_a_capture_ends_the_study_at_once(shop, workspace):
    study = study_of(shop, blocks=1, max_connections=40, copies=40, arms={"a": {}, "b": {"settings": {"jit": "off"}}})
    spec = study.spec.model_copy(update={"server": study.spec.server.model_copy(update={"settings": FEW})})
    arms = make_arms(Design(spec), workspace)
    told = r"the engine refuses the replay: --max-connections=40 is more than the server allows: .* at most 17 "
    with pytest.raises(StudyError, match=told):
        run_trials(study, study.plan.trials[:1], arms, lambda event: None)
    assert study.trials() == []


FEW = FAST | {"max_connections": "20"}


def test_the_statement_without_its_index_is_named_first_with_its_plans(shop, workspace):
    """The test allows that other statements are named as well: whether they are is chance, and the tests of the
    statistics check how often.
    """
    study = study_of(shop, blocks=12)
    told: list[str] = []
    run_study(study, lambda event: told.append(event.text) if isinstance(event, Preparing) else None)
    data = read_data(StudyDirectory.open(study.path))
    slower = [claim for claim in data.result.statements if claim.is_slower]
    assert slower[0].text == HISTORY
    (claim,) = data.result.primary
    # how many statements share the error follows from their shares of the time, and the look that decides from that
    assert (claim.arm, claim.blocks in (8, 10, 12)) == ("no index", True)
    assert data.result.findings == [] or {each.rule for each in data.result.findings}.isdisjoint(
        {"unequal_rows", "unequal_errors"}
    )
    table = plan_tables(data)[0]
    before, after = zip(*table.rows, strict=True)
    assert any("Index Scan using orders_customer" in line or "Scan on orders_customer" in line for line in before)
    assert not any("orders_customer" in line for line in after)
    assert any("Filter: (customer = " in line for line in after)
    assert "no index: explaining the statements that got slower" in told
    brief_line = next(line for line in brief(data.result, data.plan).headlines[0].lines if line.label == "slower")
    assert brief_line.text.startswith(f"{len(slower)} of ")
    assert HISTORY[:30] in brief_line.text
    assert not missing_plans(study), "a study that is run again has nothing left to do"
    assert "statement_plans.json" in files_of(study.path), "a bundle has what its report shows"


def test_errors_are_compared_with_the_recorded_ones_by_statement(start_cluster, workspace, tmp_path):
    """One arm drops the table customer with the foreign key to it, and adds a unique index. Some statements then fail
    only there, and one fails only in the other arm.
    """
    require_engine()
    prefix = "%m [%p] %q%u@%d %e "
    cluster = start_cluster(18, settings=LOGGING | {"log_line_prefix": prefix})
    buy = "INSERT INTO item (id, name, price) VALUES (1, 'x', 1)"
    nobody = "INSERT INTO orders (customer, item, amount) VALUES (0, 1, 1)"
    transactions = [
        [buy, "SELECT 1"],
        ["SELECT count(*) FROM customer", "SELECT 2"],
        ["UPDATE item SET price = 5"],
        [nobody, "SELECT 3"],
    ]
    with recorded(cluster, cluster.data_directory.with_suffix(".log"), tmp_path / "capture", prefix) as target:
        address = f"host={target.host} port={target.port} user={target.user} dbname={target.dbname}"
        with psycopg.connect(address, autocommit=True) as session:
            for statements in transactions:
                for statement in ["BEGIN", *statements, "ROLLBACK"]:
                    with contextlib.suppress(psycopg.Error):
                        session.execute(statement.encode())
    other = "DROP TABLE customer CASCADE; UPDATE item SET price = id; CREATE UNIQUE INDEX ON item (price)"
    study = study_of(tmp_path, blocks=1, arms={"as it is": {}, "other": {"setup_sql": other}})
    run_study(study, lambda event: None)
    same, changed = read_data(StudyDirectory.open(study.path)).result.failures
    counts = ("sqlstate", "recorded", "new", "gone", "consequences", "gone_consequences")

    def of(failures):
        return {(each.text, *(getattr(each, name) for name in counts)) for each in failures.statements}

    buy = "INSERT INTO item (id, name, price) VALUES ($1, $2, $3)"
    nobody = "INSERT INTO orders (customer, item, amount) VALUES ($1, $2, $3)"
    assert of(same) == {
        (buy, "23505", 1, 0, 0, 0, 0),
        (nobody, "23503", 1, 0, 0, 0, 0),
        ("", "25P02", 2, 0, 0, 0, 0),
    }
    assert of(changed) == {
        (buy, "23505", 1, 0, 0, 0, 0),
        (nobody, "23503", 0, 0, 1, 0, 1),
        ("SELECT count(*) FROM customer", "42P01", 0, 1, 0, 1, 0),
        ("UPDATE item SET price = $1", "23505", 0, 1, 0, 0, 0),
        ("", "25P02", 1, 1, 1, 0, 0),
    }
    assert (same.by_kind, changed.by_kind) == ({}, {"23505": 1, "25P02": 1, "42P01": 1})


def test_a_table_that_is_missing_in_an_arm_is_told_in_one_sentence(shop, workspace):
    study = study_of(shop, blocks=1, arms={"whole": {}, "no orders": {"setup_sql": "DROP TABLE orders"}})
    run_study(study, lambda event: None)
    result = read_data(StudyDirectory.open(study.path)).result
    (found,) = [each for each in result.findings if each.rule == "unequal_errors"]
    assert (found.severity, found.arms) == ("withhold", ["no orders"])
    assert "fail in no orders with SQLSTATE 42P01, a table is missing there: " in found.message
    assert result.primary[0].verdict == "withheld"
