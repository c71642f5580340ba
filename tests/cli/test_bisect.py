"""`pgtrial bisect` from the command line, on studies that have run already."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pgtrial.cli import bisect
from pgtrial.model.errors import PgtrialError
from pgtrial.model.records.bisection import Bisection
from pgtrial.model.records.facts import Audit
from pgtrial.model.study.spec import StudySpec
from pgtrial.report.data import read_measured
from pgtrial.servers.builds.kept import BuildError
from pgtrial.statistics import p8
from tests.report.conftest import write_study
from tests.repositories import Repository
from tests.verdict.studies import make_plan, noisy, run

STUDY = """
[load]
workload = "select-only"
[server]
postgres = "git:repository@HEAD"
"""


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Makes twelve commits on a line, tagged c0 to c11, and a study of them in the current directory."""
    monkeypatch.chdir(tmp_path)
    made = Repository(tmp_path / "repository")
    for number in range(12):
        made.commit(f"change {number}", {"configure": f"#!/bin/sh\n# {number}\n"})
        made.git("tag", f"c{number}")
    Path("s.toml").write_text(STUDY)
    return made


@pytest.fixture
def measured(repository, monkeypatch):
    """Studies that the bisection starts have run already; the speed of each commit is 1 where none is given."""
    started: list[StudySpec] = []

    def measure(speeds: dict[str, float], broken: tuple[str, ...] = (), stopped_at: int | None = None):
        by_commit = {repository.git("rev-parse", tag): speed for tag, speed in speeds.items()}
        not_built = {repository.git("rev-parse", tag) for tag in broken}

        def start(spec, results, *, conclude, console, again):
            commits = [table.postgres.rpartition("@")[2] for table in spec.arms.values()]
            if not_built.intersection(commits):
                raise BuildError("x.c:1: error: no; the whole output is in /state/log")
            if len(started) == stopped_at:
                return 143
            started.append(spec)
            arms = tuple(spec.arms)
            plan = make_plan(arms, blocks=18, margin=spec.verdict.margin)
            assert spec.verdict.studies is None, "each study has the whole error"
            plan = plan.model_copy(update={"looks": p8.looks(18)})
            speed = [by_commit.get(commit, 1.0) for commit in commits]
            trials = run(plan, noisy({arms[1]: speed[1] / speed[0]}, sd=0.002))
            conclude(write_study(results, plan, trials, Audit(findings=[]), spec.study.question))
            return 0

        monkeypatch.setattr(bisect, "start", start)
        return started

    monkeypatch.setattr(
        bisect,
        "build_report",
        lambda study: study.write_file("verdict.json", read_measured(study).result.model_dump_json()),
    )
    return measure


def from_number(number: int, speed: float) -> dict[str, float]:
    return {f"c{later}": speed for later in range(number, 12)}


def run_bisect(*ends: str, **options) -> int:
    return bisect.bisect_command(*(ends or ("c0", "c11")), **{"study": "s.toml", **options})


def test_the_commit_is_named_with_its_effect_and_a_log_for_git(repository, measured, capsys):
    started = measured(from_number(7, 0.94), broken=("c5", "c3"))
    assert run_bisect(budget="3min") == 1
    commit = repository.git("rev-parse", "c7")
    printed = capsys.readouterr().out
    assert printed.startswith(f"{commit[:10]} (change 7) ")
    assert f"commit: {commit}" in printed
    [record] = Path("results").glob("bisect-s-*/bisection.json")
    known = Bisection.model_validate_json(record.read_text())
    assert (known.commits, known.studies) == (11, 8)
    assert {(spec.verdict.studies, spec.verdict.final) for spec in started} == {(None, True)}
    *before, last = [spec.verdict.budget for spec in started]
    assert set(before) == {180.0}
    assert last == 180.0 * (known.studies - len(before)), "the time that the search left"
    assert list(started[0].arms) == [repository.git("rev-parse", tag)[:10] for tag in ("c0", "c11")]
    assert record.with_name("bisect.log").read_text().endswith(f"# first bad commit: [{commit}] change 7\n")
    repository.git("bisect", "replay", str(record.with_name("bisect.log").absolute()))


def test_a_commit_next_to_one_that_does_not_build_is_not_named_alone(repository, measured, capsys):
    measured(from_number(7, 0.94), broken=("c6",))
    assert run_bisect() == 2
    printed = capsys.readouterr().out
    assert "one of 2 commits makes the difference, but it is not known which; the others were skipped" in printed
    assert [f"{repository.git('rev-parse', tag)} change {tag[1:]}" in printed for tag in ("c6", "c7")] == [True, True]


def test_without_a_difference_the_bisection_ends(measured, capsys):
    started = measured({})
    assert run_bisect(json=True) == 0
    assert len(started) == 1
    assert json.loads(capsys.readouterr().out)["answer"] == "none"


def test_a_bisection_that_was_stopped_goes_on_with_the_same_command(measured, capsys):
    first = measured(from_number(7, 0.94), stopped_at=2)
    assert run_bisect() == 143
    assert "run the same command again to continue the bisection" in capsys.readouterr().err
    number = len(first)
    later = measured(from_number(7, 0.94))
    assert run_bisect() == 1
    names = [tuple(spec.arms) for spec in later]
    assert len(set(names)) == len(names)
    assert number == 2


def test_another_question_does_not_take_the_place_of_one_that_is_there(measured):
    measured({})
    run_bisect(results=Path("here"))
    with pytest.raises(PgtrialError, match="here belongs to another bisection; choose another directory"):
        run_bisect("c1", "c11", results=Path("here"))


@pytest.mark.parametrize(
    ("ends", "study", "words"),
    [
        (("c0", "nowhere"), STUDY, "the repository has no commit 'nowhere'"),
        (("c5", "c2"), STUDY, "BAD comes before GOOD: write them the other way round"),
        (("c5", "c5"), STUDY, "so no commit is between them"),
        (("c0", "c5"), '[load]\nworkload = "select-only"\n', "there is nothing to bisect; name a repository, such as"),
    ],
)
@pytest.mark.usefixtures("repository")
def test_ends_that_are_no_history_are_refused(ends, study, words):
    Path("s.toml").write_text(study)
    with pytest.raises(PgtrialError, match=words):
        run_bisect(*ends)
