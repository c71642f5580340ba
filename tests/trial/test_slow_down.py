"""Two identical arms are not told apart; an arm whose transactions waste a tenth of their time is called worse."""

import pytest

from pgtrial.trial.run_study import run_study
from tests.conftest import require_engine
from tests.trial.small import small_study

PAUSE = """CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_sleep({seconds}); RETURN NEW; END $$"""
TRIGGER = "CREATE TRIGGER {name} BEFORE UPDATE ON pgbench_accounts FOR EACH ROW EXECUTE FUNCTION {name}()"


@pytest.fixture(autouse=True)
def _engine():
    require_engine()


def pause(name, seconds):
    return [PAUSE.format(name=name, seconds=seconds), TRIGGER.format(name=name)]


def test_identical_arms_are_not_called_better_or_worse(tmp_path):
    for attempt in ("first", "second"):
        study = small_study(tmp_path / attempt, blocks=8, load={"clients": 1}, arms={"one": {}, "two": {}})
        result = run_study(study, lambda event: None)
        assert result.identical_arms
        if result.primary[0].verdict in ("undecided", "equivalent"):
            return
        # one false verdict in 128 such studies is what the rule promises; two running would be one in 16,384
    pytest.fail(f"identical arms were called {result.primary[0].verdict} twice running")


def test_a_trigger_that_wastes_a_tenth_of_the_time_is_called_worse(tmp_path):
    # transactions of 40 ms by the clock, so that what else this machine does hardly matters; the trigger adds 4 ms
    study = small_study(
        tmp_path / "s",
        blocks=12,
        load={"clients": 8, "duration": "2s"},
        server={"setup_sql": pause("work", 0.040)},
        arms={"plain": {}, "trigger": {"setup_sql": pause("waste", 0.004)}},
    )
    result = run_study(study, lambda event: None)
    (claim,) = result.primary
    assert claim.verdict == "worse"
    assert claim.difference is not None
    assert -0.2 < claim.difference.value < -0.05
    assert study.plan.declared["trigger"] == ["server.setup_sql"]
    assert result.exit_status == 1
