"""Tests that every bundled study can be read and planned with each of its profiles, and that the `quick` profiles are
quick.
"""

import pytest

from pgtrial.conduct.planning.plan import make_plan, study_estimate, warnings
from pgtrial.model.study.design import Design
from pgtrial.model.study.variants import Build
from pgtrial.store.study_file import bundled_studies, profiles_of, read_study
from pgtrial.verdict.metrics.criteria import SECONDARY
from pgtrial.verdict.units import looks_of

PUBLISHED = ["os-comparison", "huge-pages", "filesystem-durability", "app-tasks"]
BUILDS = [Build(f"{major}.1", f"/pg/{major}/bin", "wheel") for major in (18, 17, 16, 15)]
ALL = [(name, profile) for name in bundled_studies() for profile in profiles_of(f"@{name}") or [None]]


def planned(name, profile):
    spec = read_study(f"@{name}", profile, lambda: BUILDS)
    return spec, make_plan(spec, 1, "now")


@pytest.mark.parametrize(("name", "profile"), ALL)
def test_every_profile_reads_plans_and_can_come_to_a_verdict_within_its_budget(name, profile):
    spec, plan = planned(name, profile)
    assert plan.name == name
    assert spec.study.profile == profile
    assert plan.looks
    assert warnings(Design(spec), plan) == []


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_studies_are_quick_unless_asked_for_in_full(name):
    profiles = profiles_of(f"@{name}")
    assert profiles[0] == "quick"
    assert "full" in profiles
    for profile in (each for each in profiles if each.startswith("quick")):
        _, plan = planned(name, profile)
        assert study_estimate(plan) < 30 * 60


@pytest.mark.parametrize(
    ("name", "day"), [(name, day) for name, day in ALL if day is not None and day.startswith("day")]
)
def test_a_day_is_enough_for_the_same_claims_from_the_same_parameters(name, day):
    spec, plan = planned(name, day)
    full_spec, full = planned(name, day.replace("day", "full"))
    assert study_estimate(plan) < 24 * 3600
    assert (plan.load_points, plan.arms, plan.baseline) == (full.load_points, full.arms, full.baseline)
    assert (plan.looks, plan.margin, plan.measure) == (full.looks, full.margin, full.measure)
    for arm in plan.arms:
        ours, theirs = spec.resolved(arm), full_spec.resolved(arm)
        assert ours.model_copy(update={"reset": theirs.reset}) == theirs


def test_every_published_study_has_a_profile_of_a_day():
    assert {name for name in bundled_studies() if "full" in profiles_of(f"@{name}")} == {*PUBLISHED, "managed-cloud"}
    assert all("day" in profiles_of(f"@{name}") for name in (*PUBLISHED, "managed-cloud"))


def test_the_full_profiles_have_the_published_parameters():
    systems, _ = planned("os-comparison", "full")
    assert len(systems.arms) == 5
    assert systems.load.scale == [5000]
    assert systems.load.clients == [1, *range(10, 121, 10)]
    assert (systems.load.duration, systems.load.threads) == (1800, 8)
    assert all(systems.resolved(arm).ssh and systems.resolved(arm).data for arm in systems.arms)
    assert systems.server.settings["shared_buffers"] == "8GB"
    large, _ = planned("os-comparison", "full-200GB")
    assert large.server.settings == systems.server.settings | {
        "shared_buffers": "48GB",
        "maintenance_work_mem": "2GB",
        "effective_cache_size": "144GB",
        "work_mem": "640MB",
    }
    pages, _ = planned("huge-pages", "full")
    assert {pages.resolved(arm).huge_pages for arm in pages.arms} == {"off", "2MB", "1GB"}
    assert {pages.resolved(arm).thp for arm in pages.arms} == {"never"}
    assert {3000, 6000} <= set(pages.load.scale), "48 GB fit the buffers of 64 GB, 96 GB do not"
    assert pages.server.settings["shared_buffers"] == "64GB"
    disks, plan = planned("filesystem-durability", "full")
    assert (disks.load.duration, max(disks.load.clients)) == (60, 300)
    assert disks.server.settings == {"max_connections": "310"}
    assert plan.declared["ext4-nobarrier"] == ["storage.mount_options"]
    application, _ = planned("app-tasks", "full")
    assert list(application.arms) == ["Linux", "Windows"]
    tasks = application.load.tasks
    assert (tasks.apps, tasks.tasks, tasks.arrival, tasks.pool) == (3, 5000, "at-once", 100)
    assert (tasks.threads_in_table, tasks.rows) == (10, 100_000)


def test_quick_huge_pages_have_points_over_clients_and_over_size_on_both_sides_of_the_buffers():
    for profile in ("quick", "quick-2MB"):
        spec, _ = planned("huge-pages", profile)
        assert len(spec.load.clients) > 1
        data_mb = [15 * scale for scale in spec.load.scale]
        assert min(data_mb) < 896 < max(data_mb)
        assert spec.server.settings["shared_buffers"] == "896MB"


def test_quick_builds_are_compared_with_checksums_in_all_of_them():
    spec, plan = planned("os-comparison", "quick")
    assert plan.baseline == "15.1 wheel"
    assert all("--data-checksums" in (spec.resolved(arm).initdb or []) for arm in spec.arms)


def test_the_tasks_have_blocks_enough_for_every_criterion():
    for profile in ("quick", "full"):
        _, plan = planned("app-tasks", profile)
        assert plan.max_blocks >= looks_of(plan).fewest(SECONDARY)
        assert not plan.stop_early
