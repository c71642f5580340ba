"""Tests of where the statements of a load are known from: from files, or from a short run of the engine."""

import pytest

from pgtrial.conduct.trial.load_statements import are_listed
from pgtrial.model.study.spec import load_points
from pgtrial.store.study_file import build_study

CLIENTS = {"a": {"command": "true one"}, "b": {"command": "true two"}}


@pytest.mark.parametrize(
    ("load", "arms", "listed"),
    [
        ({"workload": "tpcb-like"}, None, True),
        ({"workload": "./own.sql"}, None, True),
        ({"workload": "pack:queue"}, None, True),
        ({"workload": "suite:joins"}, None, True),
        ({"workload": "select-only", "capacity": {"p99": "20ms"}}, None, True),
        ({"workload": "oltp_read_only"}, None, False),
        ({"workload": "order-entry"}, None, False),
        ({"workload": "app-tasks"}, None, False),
        ({"workload": "job:own.sql"}, None, False),
        ({}, CLIENTS, False),
    ],
)
def test_files_list_the_statements_of_scripts_and_suites_that_the_engine_runs(tmp_path, load, arms, listed):
    (tmp_path / "own.sql").write_text("SELECT 1;\n")
    spec = build_study({"load": load, "arms": arms or {"a": {}, "b": {}}}, "test", tmp_path)
    assert {are_listed(point) for point in load_points(spec)} == {listed}
