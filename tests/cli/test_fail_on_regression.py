"""`run --fail-on-regression` has the exit status of `verdict` after a regression."""

import pytest

from pgtrial.cli.conduct import Conclusion, conduct
from pgtrial.cli.run import run_command
from pgtrial.cli.stored import verdict_command
from pgtrial.model.records.facts import Audit
from pgtrial.report.build import build_report
from pgtrial.statistics import p8
from tests.conftest import require_engine
from tests.report.conftest import write_study
from tests.verdict.studies import make_plan, noisy, run

ARMS = ("base", "new", "other")


def ended_study(path, ratios, silent=()):
    """Writes a completed study whose arms have these speed ratios to the baseline. All trials of `silent` arms
    failed.
    """
    plan = make_plan(ARMS, blocks=12)
    plan = plan.model_copy(update={"looks": p8.looks(12, len(ARMS) - 1)})
    measured = noisy(ratios, sd=0.002)
    trials = run(plan, lambda planned: None if planned.arm in silent else measured(planned))
    return write_study(path, plan, trials, Audit(findings=[]), "Is it slower?")


@pytest.mark.parametrize(
    ("ratios", "silent", "without", "with_it"),
    [
        ({"new": 0.8, "other": 1.2}, (), 0, 1),
        ({"new": 1.2, "other": 1.0}, (), 0, 0),
        ({"new": 1.2}, ("other",), 2, 1),
        ({"new": 1.2}, ("base",), 2, 2),
    ],
)
def test_only_with_the_option_a_regression_is_status_1(tmp_path, ratios, silent, without, with_it):
    require_engine()
    study = ended_study(tmp_path / "s", ratios, silent)
    assert run_command(str(study.path)) == without
    assert run_command(str(study.path), fail_on_regression=True) == with_it
    assert run_command(str(study.path), fail_on_regression=True, json=True) == with_it
    assert (verdict_command([study.path]) == 1) == (with_it == 1)


def test_a_regression_is_status_1_whatever_a_command_concludes_from_the_study(tmp_path):
    require_engine()
    study = ended_study(tmp_path / "s", {"new": 0.8, "other": 1.2})

    def conclude(concluded):
        return Conclusion(build_report(concluded), "a text of the command")

    assert conduct(study, study.spec, conclude=conclude) == 0
    assert conduct(study, study.spec, conclude=conclude, fail_on_regression=True) == 1
