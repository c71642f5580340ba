"""A study that has ended goes on: the order and the looks continue, and nothing that was fixed changes."""

from itertools import accumulate, islice

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgtrial.cli.run import run_command
from pgtrial.conduct.planning.plan import More, announcement, extend, make_plan
from pgtrial.conduct.planning.stopping import Stop, next_step
from pgtrial.conduct.run_study import run_study
from pgtrial.model.errors import StoreError, StudyError
from pgtrial.model.records.plan import PlannedTrial
from pgtrial.model.study.design import Design
from pgtrial.report.data import read_data
from pgtrial.statistics import p9
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study
from pgtrial.store.tables import TIMELINE_SCHEMA
from pgtrial.verdict.units import looks_of
from tests.conduct.small import each_once, small_study
from tests.conduct.test_stopping import HOUR, trials
from tests.conftest import require_engine
from tests.store.samples import completed_trial
from tests.verdict.studies import verdict_of

NOW = "2026-11-21T09:00:00+00:00"


def spec(arms=2, **verdict):
    names = ["other", "third", "fourth"][: arms - 1]
    setups = {"base": {}, **{name: {"settings": {"work_mem": f"{len(name)}MB"}} for name in names}}
    return build_study({"arms": setups, "verdict": verdict}, "test")


def planned(study, seed=3):
    return make_plan(study, seed, "2026-11-20T14:12:00+00:00")


def gone_on(plan, study, blocks=None, time_s=None, *, ratio=1.0, complete=None, decided=False):
    stored = trials(plan, plan.end if complete is None else complete, ratio)
    return extend(plan, Design.planned(study, plan), More(blocks, time_s), stored, decided=decided, created=NOW)


def undecided(plan, blocks):
    """Trials up to the end: in so many blocks now this arm is the faster one and now that, later one arm is."""
    better, worse, clearly = (trials(plan, plan.end, ratio) for ratio in (1.03, 0.97, 1.5))
    return [
        clearly[trial.index] if trial.block >= blocks else worse[trial.index] if trial.block % 2 else trial
        for trial in better
    ]


@given(
    blocks=st.integers(1, 30),
    arms=st.integers(2, 4),
    steps=st.lists(st.integers(1, 25), min_size=1, max_size=5),
    seed=st.integers(0, 2**32),
)
def test_however_a_study_goes_on_its_order_and_its_looks_are_those_that_its_first_plan_fixed(blocks, arms, steps, seed):
    study = spec(arms, blocks=blocks)
    first = plan = planned(study, seed)
    for step in steps:
        plan = gone_on(plan, study, step)
    assert plan.trials[: len(first.trials)] == first.trials
    assert plan.trials == gone_on(first, study, sum(steps)).trials
    assert plan.max_blocks == plan.end == blocks + sum(steps)
    fixed = p9.plan_and_beyond(first.looks, p9.Spending(first.max_blocks))
    expected = [look for look in islice(fixed, 40) if look.blocks <= plan.end]
    assert looks_of(plan).within(plan.end).schedule() == expected
    assert sum(look.alpha for look in expected) < 0.05
    assert plan.looks[: len(first.looks)] == first.looks


def test_a_study_too_short_for_a_look_goes_on_to_the_first_possible_one_and_those_behind_it():
    study = spec(3, blocks=6)
    first = planned(study)
    assert gone_on(first, study, 12).looks == [7, 8, 10, 12, 15, 18]
    # 6 blocks, had they been a look, could not have decided two claims
    assert gone_on(first, study, 1).looks == [7]
    of_before = first.model_copy(update={"looks": [], "spending": None})
    assert gone_on(of_before, study, 12).looks == [9, 12, 18], "the rule P8 of older studies"
    assert gone_on(of_before, study, time_s=91).end == 9, "nine trials of ten seconds reach the first look"
    told = announcement(gone_on(first, study, 1), trials(first, 6, 1.0))
    assert told.endswith("; looks at the verdict after block 7")


def test_a_study_goes_from_undecided_to_a_verdict_with_the_errors_of_its_plan_continued():
    study = spec(blocks=10)
    first = planned(study)
    before = verdict_of(first, undecided(first, 10)).primary[0]
    assert before.verdict == "undecided"
    plan = extend(
        first, Design.planned(study, first), More(blocks=30), undecided(first, 10), decided=False, created=NOW
    )
    after = verdict_of(plan, undecided(plan, 10)).primary[0]
    assert after.verdict == "better"
    assert [look.blocks for look in after.looks] == [8, 10, 12, 15, 18, 22, 27, 33, 40]
    spent = list(accumulate(look.alpha for look in after.looks))
    assert spent == pytest.approx([p9.Spending(10).until(look.blocks) for look in after.looks])
    assert after.looks[:2] == before.looks


