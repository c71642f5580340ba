"""The search of a bisection and its runner, on simulated histories and studies."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgtrial.conduct.bisection.question import ask
from pgtrial.conduct.bisection.runner import BisectionRunner, DoesNotBuildError, Judged, Order, log_of, studies_of
from pgtrial.conduct.bisection.search import Search
from pgtrial.model.records.bisection import Bisection
from pgtrial.model.records.claims import Estimate
from pgtrial.store.repositories import Commit
from pgtrial.store.study_file import build_study
from tests.repositories import Repository

GOOD = "good"


def history(parents):
    """Commits 0, 1, 2, ...; by number the parents of each, -1 for GOOD."""
    names = [f"{number:040}" for number in range(len(parents))]
    return [
        Commit(names[number], tuple(GOOD if one < 0 else names[one] for one in of), f"commit {number}")
        for number, of in enumerate(parents)
    ]


def line(length):
    return history([[number - 1] for number in range(length)])


@st.composite
def histories(draw):
    """Histories with branches and merges in which the last commit reaches all others."""
    parents = []
    for number in range(draw(st.integers(1, 40))):
        first = draw(st.integers(max(-1, number - 4), number - 1))
        parents.append(sorted({first, *([draw(st.integers(-1, number - 1))] if draw(st.booleans()) else [])}))
    heads = set(range(len(parents))) - {one for of in parents for one in of}
    return history([*parents, sorted(heads)])


def reached(commits, commit):
    by_name = {one.id: one for one in commits}
    found, todo = set(), [commit]
    while todo:
        if (name := todo.pop()) in by_name and name not in found:
            found.add(name)
            todo += by_name[name].parents
    return found


def run(commits, culprit, skipped=frozenset()):
    """Runs a bisection to its end; returns the finished search and how many commits it measured, not counting skipped
    ones.
    """
    search, looks = Search(commits).marked(commits[-1].id, "bad"), 0
    while (commit := search.next) is not None:
        if commit.id in skipped:
            search = search.marked(commit.id, "skip")
        else:
            search = search.marked(commit.id, "bad" if culprit in reached(commits, commit.id) else "good")
            looks += 1
        assert culprit in [one.id for one in search.suspects]
    return search, looks


@given(st.data())
def test_without_skips_the_first_bad_commit_of_any_history_is_named_within_the_steps_that_were_planned(data):
    commits = data.draw(histories())
    culprit = data.draw(st.sampled_from(commits)).id
    search, looks = run(commits, culprit)
    assert [commit.id for commit in search.suspects] == [culprit]
    assert looks <= Search(commits).most_steps


@given(st.data())
def test_with_skips_the_suspects_are_the_first_bad_commit_and_those_that_no_look_could_tell_from_it(data):
    commits = data.draw(histories())
    culprit = data.draw(st.sampled_from(commits)).id
    skipped = set(data.draw(st.lists(st.sampled_from([commit.id for commit in commits]))))
    search, _ = run(commits, culprit, skipped)
    suspects = [commit.id for commit in search.suspects]
    assert culprit in suspects
    # all others were looked at
    assert {search.marks.get(suspect) for suspect in suspects} <= {"skip", "bad"}
    assert len(suspects) == 1 or skipped.intersection(suspects)


@pytest.mark.parametrize(("length", "steps"), [(1, 0), (2, 1), (3, 2), (30, 5), (1024, 10)])
def test_a_line_is_halved(length, steps):
    assert Search(line(length)).most_steps == steps


def test_branches_beside_each_other_take_a_look_each():
    branches = history([[-1]] * 6 + [[0, 1, 2, 3, 4, 5]])
    assert Search(branches).most_steps == 6


def test_the_commits_in_which_a_client_program_runs_are_bisected(tmp_path):
    driver = Repository(tmp_path / "driver")
    commits = [driver.commit(f"commit {number}", {"bench.py": f"# {number}"}) for number in range(4)]
    arm = {"command": f"{sys.executable} bench.py", "command_directory": "git:driver@HEAD"}
    spec = build_study({"arms": {"good": arm, "bad": arm}}, "s.toml", tmp_path)
    question = ask(spec, commits[0], "HEAD", first_parent=False, report=print)
    assert [commit.id for commit in question.search.commits] == commits[1:]
    study = question.study_of(Order("ends", question.search.commits[-1], commits[0], margin=None))
    assert [setup.command_directory for setup in study.arms.values()] == [
        f"git:{driver.path}@{commit}" for commit in (commits[0], commits[-1])
    ]


def test_the_commit_next_to_a_skipped_one_is_looked_at():
    search = Search(line(9))
    assert search.next.subject == "commit 3"
    assert search.marked(search.next.id, "skip").next.subject in ("commit 4", "commit 2")


@dataclass
class Simulated:
    """Studies of a history in which each commit has a speed; those without one do not build."""

    speeds: dict[str, float | None]
    undecided: set[str] = field(default_factory=set)
    width: float = 0.01
    orders: list[Order] = field(default_factory=list)

    def __call__(self, order: Order) -> Judged:
        self.orders.append(order)
        mine, other = self.speeds[order.commit.id], self.speeds.get(order.against, 1.0)
        if mine is None or other is None:
            raise DoesNotBuildError("it does not build: error: no")
        change = mine / other - 1
        word = "better" if change > 0 else "worse"
        if abs(change) < (order.margin or 0.01):
            word = "equivalent"
        if order.commit.id in self.undecided:
            word = "undecided"
        return Judged(
            word, Estimate(low=change - self.width, value=change, high=change + self.width), order.commit.id[-3:]
        )


def runner(commits, judge, known=None, kept=None):
    search = Search(commits)
    beginning = Bisection(
        source="git:/x@y",
        good=GOOD,
        bad=commits[-1].id,
        first_parent=False,
        commits=len(commits),
        studies=studies_of(search),
        question="",
    )
    return BisectionRunner(search, known or beginning, judge, (kept if kept is not None else []).append)


def speeds(commits, changes):
    """Returns the speed of each commit of a line: the product of the changes up to it."""
    speed, result = 1.0, {}
    for number, commit in enumerate(commits):
        speed *= 1 + changes.get(number, 0.0)
        result[commit.id] = speed
    return result


@pytest.mark.parametrize("change", [-0.05, 0.05])
@pytest.mark.parametrize("culprit", [0, 1, 13, 28, 29])
def test_the_commit_that_changes_the_speed_is_named_with_its_effect(culprit, change):
    commits = line(30)
    judge = Simulated(speeds(commits, {culprit: change}))
    answer = runner(commits, judge).run()
    assert (answer.kind, answer.exit_status) == ("found", 1)
    assert answer.step.commit == commits[culprit].id
    assert answer.step.difference.value == pytest.approx(change)
    assert len(judge.orders) <= studies_of(Search(commits)) == 9
    assert [order.margin for order in judge.orders[:2]] == [None, pytest.approx(0.025, rel=0.05)]
    assert f"is {'worse' if change < 0 else 'better'} than its parent" in answer.sentence


@pytest.mark.parametrize("change", [-0.05, 0.05])
def test_a_commit_that_is_undecided_is_marked_by_the_side_to_which_it_leans(change):
    """Half of the difference tells them apart, at an error of 20% on one side; all that is left is skipped."""
    commits = line(30)
    true = speeds(commits, {20: change})
    told = {commit.id for commit in commits[:-1]} - {commits[20].id}

    def judge(order):
        judged = Simulated(true, told, width=0.06)(order)
        level = math.log(true[order.commit.id] / true.get(order.against, 1.0))
        spread = 0.02 if commits.index(order.commit) not in (14, 15) else 1.0
        return replace(judged, log_ratios=[level + spread * noise for noise in np.linspace(-1, 1, 12)])

    kept = []
    answer = runner(commits, judge, kept=kept).run()
    assert (answer.kind, answer.step.commit) == ("found", commits[20].id)
    marks = {commits.index(next(one for one in commits if one.id == step.commit)): step for step in kept[-1].steps}
    assert {marks[number].mark for number in marks if number in (14, 15)} == {"skip"}
    undecided = [number for number in marks if marks[number].verdict == "undecided" and number not in (14, 15)]
    assert undecided
    assert {number: marks[number].mark for number in undecided} == {
        number: "good" if number < 20 else "bad" for number in undecided
    }


def test_the_study_that_names_a_commit_is_none_of_those_that_led_to_it():
    """The first commit, whose parent is GOOD, was compared with GOOD before: that study has chosen it."""
    commits = line(4)
    kept = []
    answer = runner(commits, Simulated(speeds(commits, {0: -0.05})), kept=kept).run()
    assert answer.kind == "found"
    assert [step.part for step in kept[-1].steps if step.commit == commits[0].id] == ["search", "culprit"]


def test_without_a_difference_of_the_ends_nothing_is_searched():
    commits = line(30)
    judge = Simulated(speeds(commits, {3: 0.001}))
    answer = runner(commits, judge).run()
    assert (answer.kind, answer.exit_status, len(judge.orders)) == ("none", 0, 1)


def test_ends_that_are_undecided_are_no_answer():
    commits = line(3)
    answer = runner(commits, Simulated(speeds(commits, {}), {commits[-1].id})).run()
    assert (answer.kind, answer.exit_status) == ("open", 2)
    assert "not known to differ from GOOD (undecided); a larger --budget" in answer.sentence


def test_ends_that_are_undecided_are_compared_once_more_in_the_time_that_the_search_does_not_need():
    commits, kept = line(30), []
    judge = Simulated(speeds(commits, {20: -0.05}))

    def at_first_undecided(order):
        judged = judge(order)
        return replace(judged, verdict="undecided") if order.part == "ends" and order.attempt == 1 else judged

    answer = runner(commits, at_first_undecided, kept=kept).run()
    assert (answer.kind, answer.step.commit) == ("found", commits[20].id)
    assert [(order.part, order.attempt, order.times) for order in judge.orders[:2]] == [("ends", 1, 1), ("ends", 2, 2)]
    assert sum(order.times for order in judge.orders) <= studies_of(Search(commits))
    for number, known in enumerate(kept):
        before = len(judge.orders)
        again = runner(commits, at_first_undecided, Bisection.model_validate_json(known.model_dump_json())).run()
        assert again == answer, "it was stopped here, and goes on with what it knows"
        assert len(judge.orders) - before == len(kept) - 1 - number


def test_a_commit_that_leans_to_no_side_is_compared_once_more_while_studies_are_left():
    commits, kept = line(30), []
    judge = Simulated(speeds(commits, {20: -0.05}))

    def at_first_undecided(order):
        judged = judge(order)
        open_at_first = order.commit.id in (commits[19].id, commits[20].id) and order.attempt == 1
        return replace(judged, verdict="undecided") if open_at_first and order.part == "search" else judged

    answer = runner(commits, at_first_undecided, kept=kept).run()
    assert (answer.kind, answer.step.commit) == ("found", commits[20].id)
    again = [step for step in kept[-1].steps if step.attempt == 2]
    assert again
    assert {step.commit for step in again} <= {commits[19].id, commits[20].id}
    assert sum(step.times for step in kept[-1].steps) == studies_of(Search(commits))
    for known in kept:
        assert (
            runner(commits, at_first_undecided, Bisection.model_validate_json(known.model_dump_json())).run() == answer
        )


def test_the_last_study_has_the_time_that_the_others_left():
    commits = line(30)
    judge = Simulated(speeds(commits, {20: -0.05}))
    assert runner(commits, judge).run().kind == "found"
    *before, last = judge.orders
    assert {order.times for order in before} == {1}
    assert (last.part, last.times) == ("culprit", studies_of(Search(commits)) - len(before))


def test_an_end_that_does_not_build_is_an_error():
    commits = line(3)
    with pytest.raises(DoesNotBuildError):
        runner(commits, Simulated({**speeds(commits, {}), commits[-1].id: None})).run()


def test_commits_that_do_not_build_are_passed_over_and_cost_no_study():
    commits = line(30)
    built = speeds(commits, {20: -0.05})
    broken = {commits[number].id: None for number in (*range(10, 19), 25)}
    kept = []
    answer = runner(commits, Simulated({**built, **broken}), kept=kept).run()
    assert answer.kind == "found"
    assert answer.step.commit == commits[20].id
    skipped = [step for step in kept[-1].steps if step.mark == "skip"]
    assert skipped
    assert {step.study for step in skipped} == {None}


def test_a_commit_beside_skipped_ones_is_not_named_alone():
    commits = line(30)
    built = speeds(commits, {20: -0.05})
    answer = runner(commits, Simulated({**built, commits[19].id: None, commits[20].id: None})).run()
    assert answer.exit_status == 2
    assert [commit.subject for commit in answer.suspects] == ["commit 19", "commit 20", "commit 21"]
    assert (
        "one of 3 commits makes the difference, but it is not known which; the others were skipped" in answer.sentence
    )


def test_no_more_studies_are_run_than_were_planned():
    commits = line(30)
    judge = Simulated(speeds(commits, {20: -0.05}), {commit.id for commit in commits[:-1]}, width=0.03)
    answer = runner(commits, judge).run()
    assert len(judge.orders) == studies_of(Search(commits)) - 1
    assert "all studies that were planned are run" in answer.sentence


def test_an_undecided_commit_is_good_if_its_interval_leaves_out_half_of_the_difference():
    commits = line(30)
    judge = Simulated(speeds(commits, {20: -0.05}), {commit.id for commit in commits[:20]}, width=0.02)
    answer = runner(commits, judge).run()
    assert answer.kind == "found"
    assert answer.step.commit == commits[20].id


@pytest.mark.parametrize("change", [-0.05, 0.05])
def test_a_commit_with_a_small_change_of_its_own_is_good(change):
    commits = line(30)
    judge = Simulated(speeds(commits, {5: change / 10, 20: change}), width=0.001)
    kept = []
    answer = runner(commits, judge, kept=kept).run()
    assert answer.kind == "found"
    assert answer.step.commit == commits[20].id
    before = {commit.id for commit in commits[5:20]}
    assert {step.mark for step in kept[-1].steps if step.commit in before} == {"good"}


def test_a_difference_of_many_commits_is_no_commits():
    commits = line(30)
    answer = runner(commits, Simulated(speeds(commits, dict.fromkeys(range(30), -0.002)))).run()
    assert answer.exit_status == 2
    assert "several commits together make the difference between GOOD and BAD" in answer.sentence


def test_a_bisection_that_was_stopped_goes_on_with_what_it_knows():
    commits = line(30)
    judge, kept = Simulated(speeds(commits, {11: -0.05})), []
    whole = runner(commits, judge, kept=kept).run()
    for number, known in enumerate(kept):
        again = Simulated(judge.speeds)
        assert runner(commits, again, Bisection.model_validate_json(known.model_dump_json())).run() == whole
        assert again.orders == judge.orders[number + 1 :]


def test_the_log_is_one_that_git_replays():
    commits, kept = line(4), []
    answer = runner(commits, Simulated(speeds(commits, {1: -0.05})), kept=kept).run()
    assert log_of(kept[-1]).splitlines()[-1].startswith("# bad: ")
    assert log_of(kept[-1], answer.step).splitlines() == [
        "# good: [good]",
        f"git bisect start '{commits[3].id}' 'good'",
        f"# bad: [{commits[3].id}] commit 3 (worse, -6.0..-4.0%)",
        f"# bad: [{commits[1].id}] commit 1 (worse, -6.0..-4.0%)",
        f"git bisect bad {commits[1].id}",
        f"# good: [{commits[0].id}] commit 0 (equivalent, -1.0..+1.0%)",
        f"git bisect good {commits[0].id}",
        f"# bad: [{commits[1].id}] commit 1 (worse, -6.0..-4.0%)",
        f"# first bad commit: [{commits[1].id}] commit 1",
    ]
