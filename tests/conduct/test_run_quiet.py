"""No finding names a difference between two arms that are alike: a real study, by socket and by loopback."""

from __future__ import annotations

import pytest

from pgtrial.conduct.run_study import run_study
from pgtrial.report.build import build_report
from pgtrial.verdict.rules import RULES
from tests.conduct.small import small_study
from tests.conftest import require_engine, require_server

pytestmark = [pytest.mark.server, pytest.mark.machine]


OF_THE_MACHINE = {
    "thp",
    "not_durable",
    "governor",
    "debug_build",
    "emulated_machine",
    "noisy_host",
    "suspicious_durability",
}
"""The findings that the tests' machine may cause. For example, `noisy_host` finds the tests that run at the
same time.
"""

DIFFERENCES = [*sorted({rule.name for rule in RULES} - OF_THE_MACHINE), "carry_over"]


@pytest.fixture(scope="module", params=["socket", "tcp"])
def findings(request, tmp_path_factory, workspace):
    require_engine()
    require_server(18)
    path = tmp_path_factory.mktemp("quiet") / "study"
    arms = {"a": {"connect": request.param}, "b": {"connect": request.param}}
    study = small_study(path, blocks=2, arms=arms, load={"interleave": "auto", "share_server": False})
    run_study(study, lambda event: None)
    result = build_report(study)
    assert result.blocks_complete == 2
    return [finding for finding in result.findings if finding.severity != "info"]


@pytest.mark.parametrize("rule", DIFFERENCES)
def test_no_rule_finds_a_difference_between_arms_that_are_alike(findings, rule):
    assert [finding.message for finding in findings if finding.rule == rule] == []
