"""Screening studies on real servers: each trial has the levels that were drawn for it, and levels with which no server
starts are told before the first trial.
"""

from __future__ import annotations

import re

import pytest

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.conduct.run_study import run_study
from pgtrial.model.errors import StudyError
from pgtrial.report.build import build_report, differences
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from tests.conduct.small import FAST, each_once, undeclared_differences
from tests.conftest import require_engine

pytestmark = pytest.mark.server


@pytest.fixture(autouse=True)
def _engine():
    require_engine()


def screen(path, factors, blocks, *, interleave="off", script="SELECT 1;", duration="1s"):
    (path / "load.sql").write_text(script)
    load = {
        "workload": "load.sql",
        "scale": 1,
        "clients": 1,
        "warmup": "250ms",
        "duration": duration,
        "interleave": interleave,
        "observe": False,
    }
    settings = {name: value for name, value in FAST.items() if name not in factors}
    spec = build_study(
        {"factors": factors, "load": load, "server": {"settings": settings}, "verdict": {"blocks": blocks}},
        "test",
        path,
    )
    return StudyDirectory.create(path / "s", spec, make_plan(spec, 4, "2026-11-20T14:12:00+00:00"))


NOTES = """
DO $$BEGIN RAISE WARNING 'has % and %', current_setting('%s'), current_setting('jit'); END$$;
SELECT pg_sleep(0.05);
"""
"""A load that notes the settings of its session in the log of its server."""


def noting(name: str) -> str:
    return NOTES.replace("%s", name)


def test_each_trial_runs_with_the_levels_that_were_drawn_for_it(tmp_path):
    factors = {"shared_buffers": ["16MB", "24MB"], "jit": ["on", "off"]}
    study = screen(tmp_path, factors, 1, script=noting("shared_buffers"))
    run_study(study, lambda event: None)
    assert each_once(study)
    for trial in study.trials():
        assert trial.status == "completed", trial.reason
        shared_buffers, jit = (values[int(level)] for values, level in zip(factors.values(), trial.levels, strict=True))
        noted = re.findall(r"has (\S+) and (\S+)", (study.trial_path(trial) / "server.log").read_text())
        assert set(noted) == {(shared_buffers, jit)}
    result = build_report(study)
    assert {claim.arm for claim in result.primary} == {"shared_buffers=24MB", "jit=off"}
    assert undeclared_differences(result.findings) == []
    assert differences(study) == []
    page = (study.path / "report.html").read_text()
    assert "shared_buffers: 16MB or 24MB" in page
    run_study(study, lambda event: None)
    assert len(study.trials()) == 2


def test_factors_of_sessions_take_turns_on_one_server(tmp_path):
    factors = {"work_mem": ["4MB", "8MB"], "jit": ["on", "off"]}
    study = screen(tmp_path, factors, 1, interleave="250ms", script=noting("work_mem"))
    assert study.plan.shares_server
    run_study(study, lambda event: None)
    one, other = study.trials()
    assert (one.status, other.status) == ("completed", "completed")
    drawn = {
        tuple(values[int(level)] for values, level in zip(factors.values(), trial.levels, strict=True))
        for trial in (one, other)
    }
    noted = re.findall(r"has (\S+) and (\S+)", (study.trial_path(one) / "server.log").read_text())
    assert set(noted) == drawn


def test_levels_with_which_no_server_starts_are_told_before_the_first_trial(tmp_path):
    factors = {
        "jit": ["on", "off"],
        "max_wal_senders": ["0", "10"],
        "wal_level": ["replica", "minimal"],
    }
    study = screen(tmp_path, factors, 12)
    with pytest.raises(StudyError) as refused:
        run_study(study, lambda event: None)
    assert re.match(
        r"the server does not start with max_wal_senders=10 and wal_level=minimal together: .*"
        r"; leave one of these factors out, since their effects cannot be told apart",
        str(refused.value),
    )
    assert "jit" not in str(refused.value)
    assert study.trials() == []


def test_a_level_that_postgresql_refuses_is_told_with_its_factor(tmp_path):
    study = screen(tmp_path, {"jit": ["on", "off"], "work_mem": ["4MB", "a lot"]}, 12)
    with pytest.raises(StudyError, match=r"factors: PostgreSQL [\d.]+ rejects work_mem"):
        run_study(study, lambda event: None)
