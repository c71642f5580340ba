"""Two identical arms are not told apart; an arm whose transactions waste a tenth of their time is called worse."""

import pytest

from pgtrial.conduct.run_study import run_study
from pgtrial.report.data import read_data
from tests.conduct.small import FAST, small_study
from tests.conftest import require_engine

pytestmark = pytest.mark.server


PAUSE = """CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_sleep({seconds}); RETURN NEW; END $$"""
TRIGGER = "CREATE TRIGGER {name} BEFORE UPDATE ON pgbench_accounts FOR EACH ROW EXECUTE FUNCTION {name}()"


@pytest.fixture(autouse=True)
def _engine():
    require_engine()


def pause(name, seconds):
    return [PAUSE.format(name=name, seconds=seconds), TRIGGER.format(name=name)]


def test_identical_arms_are_not_called_better_or_worse(tmp_path):
    verdicts = []
    # the rule errs in one such study of 128, whatever the machine does: three running would be one in two million
    for seed in (11, 12, 13):
        study = small_study(tmp_path / str(seed), blocks=8, seed=seed, load={"clients": 1}, arms={"one": {}, "two": {}})
        run_study(study, lambda event: None)
        result = read_data(study).result
        assert result.identical_arms
        verdicts.append(result.primary[0].verdict)
        if verdicts[-1] in ("undecided", "equivalent"):
            return
    pytest.fail(f"identical arms were called {', '.join(verdicts)}")


UPDATE = """\\set aid random(1, 100000)
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;
"""


def test_a_trigger_that_wastes_a_tenth_of_the_time_is_called_worse(tmp_path):
    # Transactions of 40 ms by the clock and of one statement, so that what else this machine does hardly matters; the
    # trigger adds 4 ms. A decision takes 8 blocks, and as many more as it needs where the machine is disturbed.
    (tmp_path / "update.sql").write_text(UPDATE)
    study = small_study(
        tmp_path / "s",
        blocks=40,
        folder=tmp_path,
        load={"workload": "update.sql", "clients": 8, "duration": "2s"},
        # the flush of a commit would add to both
        server={"settings": {**FAST, "fsync": "off"}, "setup_sql": pause("work", 0.040)},
        arms={"plain": {}, "trigger": {"setup_sql": pause("waste", 0.004)}},
    )
    run_study(study, lambda event: None)
    result = read_data(study).result
    (claim,) = result.primary
    assert claim.verdict == "worse"
    assert claim.difference is not None
    # the waste is 9%; on two cores with a load of 15 the log-ratios of blocks have a standard deviation of 4%, and
    # their middle after 8 blocks one of 1.5%: the bounds are more than six of these away
    assert -0.25 < claim.difference.value < 0
    assert study.plan.declared["trigger"] == ["server.setup_sql"]
    assert result.exit_status == 1
