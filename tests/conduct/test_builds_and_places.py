"""Two builds of one version that take turns on two directories: one small study, looked at from all sides."""

from __future__ import annotations

import json
import shutil

import pytest

from pgtrial.conduct.run_study import run_study
from pgtrial.model.study.design import Design
from pgtrial.model.study.spec import StudySpec
from pgtrial.verdict.rules import audit
from tests.conduct.small import small_study
from tests.conftest import public_directory, require, require_engine, require_server
from tests.servers.builds import copy_build

pytestmark = [pytest.mark.server, pytest.mark.machine]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Runs a study of one block whose arms use two builds and two directories, and yields it."""
    require_engine()
    original = require_server(18)
    require("wheel" in original.origin, "the wheel of PostgreSQL 18")
    home = public_directory()
    patched = copy_build(original, home / "patch")
    with (patched / "postgres").open("ab") as program:
        program.write(b"patched")
    places = [home / "first", home / "second"]
    for place in places:
        place.mkdir()
    ran = small_study(
        tmp_path_factory.mktemp("study") / "s",
        blocks=1,
        server={"storage": {"on": [str(place) for place in places]}},
        arms={"master": {"postgres": str(original.bin)}, "patch": {"postgres": str(patched)}},
    )
    run_study(ran, lambda event: None)
    assert all(list(place.iterdir()) == [] for place in places)
    yield ran
    shutil.rmtree(home)


def test_each_build_runs_from_a_template_of_its_own(study, state_root):
    assert [trial.status for trial in study.trials()] == ["completed", "completed"]
    records = (state_root / "templates").glob("*/template.json")
    keys = [json.loads(record.read_text())["key"] for record in records]
    for arm in ("master", "patch"):
        server = study.facts()[arm].facts["server"]
        kind = f"PostgreSQL {server['version']} {server['program_sha256'][:16]} initdb"
        assert [key["version"] for key in keys if key["kind"] == kind and key["scale"] == 1], kind


def test_facts_tell_the_builds_apart(study):
    servers = [study.facts()[arm].facts["server"] for arm in ("master", "patch")]
    assert servers[0]["version"] == servers[1]["version"]
    assert servers[0]["program_sha256"] != servers[1]["program_sha256"]
    assert [server["program"].endswith("/postgres") for server in servers] == [True, True]
    assert servers[0]["program"] != servers[1]["program"]


def test_the_audit_has_nothing_against_the_declared_difference(study):
    stored = study.audit()
    assert stored is not None
    [following] = [finding for finding in stored.findings if finding.rule == "following_difference"]
    assert "server.program and server.program_sha256" in following.message
    assert {finding.rule for finding in stored.findings}.isdisjoint({"undeclared_difference", "debug_build"})


def test_a_debugging_build_is_told_all_the_same(study):
    facts = study.facts()
    patch = facts["patch"].facts
    debugging = {**patch, "server": {**patch["server"], "debug_assertions": "on", "build_flags": "-O0"}}
    facts = {**facts, "patch": facts["patch"].model_copy(update={"facts": debugging})}
    [finding] = [found for found in audit(study.plan, facts, study.design).findings if found.rule == "debug_build"]
    assert finding.arms == ["patch"]
    assert "assertions on and compiled without optimisation" in finding.message


def test_each_trial_was_at_the_place_that_was_drawn_for_it(study):
    planned = {trial.index: trial.place for trial in study.plan.trials}
    assert {trial.index: trial.place for trial in study.trials()} == planned
    assert sorted(map(str, planned.values())) == ["0", "1"]


def test_what_differs_between_the_places_is_no_difference_of_the_arms(study):
    facts = study.facts()
    for arm, source, flushes_per_s in [("master", "/dev/sda1", 1_000), ("patch", "/dev/sdz1", 100_000)]:
        measured = facts[arm].facts
        at_its_place = {
            **measured,
            "storage": {**measured["storage"], "source": source},
            "probes": {**measured["probes"], "flushes_per_s": flushes_per_s},
        }
        facts = {**facts, arm: facts[arm].model_copy(update={"facts": at_its_place})}
    found = audit(study.plan, facts, study.design).findings
    [finding] = [each for each in found if each.rule == "swapped_places"]
    assert (finding.severity, finding.arms) == ("info", ["master", "patch"])
    assert "at different ones, and so differed in storage.source" in finding.message
    assert {each.rule for each in found}.isdisjoint({"undeclared_difference", "unequal_flush"})
    fixed: StudySpec = study.spec.model_copy(update={"server": study.spec.server.model_copy(update={"storage": None})})
    named = {each.rule for each in audit(study.plan, facts, Design(fixed)).findings}
    assert {"undeclared_difference", "unequal_flush"} <= named
