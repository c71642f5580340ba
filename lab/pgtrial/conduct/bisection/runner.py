"""Runs a bisection from the comparison of its two ends to its answer: decides which study comes next, what a
study says about a commit, and when the bisection has ended.

First GOOD and BAD, the two ends, are compared. If they do not differ, there is no commit to look for. Then each commit
that the search chooses is compared with GOOD. Half of the difference between GOOD and BAD, as a log-ratio, is the
threshold between good and bad commits: a commit is good if its interval lies on GOOD's side of the threshold, and bad
if its study decides that it differs from GOOD in the direction of BAD. For an undecided commit, a test against the
threshold with the error `_LEANING` decides whether it counts as good or bad; the commit is skipped only if this test
does not decide either. At the end one commit remains. It is compared with its parent in a study of its own, and is
named as the answer only if this study finds a difference.

The user's time is enough for a few more studies than a search without undecided commits needs. They are used for open
questions: if the ends are undecided, they are compared once more, and so are skipped commits. The time that is left
after that goes to the last study.

Each study has the whole error of 5%, and a commit that changes nothing is named in at most 5% of bisections. The reason
is that only the earlier studies determine which commit remains. The order of the trials in the last study is drawn
independently of the earlier studies, and with an order drawn in this way, a study of a commit that equals its parent
finds a difference in at most 5% of cases. If an earlier study was wrong, the bisection finds no answer, but does not
name a wrong commit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pgtrial.conduct.bisection.search import Search
from pgtrial.model.errors import PgtrialError
from pgtrial.model.records.bisection import Bisection, BisectionStep, Mark, Part
from pgtrial.model.records.claims import Estimate
from pgtrial.statistics import p9
from pgtrial.store.repositories import Commit

_SPARE = 2
"""The number of studies that are planned in addition to those that a search without undecided commits needs."""
_LEANING = 0.2
"""The one-sided error of the test that assigns an undecided commit to GOOD or to BAD. A commit that equals one of the
ends is assigned to the wrong side more rarely than that, since it is half of the difference away from the threshold."""
_LEAST_MARGIN, _MOST_MARGIN = 0.001, 0.9


class DoesNotBuildError(PgtrialError):
    """Raised if a commit, or the commit with which it is compared, cannot be built."""


@dataclass(frozen=True)
class Judged:
    """The result of one study that compares a commit with another one."""

    verdict: str
    """The verdict of the study: better, worse, equivalent, undecided or withheld."""
    difference: Estimate | None
    study: str
    """The directory of the study."""
    log_ratios: Sequence[float] = ()
    """The log-ratio of the speeds in each block that counts."""


@dataclass(frozen=True)
class Order:
    """A study that the bisection needs next."""

    part: Part
    commit: Commit
    against: str
    margin: float | None
    """The margin of equivalence; None for the margin that the study file gives."""
    attempt: int = 1
    """The number of this study among the studies of the same two commits, counted from 1."""
    times: int = 1
    """The longest time that the study may take, as a multiple of the budget that each study of the search has."""


Judge = Callable[[Order], Judged]
"""A function that runs a study, or continues one that was interrupted, and returns its result. Raises
DoesNotBuildError."""


@dataclass(frozen=True)
class Answer:
    """The answer with which a bisection ended."""

    kind: Literal["none", "found", "open"]
    """The kind of answer: `none` if the ends do not differ, `found` if a commit is named, else `open`."""
    sentence: str
    suspects: Sequence[Commit] = ()
    """The commits among which is the one that makes the difference, as far as that is known."""
    step: BisectionStep | None = None
    """The step that compares the named commit with its parent."""

    @property
    def exit_status(self) -> int:
        """The exit status: 0 if the ends do not differ, 1 if a commit is named, 2 if there is no answer."""
        return {"none": 0, "found": 1, "open": 2}[self.kind]


def studies_of(search: Search) -> int:
    """Returns the largest number of studies that a bisection runs: the study of its ends, one study for each step, the
    study of the remaining commit and its parent, and `_SPARE` more."""
    steps = search.most_steps
    return 1 if not steps else 2 + steps + _SPARE


@dataclass
class BisectionRunner:
    """Runs a bisection: has a study run for each commit that the search chooses, and records each step."""

    search: Search
    known: Bisection
    judge: Judge
    keep: Callable[[Bisection], None]
    """A function that stores the record of the bisection. It is called after each new step."""

    def run(self) -> Answer:
        """Continues the bisection from its recorded steps to its answer.

        Raises the errors of `judge`. A DoesNotBuildError is raised only for the ends; other commits that do not build
        are skipped.
        """
        bad = self.search.commits[-1]
        ends = self._step("ends", bad, self.known.good, None)
        if ends.verdict == "undecided" and (spare := self.known.studies - self.search.most_steps - 2) > 0:
            ends = self._step("ends", bad, self.known.good, None, attempt=2, times=spare)
        if ends.mark == "skip" or ends.difference is None:
            return Answer(
                "open",
                f"{_named(ends)}: BAD is not known to differ from GOOD ({ends.verdict}); a larger --budget, with "
                "another directory as --results, finds smaller differences",
            )
        if ends.verdict == "equivalent":
            return Answer("none", f"BAD is as fast as GOOD ({ends.difference.text()}): there is no commit to look for")
        half = _Half(math.sqrt(1 + ends.difference.value) - 1, ends.verdict)
        search = self.search.marked(bad.id, "bad")
        for step in self.known.steps:
            if step.part == "search":
                search = search.marked(step.commit, step.mark)
        while self._studies_left() > 1 and len(search.suspects) > 1:
            if (commit := search.next) is None and (commit := search.reopened(self._undecided()).next) is None:
                break
            attempt = 1 + sum((step.part, step.commit) == ("search", commit.id) for step in self.known.steps)
            step = self._step("search", commit, self.known.good, half, attempt=attempt)
            search = search.marked(commit.id, step.mark)
        suspects = search.suspects
        if len(suspects) > 1:
            why = "the others were skipped" if search.next is None else "all studies that were planned are run"
            return Answer(
                "open",
                f"one of {len(suspects)} commits makes the difference, but it is not known which; {why}",
                suspects,
            )
        return self._of_culprit(suspects[0], half)

    def _of_culprit(self, commit: Commit, half: _Half) -> Answer:
        parent = commit.parents[0] if commit.parents else self.known.good
        # if only one commit is between the ends, their study has already compared it with its parent
        part: Part = "ends" if len(self.search.commits) == 1 else "culprit"
        step = self._step(part, commit, parent, half, times=max(1, self._studies_left()))
        if step.mark != "bad" or step.difference is None:
            return Answer(
                "open",
                f"{_named(step)} is the only commit that remains, but compared with its parent it is {step.verdict}: "
                "several commits together make the difference between GOOD and BAD, or the last study was too short",
                [commit],
                step,
            )
        return Answer("found", f"{_named(step)} is {step.verdict} than its parent", [commit], step)

    def _step(
        self, part: Part, commit: Commit, against: str, half: _Half | None, *, attempt: int = 1, times: int = 1
    ) -> BisectionStep:
        """Returns the step for a commit. If it is not recorded yet, runs its study and records the step."""
        for step in self.known.steps:
            if (step.part, step.commit, step.against, step.attempt) == (part, commit.id, against, attempt):
                return step
        base: dict[str, Any] = {
            "part": part,
            "commit": commit.id,
            "subject": commit.subject,
            "against": against,
            "attempt": attempt,
            "times": times,
        }
        try:
            margin = half.margin if half is not None else None
            judged = self.judge(Order(part, commit, against, margin, attempt, times))
        except DoesNotBuildError as error:
            if part == "ends":
                raise
            step = BisectionStep(**base, mark="skip", verdict=str(error))
        else:
            mark = _mark(judged, half)
            step = BisectionStep(
                **base, mark=mark, verdict=judged.verdict, difference=judged.difference, study=judged.study
            )
        self.known = self.known.model_copy(update={"steps": [*self.known.steps, step]})
        self.keep(self.known)
        return step

    def _undecided(self) -> set[str]:
        """Returns the commits between the ends that were skipped because their latest study was undecided and could not
        be assigned to either side."""
        latest = {step.commit: step for step in self.known.steps if step.part == "search"}
        return {commit for commit, step in latest.items() if (step.mark, step.verdict) == ("skip", "undecided")}

    def _studies_left(self) -> int:
        return self.known.studies - sum(step.times for step in self.known.steps if step.study is not None)


@dataclass(frozen=True)
class _Half:
    """Half of the difference in speed between GOOD and BAD. It is the threshold between good and bad commits."""

    difference: float
    """Half of the difference in speed (of its log-ratio), as a share."""
    bad_word: str
    """The verdict on BAD compared with GOOD: `better` or `worse`."""

    @property
    def margin(self) -> float:
        """The margin of equivalence for the studies of the search: the absolute value of half of the difference,
        limited to the range that margins may have."""
        return min(max(abs(self.difference), _LEAST_MARGIN), _MOST_MARGIN)

    def leaves_out(self, difference: Estimate | None) -> bool:
        """True if the whole interval of a difference lies on GOOD's side of the threshold, so that the commit counts as
        good."""
        bound = None if difference is None else difference.low if self.bad_word == "worse" else difference.high
        if bound is None:
            return False
        return bound > self.difference if self.bad_word == "worse" else bound < self.difference

    def leaning(self, log_ratios: Sequence[float]) -> Mark:
        """Returns the mark of a commit whose study is undecided: the side to which a test of its blocks assigns it
        (`good` or `bad`), or `skip` if the test decides for neither side."""
        if not log_ratios:
            return "skip"
        step = p9.Step(tuple(range(len(log_ratios))), tuple(log_ratios), _LEANING)
        theta, upwards = math.log1p(self.difference), 1 if self.bad_word == "worse" else -1
        if p9.rejects((step,), theta, upwards, 1.0):
            return "good"
        return "bad" if p9.rejects((step,), theta, -upwards, 1.0) else "skip"


def _mark(judged: Judged, half: _Half | None) -> Mark:
    """Returns the mark that a study gives to a commit. In the study of the ends, for which there is no threshold yet,
    any difference means `bad`."""
    if judged.verdict == "withheld":
        return "skip"
    if half is None:
        return "skip" if judged.verdict == "undecided" else "good" if judged.verdict == "equivalent" else "bad"
    if judged.verdict == half.bad_word and not half.leaves_out(judged.difference):
        return "bad"
    decided = judged.verdict != "undecided" or half.leaves_out(judged.difference)
    return "good" if decided else half.leaning(judged.log_ratios)


def _named(step: BisectionStep) -> str:
    return f"{step.commit[:10]} ({step.subject})"


def log_of(known: Bisection, found: BisectionStep | None = None) -> str:
    """Returns the steps so far in the form of `git bisect log`, which `git bisect replay` can read. `found` is the step
    that has named the commit."""
    lines = [f"# good: [{known.good}]", f"git bisect start '{known.bad}' '{known.good}'"]
    for step in known.steps:
        interval = f", {step.difference.text()}" if step.difference is not None else ""
        lines.append(f"# {step.mark}: [{step.commit}] {step.subject} ({step.verdict}{interval})")
        if step.part == "search":
            lines.append(f"git bisect {step.mark} {step.commit}")
    if found is not None:
        lines.append(f"# first bad commit: [{found.commit}] {found.subject}")
    return "\n".join(lines) + "\n"
