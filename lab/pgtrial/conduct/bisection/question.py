"""The question of a bisection: the repository, the commits between the two ends, and the study that each step runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgtrial.conduct.bisection.runner import Order, studies_of
from pgtrial.conduct.bisection.search import Search
from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.records.bisection import Bisection
from pgtrial.model.study.frozen import freeze
from pgtrial.model.study.servers import MadeHere, Server, sources_of
from pgtrial.model.study.setup import SetUp
from pgtrial.model.study.sources import GitSource, is_source, source_of
from pgtrial.model.study.spec import StudySpec
from pgtrial.store import repositories

_MOST_COMMITS = 20_000
_FORM = f"such as {marks.key('server', 'postgres', 'git:PATH@REF')}"


@dataclass(frozen=True)
class Question:
    """A bisection before its first study."""

    spec: StudySpec
    """The user's study. Its first arm is the set-up whose source is bisected."""
    source: GitSource
    """The source of the first arm, at the commit GOOD, which does not have the change yet."""
    search: Search
    first_parent: bool

    @property
    def beginning(self) -> Bisection:
        """The record of the bisection before its first step."""
        return Bisection(
            source=self.source.text,
            good=self.source.ref,
            bad=self.search.commits[-1].id,
            first_parent=self.first_parent,
            commits=len(self.search.commits),
            studies=studies_of(self.search),
            question=hashlib.sha256(freeze(self.spec).encode()).hexdigest(),
        )

    def study_of(self, order: Order) -> StudySpec:
        """Returns the study that compares a commit with another commit, which is the baseline."""
        table, server = self.spec.arms[self.spec.baseline], self.spec.resolved(self.spec.baseline)
        commits = (order.against, order.commit.id)
        arms = {commit[:10]: _at(table, server, self.source, commit) for commit in commits}
        asked = self.spec.verdict
        changed: dict[str, Any] = {"final": True, "budget": order.times * asked.budget}
        if asked.blocks is not None:
            changed["blocks"] = order.times * asked.blocks
        if order.margin is not None:
            changed["margin"] = order.margin
        question = f"Is {order.commit.short} as fast as {order.against[:10]}?"
        return self.spec.model_copy(
            update={
                "study": self.spec.study.model_copy(update={"question": question}),
                "arms": arms,
                "verdict": asked.model_copy(update=changed),
            }
        )


def two_of_the_first(data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys of a study file with two copies of its first arm in place of its arms. If the file has no arms,
    both have only the keys of [server]."""
    arms = data.get("arms")
    first: Any = next(iter(arms.values()), {}) if isinstance(arms, Mapping) else {}
    return {**data, "arms": {"good": first, "bad": first}}


def ask(spec: StudySpec, good: str, bad: str, *, first_parent: bool, report: Callable[[str], None]) -> Question:
    """Returns the question of a bisection of this study between the commits `good` and `bad`. `report` shows progress.
    Raises StudyError."""
    texts = sources_of(spec.resolved(spec.baseline))
    sources = [source for text in texts if isinstance(source := source_of(text), GitSource)]
    if not sources:
        raise StudyError(
            "no server, extension or client program of the study comes from a repository, so there is nothing to "
            f"bisect; name a repository, {_FORM}"
        )
    source = _with_both(list({one.repository: one for one in sources}.values()), good, bad)
    ends = [repositories.fixed(source.at(ref)) for ref in (good, bad)]
    for end in ends:
        repository = repositories.local_of(end, report)
    first, last = (end.ref for end in ends)
    commits = repositories.commits_between(repository, first, last, first_parent=first_parent)
    if not commits or not repositories.is_ancestor(repository, first, last):
        turned = repositories.commits_between(repository, last, first, first_parent=first_parent)
        hint = "; BAD comes before GOOD: write them the other way round" if turned and not commits else ""
        raise StudyError(f"GOOD ({good}) is not an ancestor of BAD ({bad}), so no commit is between them{hint}")
    if len(commits) > _MOST_COMMITS:
        raise StudyError(
            f"{len(commits):,} commits are between {good} and {bad}, more than {_MOST_COMMITS:,}; name nearer ends"
        )
    return Question(spec, ends[0], Search(commits), first_parent)


def _with_both(sources: list[GitSource], good: str, bad: str) -> GitSource:
    """Returns the source whose repository has both ends. Raises StudyError if not exactly one does."""
    if len(sources) == 1:
        return sources[0]
    having = [source for source in sources if all(_has(source, ref) for ref in (good, bad))]
    if len(having) != 1:
        listed = ", ".join(source.repository for source in sources)
        how = "several repositories" if having else "no repository"
        raise StudyError(f"{how} of the study ({listed}) has both {good} and {bad}; name commits of one of them")
    return having[0]


def _has(source: GitSource, ref: str) -> bool:
    try:
        repositories.fixed(source.at(ref))
    except StudyError:
        return False
    return True


def _at(table: SetUp, server: Server, source: GitSource, commit: str) -> SetUp:
    """Returns the keys of an arm in which the source is set to a commit."""

    def moved(text: str) -> str:
        own = source_of(text) if is_source(text) else None
        mine = isinstance(own, GitSource) and own.repository == source.repository
        return source.at(commit).text if mine else text

    changed: dict[str, Any] = {}
    if isinstance(server, MadeHere):
        extensions = None if server.extensions is None else list(map(moved, server.extensions))
        changed = {"postgres": moved(server.postgres), "extensions": extensions}
    if server.command_directory is not None:
        changed["command_directory"] = moved(server.command_directory)
    return table.model_copy(update=changed)


def directory_of(question: Question, results: Path) -> Path:
    """Returns the directory in which a bisection is stored by default."""
    name = question.spec.study.name or "study"
    return results / f"bisect-{name}-{question.source.ref[:10]}-{question.search.commits[-1].short}"
