"""Layouts of a server from source: linked once, drawn for each block and arm, and the same facts for all."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from pgtrial.conduct.planning.plan import More, extend, make_plan, warnings
from pgtrial.conduct.run_study import run_study
from pgtrial.model.errors import StudyError
from pgtrial.model.study.design import Design
from pgtrial.report.build import build_report
from pgtrial.servers.builds.kept import Builds, record_beside
from pgtrial.servers.builds.layouts import copy_layouts
from pgtrial.servers.builds.of_study import built
from pgtrial.servers.installations import resolve
from pgtrial.store.study_file import build_study
from pgtrial.verdict.rules import audit
from tests.conduct.small import GENTLE, small_study, undeclared_differences
from tests.conftest import require, require_engine, require_server
from tests.repositories import Repository, linked_server_files, server_files

NOW = "2026-11-20T14:12:00+00:00"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Makes two repositories: of a server whose files can be linked in several orders, and of one whose build does not
    show its link command.
    """
    path = tmp_path_factory.mktemp("layouts")
    installed = require_server(17).bin.parent
    Repository(path / "postgres").commit("linked", linked_server_files(installed))
    Repository(path / "unlinked").commit("copied", server_files(installed))
    return path


def plan_of(home, blocks, *, seed=7, arms="ab", layouts=4, load=None):
    servers = {arm: {"postgres": "git:postgres@HEAD", "layouts": layouts} for arm in arms}
    sections = {"arms": {**servers, "other": {"postgres": "18"}}, "load": load or {}, "verdict": {"blocks": blocks}}
    spec = build_study(sections, "test", home)
    return spec, make_plan(spec, seed, NOW)


def drawn(plan):
    """Returns for each block the layout that was drawn for each arm; it must be the same at all load points."""
    blocks = [{} for _ in range(plan.max_blocks)]
    for trial in plan.trials:
        assert blocks[trial.block].setdefault(trial.arm, trial.layout) == trial.layout
    return blocks


def test_each_block_draws_a_layout_for_each_arm_that_has_some(home):
    _, plan = plan_of(home, 300, load={"clients": [1, 8]})
    blocks = drawn(plan)
    assert all(block["a"] != block["b"] and block["other"] is None for block in blocks)
    pairs = Counter((block["a"], block["b"]) for block in blocks)
    assert len(pairs) == 12
    # five standard deviations of a count
    assert all(abs(times - 25) < 25 for times in pairs.values())
    assert drawn(plan_of(home, 300, seed=8, load={"clients": [1, 8]})[1]) != blocks


def test_a_layout_comes_again_when_all_others_have_had_their_turn(home):
    for block, following in zip(*[iter(drawn(plan_of(home, 40)[1]))] * 2, strict=True):
        assert sorted([block["a"], block["b"], following["a"], following["b"]]) == [1, 2, 3, 4]


def test_a_study_of_more_blocks_than_its_layouts_allow_says_that_it_is_about_these_layouts(home):
    spec, plan = plan_of(home, 8, layouts=16)
    assert "one of 16 layouts of the server's code drawn for each arm and block" in plan.scope
    assert not [warning for warning in warnings(Design(spec), plan) if "layouts" in warning]
    spec, longer = plan_of(home, 9, layouts=16)
    assert (
        "one of these 16 layouts of the server's code, which are used more than once, drawn for each arm and block"
        in longer.scope
    )
    assert [warning for warning in warnings(Design(spec), longer) if "layouts" in warning] == [
        "the layouts are used a second time after 8 blocks, so the verdict is about these layouts and not about the "
        "source; for 9 blocks set layouts = 18"
    ]
    more = extend(plan, Design.planned(spec, plan), More(blocks=9), [], decided=False, created=NOW)
    assert more.scope == longer.scope


def test_arms_that_are_more_than_the_layouts_share_them(home):
    for block in drawn(plan_of(home, 10, arms="abc", layouts=2)[1]):
        assert sorted(Counter(block[arm] for arm in "abc").values()) == [1, 2]


def test_a_study_that_goes_on_keeps_its_draws(home):
    spec, plan = plan_of(home, 6)
    longer = extend(plan, Design.planned(spec, plan), More(blocks=9), [], decided=False, created=NOW)
    assert longer.max_blocks == 9
    assert longer.trials[: len(plan.trials)] == plan.trials


