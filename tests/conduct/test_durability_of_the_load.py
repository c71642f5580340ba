"""An arm whose load is less durable than the baseline's is not faster: its SQL does not declare that."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgtrial.conduct.run_study import run_study
from pgtrial.report.data import read_measured
from tests.conduct.small import small_study
from tests.conftest import require_engine, require_server

pytestmark = pytest.mark.server

UNLOGGED = "ALTER TABLE pgbench_accounts SET UNLOGGED"
OF_ROLE = "DO $$ BEGIN EXECUTE format('ALTER ROLE %I SET synchronous_commit = off', current_user); END $$"


@pytest.mark.parametrize(
    ("head", "severity"),
    [
        ({"setup_sql": [UNLOGGED]}, "withhold"),
        ({"setup_sql": [OF_ROLE]}, "withhold"),
        ({"setup_sql": [UNLOGGED], "less_durable": True}, "warning"),
    ],
    ids=["unlogged", "of the role", "declared"],
)
def test_setup_sql_that_gives_up_durability_withholds_the_verdict(tmp_path, monkeypatch, workspace, head, severity):
    require_engine()
    require_server(18)
    monkeypatch.chdir(tmp_path)
    load = {"workload": "tpcb-like", "scale": 1, "clients": 1, "warmup": "0s", "duration": "2s", "interleave": "off"}
    study = small_study(Path("results"), blocks=1, load=load, arms={"base": {}, "head": head})
    run_study(study, lambda event: None)
    [found] = [one for one in study.audit().findings if one.rule == "durability"]
    assert found.severity == severity
    withheld = read_measured(study).result.withheld
    assert any("not equally durable" in text for text in withheld) == (severity == "withhold")
