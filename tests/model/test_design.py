from dataclasses import FrozenInstanceError, replace

import psutil
import pytest

from pgtrial.conduct.planning.interleaving import interleaved
from pgtrial.conduct.planning.plan import make_plan, plan_of
from pgtrial.model.errors import StudyError
from pgtrial.model.records.plan import Interleaving
from pgtrial.model.study.design import Design
from pgtrial.store.study_file import build_study

NOW = "2026-11-20T14:12:00+00:00"
SESSIONS = {"a": {}, "b": {"settings": {"jit": "off"}}}
SERVERS = {"a": {}, "b": {"settings": {"shared_buffers": "64MB"}}}
ONE_SERVER = Interleaving(slice_s=0.25, shared_server=True)


def study(arms=SESSIONS, **sections):
    return build_study({"arms": arms, **sections}, "test")


def memory_of(monkeypatch, total):
    found = psutil.virtual_memory()._replace(total=total)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: found)


def test_each_answer_is_derived_once_and_the_object_does_not_change():
    design = Design(study(load={"clients": [1, 8]}))
    assert design.servers is design.servers
    assert design.load_points is design.load_points
    assert design.trials_of_block == 4
    with pytest.raises(FrozenInstanceError):
        design.interleaving = ONE_SERVER


def test_servers_have_the_keys_that_all_arms_share_and_the_baseline_is_the_first():
    arms = {"base": {}, "given": {"dsn": "host=db"}, "other": {"settings": {"jit": "off"}}}
    design = Design(study(arms, server={"settings": {"work_mem": "8MB"}}))
    assert list(design.servers) == ["base", "given", "other"]
    assert design.servers["other"].settings == {"work_mem": "8MB", "jit": "off"}
    assert (design.baseline, list(design.given), list(design.made)) == ("base", ["given"], ["base", "other"])


def test_arms_are_sessions_of_one_server_only_if_the_trials_alternate_on_it():
    alone = Design(study())
    assert alone.possible_sessions == {"a": {}, "b": {"jit": "off"}}
    assert (alone.shares_server, alone.sessions) == (False, {})
    shared = replace(alone, interleaving=ONE_SERVER)
    assert (shared.shares_server, shared.sessions) == (True, alone.possible_sessions)
    each_its_own = replace(alone, interleaving=Interleaving(slice_s=0.25))
    assert (each_its_own.shares_server, each_its_own.sessions) == (False, {})


def test_a_study_with_other_arms_derives_its_answers_anew():
    design = Design(study())
    assert design.possible_sessions
    other = replace(design, spec=study(SERVERS))
    assert other.servers["b"].settings == {"shared_buffers": "64MB"}
    assert other.possible_sessions == {}


def test_what_a_plan_says_of_turns_holds_however_much_memory_the_machine_has_later(monkeypatch):
    arms = {name: {"settings": {"shared_buffers": size}} for name, size in (("a", "1GB"), ("b", "2GB"))}
    spec = study(arms, load={"warmup": "1s", "duration": "5s"})
    memory_of(monkeypatch, 64 * 10**9)
    plan = make_plan(spec, 7, NOW)
    assert plan.interleaving is not None
    memory_of(monkeypatch, 10**9)
    assert make_plan(spec, 7, NOW).interleaving is None
    design = Design.planned(spec, plan)
    assert design.interleaving == plan.interleaving
    assert plan_of(design, 7, NOW) == plan


def test_how_trials_alternate_is_asked_of_the_machine_once_for_a_plan(monkeypatch):
    asked = []
    found = psutil.virtual_memory()
    monkeypatch.setattr(psutil, "virtual_memory", lambda: asked.append(1) or found)
    make_plan(study(SERVERS), 7, NOW)
    assert len(asked) == 1


def test_deployments_are_as_many_in_each_arm():
    pairs = {"a": {"dsn": ["host=a1", "host=a2"]}, "b": {"dsn": ["host=b1", "host=b2"]}}
    assert Design(study(pairs)).deployments == 2
    assert Design(study()).deployments == 1
    with pytest.raises(StudyError, match=r"\[arms.a\] names 2 deployments and \[arms.b\] 1"):
        _ = Design(study({**pairs, "b": {"dsn": "host=b1"}})).deployments


def test_planner_statistics_are_drawn_where_an_arm_has_fresh_copies():
    assert Design(study()).statistics == "drawn"
    assert Design(study({"a": {"dsn": "host=a"}, "b": {"dsn": "host=b"}})).statistics == "once"


def test_claims_that_share_an_error_grow_with_arms_and_families():
    third = {**SESSIONS, "c": {"settings": {"jit": "on"}}}
    assert [Design(study(arms)).claims for arms in (SESSIONS, third)] == [1, 2]
    points = Design(study(load={"clients": [1, 8]}, verdict={"error": "all"}))
    assert (points.families, points.claims) == (3, 3)
    assert interleaved(points).claims == 3
