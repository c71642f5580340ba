"""A bisection from its ends to its answer: which study comes next, what it says of a commit, and when all is known.

First GOOD and BAD are compared: without a difference there is nothing to look for. Then each commit that the search
names is compared with GOOD. Half of the first difference, as a log-ratio, separates good commits from bad ones: a
commit is good if its interval lies on GOOD's side of the half, and bad if it is decided in the direction of BAD. An
undecided commit gets the mark of the side to which a test of the half at `_LEANING` leans; it is skipped only if the
test leans to neither. At last the remaining commit is compared with its parent by a study of its own, and it is named
only if that study finds a difference.

The user's time holds a few studies more than a search without an undecided commit takes. They are spent on open
questions: ends without a difference are compared once more, and so are commits that were skipped since they lean to
neither side. The time that is left then goes to the last study.

So each study has the whole error of 5%, and a commit that changes nothing is named in at most 5% of bisections. Which
commit remains depends on the earlier studies alone. The order of the trials in the last study is drawn independently of
them, and with this order a commit that equals its parent differs in at most 5% of cases. A wrong earlier step costs an
answer, but names no innocent commit.
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
"""The number of studies beyond those that a search without an undecided commit takes."""
_LEANING = 0.2
"""The error on one side at which an undecided commit leans to GOOD or to BAD. Commits that equal one of them lean to
the wrong side more rarely: they are half of the difference away from where the two sides meet."""
_LEAST_MARGIN, _MOST_MARGIN = 0.001, 0.9


class DoesNotBuildError(PgtrialError):
    """A commit, or the one that it is compared with, cannot be built."""


@dataclass(frozen=True)
class Judged:
    """The result of one study that compares a commit with another one."""

    verdict: str
    """The verdict of the study: better, worse, equivalent, undecided or withheld."""
    difference: Estimate | None
    study: str
    """The directory of the study."""
    log_ratios: Sequence[float] = ()
    """The log ratio of speed in each block that counts."""


@dataclass(frozen=True)
class Order:
    """A study that the bisection needs next."""

    part: Part
    commit: Commit
    against: str
    margin: float | None
    """The margin of equivalence; None for that of the study file."""
    attempt: int = 1
    """The number of this study among those of the same two commits, counted from 1."""
    times: int = 1
    """The largest time that the study may take, as a multiple of the budget of a study of the search."""


Judge = Callable[[Order], Judged]
"""Runs a study, or continues one, and returns its result. Raises DoesNotBuildError."""


@dataclass(frozen=True)
class Answer:
    """The answer with which a bisection ended."""

    kind: Literal["none", "found", "open"]
    """The kind of answer: `none` if the ends do not differ, `found` if a commit is named, else `open`."""
    sentence: str
    suspects: Sequence[Commit] = ()
    """The commits one of which makes the difference, as far as known."""
    step: BisectionStep | None = None
    """The step that compares the named commit with its parent."""

    @property
    def exit_status(self) -> int:
        """The exit status: 0 if the ends do not differ, 1 if a commit is named, 2 if there is no answer."""
        return {"none": 0, "found": 1, "open": 2}[self.kind]


def studies_of(search: Search) -> int:
    """Returns the largest number of studies that a bisection runs.

    They are the study of its ends, one for each step, the study of the found commit and its parent, and `_SPARE` more.
    """
    steps = search.most_steps
    return 1 if not steps else 2 + steps + _SPARE


@dataclass
class Course:
    """A bisection under way."""

    search: Search
    known: Bisection
    judge: Judge
    keep: Callable[[Bisection], None]
    """Called with the record of the bisection after each new step."""

    def run(self) -> Answer:
        """Continues the bisection from its recorded steps to its answer.

        Raises what the judge raises, except for DoesNotBuildError once the ends have been compared.
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
            return Answer("open", f"one of {len(suspects)} commits makes the difference; {why}", suspects)
        return self._of_culprit(suspects[0], half)

    def _of_culprit(self, commit: Commit, half: _Half) -> Answer:
        parent = commit.parents[0] if commit.parents else self.known.good
        # if only one commit is between the ends, their study has already compared it with its parent
        part: Part = "ends" if len(self.search.commits) == 1 else "culprit"
        step = self._step(part, commit, parent, half, times=max(1, self._studies_left()))
        if step.mark != "bad" or step.difference is None:
            return Answer(
                "open",
                f"{_named(step)} is the last commit left, and compared with its parent it is {step.verdict}: the "
                "difference of GOOD and BAD is not of one commit, or its study was too short",
                [commit],
                step,
            )
        return Answer("found", f"{_named(step)} is {step.verdict} than its parent", [commit], step)

    def _step(
        self, part: Part, commit: Commit, against: str, half: _Half | None, *, attempt: int = 1, times: int = 1
    ) -> BisectionStep:
        """Returns the step for a commit: the recorded one, or else that of a study that is run now and recorded."""
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
        """Returns the commits between the ends that were skipped since their latest study leaned to neither side."""
        latest = {step.commit: step for step in self.known.steps if step.part == "search"}
        return {commit for commit, step in latest.items() if (step.mark, step.verdict) == ("skip", "undecided")}

    def _studies_left(self) -> int:
        return self.known.studies - sum(step.times for step in self.known.steps if step.study is not None)


@dataclass(frozen=True)
class _Half:
    """Half of the difference in speed between GOOD and BAD. It is the threshold between good commits and bad ones."""

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
        """True if an interval lies wholly on GOOD's side of the half."""
        bound = None if difference is None else difference.low if self.bad_word == "worse" else difference.high
        if bound is None:
            return False
        return bound > self.difference if self.bad_word == "worse" else bound < self.difference

    def leaning(self, log_ratios: Sequence[float]) -> Mark:
        """Returns the kind to which an undecided commit leans, `good` or `bad`; `skip` if it leans to neither."""
        if not log_ratios:
            return "skip"
        step = p9.Step(tuple(range(len(log_ratios))), tuple(log_ratios), _LEANING)
        theta, upwards = math.log1p(self.difference), 1 if self.bad_word == "worse" else -1
        if p9.rejects((step,), theta, upwards, 1.0):
            return "good"
        return "bad" if p9.rejects((step,), theta, -upwards, 1.0) else "skip"


def _mark(judged: Judged, half: _Half | None) -> Mark:
    """Returns the mark that a study gives a commit. For the ends, which have no half yet, any difference is bad."""
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
    """Returns the steps so far in the form of `git bisect log`.

    `git bisect replay` reads it. `found` is the step that names the commit.
    """
    lines = [f"# good: [{known.good}]", f"git bisect start '{known.bad}' '{known.good}'"]
    for step in known.steps:
        interval = f", {step.difference.text()}" if step.difference is not None else ""
        lines.append(f"# {step.mark}: [{step.commit}] {step.subject} ({step.verdict}{interval})")
        if step.part == "search":
            lines.append(f"git bisect {step.mark} {step.commit}")
    if found is not None:
        lines.append(f"# first bad commit: [{found.commit}] {found.subject}")
    return "\n".join(lines) + "\n"