def test_sessions_of_one_server_have_its_layout(home):
    arms = {name: {"settings": {"work_mem": name}} for name in ("1MB", "2MB", "3MB")}
    server = {"postgres": "git:postgres@HEAD", "layouts": 3}
    sections = {"arms": arms, "server": server, "verdict": {"blocks": 9}}
    blocks = drawn(make_plan(build_study(sections, "test", home), 7, NOW))
    assert all(len(set(block.values())) == 1 for block in blocks)
    assert {block["1MB"] for block in blocks} == {1, 2, 3}


def code_of(program):
    """Returns the functions of a server in the order of their addresses."""
    require(shutil.which("nm"), "nm")
    printed = subprocess.run(["nm", "-n", program], check=True, capture_output=True, text=True).stdout
    return "".join(re.findall(r" T ([a-h])$", printed, re.MULTILINE))


@pytest.fixture(scope="module")
def study(home):
    """Returns a study of two arms of one commit with three layouts, after two blocks."""
    require_engine()
    server = {"postgres": "git:postgres@HEAD", "layouts": 3}
    load = {"workload": [GENTLE], "clients": 1}
    ran = small_study(home / "study", folder=home, load=load, server=server, arms={"a": {}, "b": {}})
    run_study(ran, lambda event: None)
    return ran


@pytest.mark.server
def test_every_trial_runs_the_program_that_was_drawn(study):
    programs = Path(study.facts()["a"].facts["server"]["program"]).parent
    layouts = {number: code_of(programs.parent / "layouts" / str(number) / "bin" / "postgres") for number in (1, 2, 3)}
    assert len({code_of(programs / "postgres"), *layouts.values()}) == 4
    for trial, planned in zip(study.trials(), study.plan.trials, strict=True):
        assert (trial.status, trial.layout) == ("completed", planned.layout)
        [log] = (study.path / "trials").glob(f"{trial.index:04}-*/server.log")
        assert f"code at {layouts[trial.layout]}\n" in log.read_text()


@pytest.mark.server
def test_facts_are_those_of_the_build_and_the_report_names_its_layouts(study):
    assert [facts.facts["server"]["layouts"] for facts in study.facts().values()] == [3, 3]
    assert undeclared_differences(audit(study.plan, study.facts(), study.design).findings) == []
    build_report(study)
    report = (study.path / "report.md").read_text()
    assert (
        "one of these 3 layouts of the server's code, which are used more than once, drawn for each arm and block"
        in report
    )
    by_block = {arm: [trial.layout for trial in study.trials() if trial.arm == arm] for arm in "ab"}
    assert "; ".join(f"{arm} {one}, {two}" for arm, (one, two) in by_block.items()) in report


def test_a_build_with_layouts_is_one_of_its_own_and_finds_its_files(home, run_directory):
    builds = Builds(home / "builds")
    arms = {"a": {"postgres": "git:postgres@HEAD", "layouts": 2}, "b": {"postgres": "git:postgres@HEAD"}}
    spec = built(build_study({"arms": arms}, "test", home), builds, run_directory, lambda text: None)
    with_layouts, without = (Path(spec.resolved(arm).postgres) for arm in "ab")
    assert [record_beside(programs).facts.get("layouts") for programs in (with_layouts, without)] == [2, None]
    layout = with_layouts.parent / "layouts" / "2"
    assert resolve(str(layout / "bin")).major == 17
    assert (layout / "share").resolve() == with_layouts.parent / "share"
    assert not (without.parent / "layouts").exists()
    builds.close()
    copy = home / "copy" / "bin"
    shutil.copytree(with_layouts, copy)
    copy_layouts(resolve(str(with_layouts)), copy)
    server = resolve(str(copy.parent / "layouts" / "2" / "bin"))
    assert code_of(server.bin / "postgres") == code_of(layout / "bin" / "postgres")


def test_a_build_that_does_not_show_its_link_is_answered_with_what_to_do(home, run_directory):
    arms = {"a": {"postgres": "git:unlinked@HEAD", "layouts": 2}, "b": {}}
    with pytest.raises(StudyError, match=r"^arms.a: layouts need the command that links src/backend/postgres"):
        built(build_study({"arms": arms}, "test", home), Builds(home / "failed"), run_directory, lambda text: None)
