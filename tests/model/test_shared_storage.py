"""Tests of the drawn place (such as a volume) of each trial: it follows from the seed, is balanced like the order of
the trials, and is independent of that order.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from pgtrial.conduct.planning.plan import make_plan
from pgtrial.model.errors import StudyError
from pgtrial.model.study.storage import Storage
from pgtrial.statistics import p8
from pgtrial.store.study_file import build_study

NOW = "2026-11-20T14:12:00+00:00"
DISKS = {"fs": "ext4", "on": ["/dev/sdb", "/dev/sdc"]}


def plan_of(blocks=8, seed=7, arms=("a", "b"), load=None, **server):
    setups = {arm: {"settings": {"work_mem": f"{number + 1}MB"}} for number, arm in enumerate(arms)}
    data = {"arms": setups, "server": server, "load": load or {}, "verdict": {"blocks": blocks}}
    return make_plan(build_study(data, "test"), seed, NOW)


def places(plan):
    """Returns for each block and load point the place that was drawn for each arm."""
    found: dict[tuple[int, int], dict[str, int | None]] = {}
    for trial in plan.trials:
        found.setdefault((trial.block, trial.load_point), {})[trial.arm] = trial.place
    return list(found.values())


def test_arms_that_list_the_same_places_are_never_at_the_same_one_while_there_are_enough():
    drawn = places(plan_of(200, storage=DISKS, load={"clients": [1, 8]}))
    assert len(drawn) == 400
    assert all(sorted(each.values()) == [0, 1] for each in drawn)


@pytest.mark.parametrize(("arms", "count", "outcomes"), [("ab", 2, 2), ("ab", 3, 6), ("abc", 3, 6), ("abc", 2, 6)])
def test_each_way_to_share_the_places_out_is_about_equally_frequent(arms, count, outcomes):
    storage = {"fs": "ext4", "on": [f"/dev/sd{letter}" for letter in "bcdef"[:count]]}
    plan = plan_of(1200, arms=arms, storage=storage)
    drawn = Counter(tuple(each[arm] for arm in arms) for each in places(plan))
    assert len(drawn) == outcomes
    # five standard deviations of a count
    expected = 1200 / outcomes
    assert all(abs(times - expected) < 5 * expected**0.5 for times in drawn.values())


def test_with_fewer_places_than_arms_none_is_left_out():
    for each in places(plan_of(50, arms="abc", storage=DISKS)):
        assert sorted(Counter(each.values()).values()) == [1, 2]


def test_the_draw_is_the_seeds_and_leaves_the_order_as_it_is_without_places():
    with_places, without = plan_of(40, storage=DISKS), plan_of(40)
    assert with_places == plan_of(40, storage=DISKS)
    assert places(with_places) != places(plan_of(40, seed=8, storage=DISKS))
    assert [trial.model_copy(update={"place": None}) for trial in with_places.trials] == without.trials
    assert plan_of(60, storage=DISKS).trials[: len(with_places.trials)] == with_places.trials


def test_places_and_order_are_independent_draws():
    plan = plan_of(1200, storage=DISKS)
    together = Counter((first.arm, first.place) for first in plan.trials[::2])
    # 300 expected each, standard deviation 15
    assert all(225 < times < 375 for times in together.values())


def test_a_better_place_makes_a_verdict_on_equal_arms_when_it_is_fixed_and_not_when_it_is_swapped():
    """A place that is 2% better, trials that differ by 3%, studies of 40 blocks."""
    rng = np.random.default_rng(5)
    studies = 200
    false = {"fixed": 0, "swapped": 0}
    for seed in range(studies):
        noise = 0.03 * rng.standard_normal((40, 2))
        swapped = np.array([[each["a"], each["b"]] for each in places(plan_of(40, seed, storage=DISKS))])
        for name, drawn in (("fixed", np.array([[0, 1]] * 40)), ("swapped", swapped)):
            difference = np.diff(noise + 0.02 * drawn)[:, 0]
            false[name] += p8.decide(difference, 1e-9).verdict != "undecided"
    assert false["swapped"] <= 0.05 * studies
    assert false["fixed"] >= 0.5 * studies


def test_the_committed_studys_order_is_drawn_as_it_was(example):
    stored = example("postgres-versions")
    assert make_plan(stored.spec, stored.plan.seed, stored.plan.created).trials == stored.plan.trials


def test_a_trial_without_a_place_is_stored_as_before_there_were_places():
    plan = plan_of()
    assert all("place" not in trial.model_dump() for trial in plan.trials)
    with_places = plan_of(storage=DISKS)
    assert type(plan).model_validate_json(with_places.model_dump_json()) == with_places


def test_only_arms_of_one_kind_that_are_put_back_share_their_kept_copies():
    assert all(sorted(each.values()) == [0, 1, 2] for each in places(plan_of(arms="abc", reset="vacuum")))
    assert all(set(each.values()) == {None} for each in places(plan_of(reset="none")))
    arms = {"a": {}, "b": {"settings": {"jit": "off"}}, "other kind": {"postgres": "17"}, "fresh": {"reset": "copy"}}
    spec = build_study({"server": {"reset": "vacuum"}, "arms": arms, "verdict": {"blocks": 1}}, "test")
    [each] = places(make_plan(spec, 1, NOW))
    assert sorted((each["a"], each["b"])) == [0, 1]
    assert (each["other kind"], each["fresh"]) == (None, None)


def test_an_arm_with_another_list_takes_no_part():
    arms = {"a": {}, "b": {}, "c": {"storage": DISKS | {"on": "/dev/sdd"}}}
    spec = build_study({"server": {"storage": DISKS}, "arms": arms, "verdict": {"blocks": 1}}, "test")
    [each] = places(make_plan(spec, 1, NOW))
    assert sorted((each["a"], each["b"])) == [0, 1]
    assert each["c"] is None


def test_data_and_wal_go_to_places_of_the_same_number():
    storage = Storage(**DISKS, wal={"fs": "xfs", "on": ["/dev/sdc", "/dev/sdb"]}).at(1)
    assert storage.wal is not None
    assert (str(storage.device), str(storage.wal.device)) == ("/dev/sdc", "/dev/sdb")
    one_wal = Storage(**DISKS, wal={"fs": "xfs", "on": "/dev/sdd"}).at(1)
    assert one_wal.wal is not None
    assert (str(one_wal.device), str(one_wal.wal.device)) == ("/dev/sdc", "/dev/sdd")


@pytest.mark.parametrize(
    ("storage", "sentence"),
    [
        ({"fs": "ext4", "on": []}, "storage.on: it has 0 items and must have at least 1 item"),
        ({"fs": "ext4", "on": ["/dev/sdb", "loop"]}, "on lists places of different kinds"),
        ({"fs": "ext4", "on": ["/dev/sdb", "/data"]}, "on lists places of different kinds"),
        ({"fs": "ext4", "on": ["/dev/sdb", "/dev/sdb"]}, "on lists a place more than once"),
        ({"fs": "ext4", "on": ["/dev/sdb", "sdc"]}, "on = 'sdc' is not a place"),
        (
            DISKS | {"wal": {"fs": "ext4", "on": ["/dev/sdd", "/dev/sde", "/dev/sdf"]}},
            "wal.on lists 3 places and on lists 2",
        ),
    ],
)
def test_a_list_of_places_that_cannot_be_is_refused_in_one_sentence(storage, sentence):
    with pytest.raises(StudyError, match=sentence) as raised:
        build_study({"arms": {"a": {"storage": storage}, "b": {}}}, "test")
    assert str(raised.value).startswith("test: [arms.a] storage")
