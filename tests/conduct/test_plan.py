"""The plan is balanced, random, reproducible and fixed before the first trial."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgtrial.conduct.planning.plan import block_estimate, declared, make_plan, warnings
from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.store.study_file import build_study

NOW = "2026-11-20T14:12:00+00:00"


def study(arms=("a", "b"), **sections):
    setups = {arm: {"settings": {"work_mem": f"{number + 1}MB"}} for number, arm in enumerate(arms)}
    return build_study({"arms": setups, **sections}, "test")


@given(
    arms=st.integers(2, 4),
    clients=st.lists(st.integers(1, 64), min_size=1, max_size=3, unique=True),
    seed=st.integers(0, 2**63 - 1),
)
def test_every_arm_runs_once_per_load_point_and_block_with_a_common_seed(arms, clients, seed):
    plan = make_plan(
        study([f"arm {n}" for n in range(arms)], load={"clients": clients}, verdict={"blocks": 9}), seed, NOW
    )
    assert [trial.index for trial in plan.trials] == list(range(9 * arms * len(clients)))
    assert [trial.block for trial in plan.trials] == sorted(trial.block for trial in plan.trials)
    cells = Counter((trial.block, trial.load_point, trial.arm) for trial in plan.trials)
    assert set(cells.values()) == {1}
    assert len(cells) == len(plan.trials)
    seeds = {(trial.block, trial.load_point): trial.seed for trial in plan.trials}
    assert all(seeds[trial.block, trial.load_point] == trial.seed for trial in plan.trials)
    for start in range(0, len(plan.trials), arms):
        together = plan.trials[start : start + arms]
        assert len({trial.load_point for trial in together}) == 1, "arms run back to back at each load point"


def test_the_same_seed_gives_the_same_plan_and_another_one_another():
    spec = study(verdict={"blocks": 40})
    assert make_plan(spec, 7, NOW) == make_plan(spec, 7, NOW)
    assert make_plan(spec, 7, NOW).trials != make_plan(spec, 8, NOW).trials


def test_more_blocks_extend_the_order_and_do_not_change_it():
    short = make_plan(study(verdict={"blocks": 8}), 7, NOW)
    long = make_plan(study(verdict={"blocks": 12}), 7, NOW)
    assert long.trials[: len(short.trials)] == short.trials


def test_each_order_of_the_arms_is_about_equally_frequent():
    plan = make_plan(study(["a", "b", "c"], verdict={"blocks": 1200}), 42, NOW)
    orders = Counter(
        tuple(trial.arm for trial in plan.trials[start : start + 3]) for start in range(0, len(plan.trials), 3)
    )
    assert len(orders) == 6
    # 200 expected each, standard deviation 13
    assert all(140 < count < 260 for count in orders.values())


def test_load_points_cross_workloads_scales_and_clients():
    plan = make_plan(
        study(
            load={"workload": ["select-only", "tpcb-like"], "scale": [1, 2], "clients": [1, 8]}, verdict={"blocks": 1}
        ),
        1,
        NOW,
    )
    assert len(plan.load_points) == 8
    assert plan.load_points[1].label == "select-only, scale 1, 8 clients"


def test_the_blocks_are_as_many_as_the_budget_holds_and_the_last_is_a_look():
    spec = study(load={"duration": "10s", "warmup": 0}, verdict={"budget": "10min"})
    plan = make_plan(spec, 1, NOW)
    affordable = 600 / block_estimate(spec)
    assert plan.max_blocks <= affordable < plan.max_blocks + 1
    assert plan.looks[-1] == plan.max_blocks


def test_a_budget_below_the_smallest_verdict_is_refused_with_the_budget_it_takes():
    lengths = {"warmup": "10s", "duration": "30s"}
    with pytest.raises(
        StudyError, match=r"at least 6 blocks.*budget of 1min holds 0.*budget = \"\d+min\".*shorten the"
    ):
        make_plan(study(load=lengths, verdict={"budget": "1min"}), 1, NOW)
    with pytest.raises(StudyError, match=r"budget of 3min holds 2; .* leave out warmup and duration, or use fewer"):
        make_plan(study(load=lengths, verdict={"budget": "3min"}), 1, NOW)
    one_minute = {"load": {"warmup": "1s", "duration": "2s"}, "verdict": {"budget": "1min"}}
    assert make_plan(study(**one_minute), 1, NOW).looks == [6], "sessions of one server, which starts once a block"


def test_more_arms_take_more_blocks_for_a_first_verdict():
    with pytest.raises(StudyError, match="at least 7 blocks"):
        make_plan(study(["a", "b", "c"], verdict={"budget": "1min"}), 1, NOW)
    assert make_plan(study(["a", "b", "c"], verdict={"blocks": 20}), 1, NOW).looks == [8, 10, 12, 15, 18, 20]


@pytest.mark.parametrize(
    ("load", "metrics", "families"),
    [({}, ["tps"], 1), ({"clients": [1, 8]}, ["tps"], 3), ({}, ["tps", "wal per transaction"], 2)],
    ids=["no other family", "load points and their sweep", "metrics"],
)
def test_one_error_over_all_that_is_printed_is_shared_by_the_families_that_there_are(load, metrics, families):
    def plan(error):
        verdict = {"blocks": 40, "metrics": metrics, "error": error}
        return make_plan(study(load={"warmup": "1s", "duration": "5s", **load}, verdict=verdict), 1, "now")

    assert plan("primary").families == 1
    assert plan("all").families == families
    assert (plan("all").looks[0] > plan("primary").looks[0]) == (families > 1)


def test_fewer_blocks_than_a_verdict_takes_are_planned_with_a_warning():
    spec = study(verdict={"blocks": 3})
    plan = make_plan(spec, 1, NOW)
    assert (plan.looks, plan.looks_within) == ([6], [])
    assert any(
        "with blocks = 3 no verdict is possible; 2 arms take at least 6" in warning
        for warning in warnings(Design(spec), plan)
    )


def test_blocks_beyond_the_budget_are_warned_of():
    spec = study(verdict={"blocks": 40, "budget": "5min"})
    assert any("more than the budget of 5min" in warning for warning in warnings(Design(spec), make_plan(spec, 1, NOW)))


def test_identical_arms_are_called_an_aa_study():
    spec = build_study({"arms": {"a": {}, "b": {"postgres": "18"}}, "verdict": {"blocks": 8}}, "test")
    assert any(
        "the arms a and b are identical: the study compares equal set-ups (A/A)" in each
        for each in warnings(Design(spec), make_plan(spec, 1, NOW))
    )
    assert not warnings(Design(study(verdict={"blocks": 8})), make_plan(study(verdict={"blocks": 8}), 1, NOW))


def test_what_the_study_varies_is_declared_per_arm():
    spec = build_study(
        {
            "server": {"settings": {"synchronous_commit": "on"}},
            "arms": {
                "base": {},
                "same in other words": {"settings": {"synchronous_commit": True}},
                "off": {"settings": {"synchronous_commit": "off"}},
                "old": {"postgres": "17", "initdb": ["--no-data-checksums"], "setup_sql": ["SELECT 1"]},
            },
        },
        "test",
    )
    design = Design(spec)
    assert declared(design, "base") == []
    assert declared(design, "same in other words") == []
    assert declared(design, "off") == ["settings.synchronous_commit"]
    assert declared(design, "old") == ["server.version", "server.initdb", "server.setup_sql"]


def test_a_rate_is_one_more_dimension_of_the_load_points_and_changes_what_is_compared():
    closed = make_plan(study(verdict={"blocks": 1}), 1, NOW)
    plan = make_plan(study(load={"clients": [1, 8], "rate": [50, 2500.5]}, verdict={"blocks": 1}), 1, NOW)
    assert (closed.measure, plan.measure) == ("goodput", "mean response time")
    assert [(point.label, point.slug) for point in plan.load_points[:2]] == [
        ("tpcb-like, scale 10, 1 client, 50/s", "tpcb-like-s10-c1-r50"),
        ("tpcb-like, scale 10, 1 client, 2,500.5/s", "tpcb-like-s10-c1-r2500.5"),
    ]
    assert len(plan.load_points) == 4


def test_a_load_point_without_a_rate_is_stored_as_before_there_were_rates():
    plan = make_plan(study(verdict={"blocks": 1}), 1, NOW)
    assert set(plan.load_points[0].model_dump()) == {"workload", "scale", "clients", "protocol"}
    assert type(plan).model_validate_json(plan.model_dump_json()) == plan


def test_what_arms_change_of_the_host_is_declared_by_the_facts_that_show_it():
    ext4 = {"fs": "ext4", "mount": ["noatime"]}
    spec = build_study(
        {
            "server": {"storage": ext4},
            "arms": {
                "base": {},
                "nobarrier": {"storage": ext4 | {"mount": ["noatime", "nobarrier"]}},
                "xfs": {"storage": {"fs": "xfs"}},
                "wal": {"storage": ext4 | {"wal": {"fs": "tmpfs"}}},
                "pages": {"huge_pages": "2MB", "thp": "never"},
                "kernel": {"sysctl": {"vm.swappiness": 1, "kernel.sched_autogroup_enabled": 0}},
                "dirty": {"sysctl": {"vm.dirty_bytes": 100_000_000}},
            },
        },
        "test",
    )
    design = Design(spec)
    assert declared(design, "nobarrier") == ["storage.mount_options"]
    assert "storage.filesystem" in declared(design, "xfs")
    assert {key.startswith("storage.wal_") for key in declared(design, "wal")} == {True}
    assert declared(design, "pages") == [
        "memory.huge_pages",
        "settings.huge_pages",
        "settings.huge_page_size",
        "memory.thp",
    ]
    assert declared(design, "dirty") == ["memory.dirty_bytes", "memory.dirty_ratio"]
    assert declared(design, "kernel") == ["os.kernel.sched_autogroup_enabled", "memory.swappiness"]