def test_a_study_that_goes_on_undecided_ends_at_the_look_that_decides():
    study = spec(blocks=8)
    plan = gone_on(planned(study), study, 30)
    stored = undecided(plan, 8)
    assert isinstance(next_step(plan, HOUR, stored[: 2 * 21]), PlannedTrial)
    assert next_step(plan, HOUR, stored[: 2 * 22]) == Stop("the intervals of all comparisons decide after 22 blocks")


def test_a_decided_study_goes_on_to_the_end_that_was_asked_for_and_not_to_that_of_its_plan():
    study = spec(blocks=60)
    first = planned(study)
    assert isinstance(next_step(first, HOUR, trials(first, 8, 2.0)), Stop)
    plan = gone_on(first, study, 12, ratio=2.0, complete=8, decided=True)
    assert (plan.trials, plan.looks, plan.max_blocks) == (first.trials, first.looks, 60)
    assert isinstance(next_step(plan, HOUR, trials(plan, 19, 2.0)), PlannedTrial)
    assert next_step(plan, HOUR, trials(plan, 20, 2.0)) == Stop(
        "all 20 planned blocks are complete; 2 of them wait for the next look at the verdict, after block 22 "
        "(2 blocks, about 40s: --more 40s)"
    )
    assert len(plan.due) == 40
    whole = gone_on(plan, study, 45, ratio=2.0, decided=True)
    assert (whole.end, whole.looks) == (65, [*first.looks])


def test_a_time_holds_as_many_blocks_as_the_trials_so_far_take_and_ends_the_study_like_a_budget():
    study = spec(blocks=8, budget="1min", stop_early=False)
    first = planned(study)
    # two trials of ten seconds a block
    plan = gone_on(first, study, time_s=100)
    assert (plan.end, plan.extensions[0].after, plan.extensions[0].budget_s) == (12, 8, 100), "13 is no look"
    assert plan.looks == [8, 10, 12]
    assert isinstance(next_step(plan, 60.0, trials(plan, 11, 1.0)), PlannedTrial)
    assert next_step(plan, 60.0, trials(plan, 12, 1.0)) == Stop("all 12 planned blocks are complete")
    assert gone_on(first, study, time_s=1e4).end == 444, "a look, the last of those up to block 508"
    slow = [*trials(plan, 8, 1.0), *(trial for trial in trials(plan, 11, 1.0, seconds=40.0) if trial.block >= 8)]
    ended = next_step(plan, 60.0, slow)
    assert isinstance(ended, Stop)
    assert ended.reason.startswith(
        "the budget of 1min 40s ended after 11 of 12 blocks: 1 more block up to the next look at the verdict would"
    )
    assert "; 1 of them waits for the next look at the verdict, after block 12 (1 block, about " in ended.reason


def test_a_time_without_a_look_is_refused_with_the_time_that_holds_one():
    study = spec(blocks=12)
    first = planned(study)
    with pytest.raises(
        StudyError,
        match=r"^59s holds 2 blocks of about 20s, and the next look at the verdict comes after 3: give --more 60s$",
    ):
        gone_on(first, study, time_s=59)
    assert gone_on(first, study, time_s=60).end == 15
    with pytest.raises(StudyError, match=r"^19s holds 0 blocks of about 20s.*: give --more 60s$"):
        gone_on(first, study, time_s=19)


def test_what_comes_is_announced_with_its_looks():
    study = spec(blocks=20)
    plan = planned(study)
    more = gone_on(plan, study, 20)
    expected = "going on after 20 blocks with 20 more, about 6min 40s; looks at the verdict after block 22, 27, 33, 40"
    assert announcement(more, trials(plan, 20, 1.0)) == expected
    study = spec(blocks=27)
    plan = planned(study)
    few = gone_on(plan, study, 3)
    expected = (
        "going on after 27 blocks with 3 more, about 1min; no look at the verdict among them; 3 of them wait "
        "for the next look at the verdict, after block "
        "33 (3 blocks, about 1min: --more 60s)"
    )
    assert announcement(few, trials(plan, 27, 1.0)) == expected


@pytest.mark.parametrize("change", [{"margin": "2%"}, {"stop_early": False}])
def test_a_changed_study_does_not_go_on(change):
    first = planned(spec(blocks=8))
    with pytest.raises(StudyError, match=r"study\.toml was changed after the study began"):
        gone_on(first, spec(blocks=8, **change), 4)


def test_a_plan_whose_order_this_version_does_not_draw_does_not_go_on():
    study = spec(blocks=8)
    first = planned(study)
    with pytest.raises(StudyError, match="the order of the blocks cannot be continued"):
        gone_on(first.model_copy(update={"seed": 4}), study, 4)


