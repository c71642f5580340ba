"""The search for the first bad commit, by the same algorithm as git bisect. The module has no input or output: from the
marks of commits it computes the next commit.

A commit reaches its ancestors and itself. GOOD is an ancestor of BAD, so the first bad commit is among the suspects:
the commits that BAD reaches and GOOD does not. If a commit is bad, the suspects that it reaches remain; if it is good,
the suspects that it does not reach remain. The next commit to compare is the one that divides the suspects most evenly.
If it is skipped, the next best commit takes its place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pgtrial.model.records.bisection import Mark
from pgtrial.store.repositories import Commit


@dataclass(frozen=True)
class Search:
    """The history between GOOD and BAD, with the marks of the commits that have been compared."""

    commits: Sequence[Commit]
    """The commits that BAD reaches and GOOD does not, parents before children. The last one is BAD."""
    marks: Mapping[str, Mark] = field(default_factory=dict)
    """The mark of each commit that has been compared, by its id."""

    def marked(self, commit: str, mark: Mark) -> Search:
        """Returns the search in which a commit has this mark."""
        return self._with({**self.marks, commit: mark})

    def reopened(self, commits: Collection[str]) -> Search:
        """Returns the search without the marks of these commits, so that they can be compared once more."""
        return self._with({commit: mark for commit, mark in self.marks.items() if commit not in commits})

    def _with(self, marks: Mapping[str, Mark]) -> Search:
        """Returns the search in the same history with these marks."""
        following = Search(self.commits, marks)
        vars(following)["_reached"] = (
            self._reached
        )  # which commits a commit reaches depends only on the history, so it is not computed again
        return following

    @property
    def suspects(self) -> list[Commit]:
        """The commits that can still be the first bad commit, the oldest first."""
        rest = self._rest
        return [commit for index, commit in enumerate(self.commits) if rest >> index & 1]

    @property
    def next(self) -> Commit | None:
        """The commit to compare next, which divides the suspects most evenly; None if no further comparison can exclude
        a suspect."""
        rest = self._rest
        number = rest.bit_count()
        best, best_score = None, 0
        for index, commit in enumerate(self.commits):
            if rest >> index & 1 and commit.id not in self.marks:
                reached = (self._reached[index] & rest).bit_count()
                score = min(reached, number - reached)
                if score > best_score:
                    best, best_score = commit, score
        return best

    @property
    def most_steps(self) -> int:
        """The largest number of commits that are compared before one is named, if none of them is skipped."""
        search, steps = self, 0
        while (commit := search.next) is not None:
            after = [search.marked(commit.id, mark) for mark in ("good", "bad")]
            search = max(after, key=lambda one: one._rest.bit_count())
            steps += 1
        return steps

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {commit.id: index for index, commit in enumerate(self.commits)}

    @cached_property
    def _reached(self) -> list[int]:
        """For each commit the set of commits that it reaches, including itself, as the bits of a number."""
        reached: list[int] = []
        for index, commit in enumerate(self.commits):
            bits = 1 << index
            for parent in commit.parents:
                if parent in self._indices:
                    bits |= reached[self._indices[parent]]
            reached.append(bits)
        return reached

    @cached_property
    def _rest(self) -> int:
        """The set of suspects, as the bits of a number."""
        rest = (1 << len(self.commits)) - 1
        for commit, mark in self.marks.items():
            if mark == "bad":
                rest &= self._reached[self._indices[commit]]
            elif mark == "good":
                rest &= ~self._reached[self._indices[commit]]
        return rest
