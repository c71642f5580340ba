"""The outcome of a gate that runs several studies, and its summary as Markdown. The gate has one outcome: it fails if
one of its studies fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pgtrial.model.errors import ERROR_STATUS
from pgtrial.model.records.claims import Claim, Estimate
from pgtrial.model.units import plural
from pgtrial.report.data import StudyData
from pgtrial.report.gate.outcome import WORDS, Outcome
from pgtrial.report.gate.summary import MOST_ROWS, beginning, claim_on_head, file_name, plain, results, table
from pgtrial.report.gate.tries import Tries
from pgtrial.report.table import Column, Table, number
from pgtrial.report.tables.results import verdict_text
from pgtrial.report.words import established, estimate_text

_ORDER = (1, ERROR_STATUS, 2, 0)
"""The exit statuses of studies, the gravest first. The status of a gate is the gravest one of its studies."""

_LONGEST = 45_000
"""The number of characters from which on the summary shows no further study. Escaping them for a comment on a pull
request from a fork makes them more."""


@dataclass(frozen=True)
class GatedResult:
    """The result of one of the studies of a gate."""

    name: str
    """The name of the study in the gate."""
    of_gate: Outcome
    data: StudyData | None = None
    """The data of the study; None if it has none, because it was not run or had an error."""

    @property
    def claim(self) -> Claim | None:
        """Returns the claim that decides the study; None if it has no data."""
        return None if self.data is None else claim_on_head(self.data)

    @property
    def faster(self) -> bool:
        """True if HEAD is certainly faster than BASE in this study."""
        return self.claim is not None and self.claim.verdict == "better"

    @property
    def undecided(self) -> bool:
        """True if the study lets HEAD pass although its comparison is undecided, as the user has chosen."""
        return self.of_gate.status == 0 and not self.of_gate.decided

    @property
    def word(self) -> str:
        """Returns the outcome in a few words: `pass`, `pass, faster`, `undecided`, `fail`, `no verdict` or `error`."""
        if self.undecided:
            return "undecided"
        return f"{self.of_gate.word}, faster" if self.faster and not self.of_gate.status else self.of_gate.word


def outcome_of_studies(studies: Sequence[GatedResult]) -> Outcome:
    """Returns the outcome of a gate: its status is the gravest one of its studies. The reason names the studies that
    have this status, with their reasons, and lists the other studies by their results."""
    statuses = {study.of_gate.status for study in studies}
    status = next(status for status in _ORDER if status in statuses)
    leading = [study for study in studies if study.of_gate.status == status]
    passed = [study for study in studies if not study.of_gate.status and not study.undecided]
    undecided = [study for study in studies if study.undecided]
    if status:
        whys = "; ".join(f"{study.name} ({study.of_gate.reason})" for study in leading)
        first = f"{len(leading)} of {plural(len(studies), 'study')} {_verb(status, len(leading))}: {whys}"
    else:
        first = f"none of {len(studies)} studies fails" if undecided else f"all {len(studies)} studies pass"
    others = {
        **{WORDS[other]: [study for study in studies if study.of_gate.status == other] for other in (2, ERROR_STATUS)},
        "undecided": undecided,
        "passed": passed if len(passed) < len(studies) else [],
        "faster": [study for study in studies if study.faster],
    }
    others.pop(WORDS[status], None)
    lists = [f"{words}: {', '.join(study.name for study in of)}" for words, of in others.items() if of]
    decided = (any if status else all)(study.of_gate.decided for study in leading)
    return Outcome(status, "; ".join([first, *lists]), decided=decided)


def _verb(status: int, number: int) -> str:
    if status == 1:
        return "fails" if number == 1 else "fail"
    return f"{'has' if number == 1 else 'have'} {'no verdict' if status == 2 else 'an error'}"


def summary_of_studies(
    studies: Sequence[GatedResult], of_gate: Outcome, bundle: str | None, tries: Tries | None = None
) -> str:
    """Returns the summary of a gate of several studies. `bundle` is the name of the bundle, if there is one."""
    return "\n".join(_lines(studies, of_gate, bundle, tries)).rstrip() + "\n"


def _lines(studies: Sequence[GatedResult], of_gate: Outcome, bundle: str | None, tries: Tries | None) -> Iterator[str]:
    yield from beginning(of_gate, tries)
    yield from table(_overview(studies))
    yield (
        f"The {len(studies)} studies share the error of 5%: in at most 5 of 100 gates one or more of their verdicts "
        "are wrong.\n"
    )
    written, shown = 0, 0
    for study in sorted(studies, key=lambda study: _ORDER.index(study.of_gate.status)):
        section = list(_section(study, max(1, MOST_ROWS // len(studies))))
        written += sum(len(line) + 1 for line in section)
        if written > _LONGEST:
            break
        yield from section
        shown += 1
    if left := len(studies) - shown:
        yield f"The summary is too long for {plural(left, 'more study')}, whose results are in the table above.\n"
    if bundle is not None:
        yield (
            f"Bundle: `{file_name(bundle)}` holds the bundles of the studies: `tar -xf` unpacks them, `pgtrial report` "
            "shows one."
        )


def _section(study: GatedResult, most_rows: int) -> Iterator[str]:
    yield f"#### {plain(study.name)}: {WORDS[study.of_gate.status]}\n"
    yield f"{plain(study.of_gate.sentence)}\n"
    if study.data is not None:
        yield from results(study.data, heading="#####", most_rows=most_rows)
        yield ""


def _overview(studies: Sequence[GatedResult]) -> Table[GatedResult]:
    """Returns a table with one row for each study, in the order in which they ran."""
    return Table(
        "",
        studies,
        [
            Column("study", lambda study: study.name),
            Column("result", lambda study: study.word),
            number("difference", lambda study: study.claim and estimate_text(study.claim, "so far")),
            number("95% interval", _interval, Estimate.text),
            Column("verdict", lambda study: study.claim and verdict_text(study.claim)),
        ],
    )


def _interval(study: GatedResult) -> Estimate | None:
    return established(study.claim, study.data.plan) if study.claim is not None and study.data is not None else None