def test_deployments_that_are_units_do_not_go_on():
    arms = {arm: {"dsn": [f"host={arm}{number}" for number in range(4)]} for arm in "ab"}
    study = build_study({"arms": arms, "verdict": {"blocks": 8}}, "test")
    with pytest.raises(StudyError, match="counts 4 deployments cannot continue"):
        gone_on(planned(study), study, 4)


def test_blocks_shared_out_over_a_few_deployments_go_on():
    arms = {arm: {"dsn": [f"host={arm}{number}" for number in range(3)]} for arm in "ab"}
    study = build_study({"arms": arms, "verdict": {"blocks": 8}}, "test")
    first = planned(study)
    plan = gone_on(first, study, 7)
    assert plan.trials[:16] == first.trials
    assert {trial.place for trial in plan.trials[16:]} == {0, 1, 2}


def run(study, most=None):
    """Runs the lab's loop without servers: stores at most `most` trials and returns their numbers."""
    order = []
    while len(order) != most and not isinstance(step := next_step(study.plan, HOUR, study.trials()), Stop):
        study.begin_trial(step)
        study.write_trials([completed_trial(study, step)])
        order.append(step.index)
    return order


def test_a_study_goes_on_in_its_directory_through_interruptions_each_trial_once(tmp_path):
    study = small_study(tmp_path / "s", blocks=3)
    assert run(study) == list(range(6))
    plan = extend(study.plan, study.design, More(blocks=3), study.trials(), decided=False, created=NOW)
    study.extend(plan)
    again = StudyDirectory.open(study.path)
    assert again.plan == plan

    assert run(again, most=3) == [6, 7, 8]
    once_more = StudyDirectory.open(study.path)
    assert run(once_more) == [9, 10, 11]
    assert each_once(once_more)
    assert next_step(once_more.plan, HOUR, once_more.trials()) == Stop("all 6 planned blocks are complete")


def test_a_study_that_has_not_ended_is_not_asked_for_more(tmp_path):
    require_engine()
    study = small_study(tmp_path / "s", blocks=3)
    with pytest.raises(StudyError, match="has not ended; continue it by"):
        run_study(study, lambda event: None, more=More(blocks=3))
    assert not study.plan.extensions


def test_the_command_asks_for_a_directory_one_measure_and_an_unchanged_study(tmp_path):
    study = small_study(tmp_path / "s", blocks=1)
    with pytest.raises(StudyError, match="name the directory of the study"):
        run_command("study.toml", more="1h")
    with pytest.raises(StudyError, match="--more 0 would not add a block; write for example --more 12, or --more 1h"):
        run_command(str(study.path), more="0")
    with pytest.raises(StudyError, match="--more: 'soon' is not a duration"):
        run_command(str(study.path), more="soon")
    file = study.path / "study.toml"
    file.write_text(file.read_text().replace("clients = [2]", "clients = [4]"))
    with pytest.raises(StoreError, match=r"study\.toml was changed after the study began"):
        run_command(str(study.path), more="1h")


@pytest.mark.server
def test_more_blocks_take_a_real_study_from_undecided_to_a_verdict(tmp_path):
    require_engine()
    # half a second of the faster arm is enough to be the faster one
    (tmp_path / "nap.sql").write_text("SELECT pg_sleep(current_setting('pgtrial.nap')::float);\n")
    study = small_study(
        tmp_path / "s",
        blocks=5,
        folder=tmp_path,
        load={"workload": "nap.sql", "warmup": "200ms", "duration": "4s"},
        arms={"fast": {"settings": {"pgtrial.nap": "0.001"}}, "slow": {"settings": {"pgtrial.nap": "0.2"}}},
    )
    for planned_trial in study.plan.trials:
        directory = study.begin_trial(planned_trial)
        pl.DataFrame(schema=TIMELINE_SCHEMA).write_parquet(directory / "timeline.parquet")
        trial = completed_trial(study, planned_trial)
        slow = trial.measured.model_copy(update={"transactions": 15 + trial.block, "tps": 3 + trial.block / 5})
        study.write_trials([trial if trial.arm == "fast" else trial.model_copy(update={"measured": slow})])
    assert read_data(study).result.primary[0].verdict == "undecided"
    assert run_command(str(study.path), more="1") == 0
    again = StudyDirectory.open(study.path)
    claim = read_data(again).result.primary[0]
    assert (claim.verdict, claim.blocks) == ("worse", 6)
    assert [(look.blocks, look.alpha) for look in claim.looks] == [(6, pytest.approx(p9.Spending(5).until(6)))]
    assert each_once(again)
    assert again.plan.trials[:10] == study.plan.trials
