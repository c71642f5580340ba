"""The parts of a load that have a verdict of their own in a gate: the queries of a suite, and the statements of a
replay. The mean over all of them can hide one that has become slower."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pgtrial.model.records.claims import Estimate, Word
from pgtrial.model.records.results import StudyResult
from pgtrial.model.units import and_more, plural, shortened
from pgtrial.report.statement_errors import NAMED_LENGTH
from pgtrial.report.words import query_times_as_long, times_as_long

_MOST_NAMED = 10
"""The largest number of parts that a sentence names."""


@dataclass(frozen=True)
class Part:
    """A query of a suite, or a statement of a replay, with its verdict on HEAD against BASE."""

    name: str
    """The name of the query, or the beginning of the statement's text."""
    time_us: dict[str, float | None]
    """The time of the part in the median trial, in microseconds, by arm; None if no trial has a time."""
    difference: Estimate | None
    """The relative difference of speed; None before the first look (interim analysis)."""
    verdict: Word
    within_margin: bool
    """True if the whole interval of the difference lies within the margin, whatever the verdict is."""
    as_long: str
    """How many times as long the part took on HEAD as on BASE, such as `1.34 times as long`; empty if the difference is
    not known."""

    @property
    def is_slower(self) -> bool:
        """True if HEAD is certainly slower in this part, by more than the margin allows."""
        return self.verdict == "worse" and not self.within_margin

    @property
    def is_faster(self) -> bool:
        """True if HEAD is certainly faster in this part, by more than the margin allows."""
        return self.verdict == "better" and not self.within_margin


def parts_of(result: StudyResult, head: str) -> list[Part]:
    """Returns the parts of the load with their verdicts on HEAD, the slowest in comparison with BASE first. The result
    is empty if the load is neither a suite nor a replay."""
    return sorted(_parts(result, head), key=lambda part: part.difference.value if part.difference else 0.0)


def _parts(result: StudyResult, head: str) -> Iterator[Part]:
    for query in result.queries:
        if query.arm == head and query.query is not None:
            as_long = query_times_as_long(query)
            yield Part(query.query, query.time_us, query.difference, query.verdict, query.within_margin, as_long)
    for statement in result.statements:
        if statement.arm == head:
            known = statement.difference
            as_long = "" if known is None else times_as_long(known)
            name = shortened(statement.text, NAMED_LENGTH)
            times: dict[str, float | None] = {**statement.mean_us}
            yield Part(name, times, known, statement.verdict, statement.within_margin, as_long)


def noun_of(result: StudyResult) -> str:
    """Returns the word for a part of the load: `query` or `statement`."""
    return "query" if result.queries else "statement"


def slower_text(result: StudyResult, head: str) -> str:
    """Returns a clause that names the parts that are slower on HEAD, such as `1 of 22 queries is slower: q07 (1.34
    times as long)`. The text is empty if there are none."""
    parts = parts_of(result, head)
    return _listed([part for part in parts if part.is_slower], parts, result, "slower")


def faster_text(result: StudyResult, head: str) -> str:
    """Returns a clause that names the parts that are faster on HEAD, the fastest in comparison with BASE first. The
    text is empty if there are none."""
    parts = parts_of(result, head)
    return _listed([part for part in reversed(parts) if part.is_faster], parts, result, "faster")


def _listed(parts: Sequence[Part], of: Sequence[Part], result: StudyResult, word: str) -> str:
    if not parts:
        return ""
    named = [f"{part.name} ({part.as_long})" if part.as_long else part.name for part in parts[:_MOST_NAMED]]
    verb = "is" if len(parts) == 1 else "are"
    return f"{len(parts)} of {plural(len(of), noun_of(result))} {verb} {word}: {', '.join(and_more(named, len(parts)))}"
