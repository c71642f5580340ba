"""The certificate of a machine as tables and as lines of text. A certificate is the result of a self-test, in which
pgtrial compares equal servers and a slower one; it says how small a difference the machine can show."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from scipy.special import bdtrc

from pgtrial.model.records.machine import Certificate, Found, Reach, StudyRun
from pgtrial.model.units import as_written, format_duration, percent, plural
from pgtrial.report.data import StudyData
from pgtrial.report.table import Table, by_position
from pgtrial.report.words import signed

_FALSE_SHARE = 0.05
"""The share of A/A studies (studies of two equal arms) that get a verdict by mistake if the method works: at most
5%."""
_IMPROBABLE = 0.03
"""A number of false verdicts (verdicts on two equal arms) causes a warning if its probability is below this. For
example, 10 false verdicts in 100 studies have a probability of 2.8%."""
_TOLD = (0.05, 0.03)
"""The differences of speed for which the one-line result names the time to find them: 5% and 3%."""


def dated(certificate: Certificate) -> str:
    """Returns the certificate of a machine (the result of its self-test) in one line, with its date, its conditions and
    its result."""
    return f"of {certificate.created[:10]}, {_conditions(certificate)}: {headline(certificate)}"


def headline(certificate: Certificate) -> str:
    """Returns the result of a self-test as text such as `finds 5% in 2min 20s and 3% in 4min; A/A: 0 of 2 studies got a
    verdict; planted 5%: found in 2 of 2 studies`. A/A studies compare two equal servers, and a planted difference is a
    loss of speed that the self-test builds into a server."""
    reaches = [reach for reach in certificate.reach if reach.difference in _TOLD] or certificate.reach[-1:]
    finds = " and ".join(_times_to_find(reaches))
    return "; ".join(
        [f"finds {finds}" if finds else "finds no difference", _same(certificate), *map(_hits, certificate.planted)]
    )


def lines(certificate: Certificate) -> list[str]:
    """Returns the certificate of a machine (the result of its self-test) as lines of text, beginning with the most
    important one: how long it takes to find differences of several sizes."""
    finds = ", ".join(_times_to_find(certificate.reach))
    return [
        f"This machine finds a difference of {finds or 'no size that can be waited for'} (power 80%).",
        f"{_same(certificate)}{_alike(certificate)}.",
        *(f"{_hits(effect)}{_times(effect.hits)}; measured {_measured(effect)}." for effect in certificate.planted),
        f"Measured: {_conditions(certificate)}.",
    ]


def caution(certificate: Certificate) -> str | None:
    """Returns a warning if more A/A studies (studies of two equal servers) on this machine got a verdict than chance
    explains; otherwise None."""
    false, studies = len(certificate.false), len(certificate.same)
    if not false or bdtrc(false - 1, studies, _FALSE_SHARE) > _IMPROBABLE:
        return None
    return (
        f"{false} of {studies} A/A studies got a verdict, more than chance explains: something favours one of two "
        "servers that are alike; look at the report's sections on what was compared"
    )


def certificate_tables(data: StudyData) -> list[Table[Any]]:
    """Returns all tables about the certificate, the result of the machine's self-test. The result is empty if the
    machine has no certificate."""
    if (certificate := data.certificate) is None:
        return []
    folded = certificate.created != data.plan.created

    def of_studies(caption: str, studies: Sequence[StudyRun]) -> Table[Any]:
        rows = [
            (number, run.blocks, format_duration(run.seconds), run.verdict) for number, run in enumerate(studies, 1)
        ]
        return Table(caption, rows, by_position("study", "blocks", "time", "verdict", right=(0, 1, 2)), folded=folded)

    return [
        Table(
            f"Time to find a difference with a power of 80%: {_conditions(certificate)}.",
            [(as_written(far.difference), far.blocks, format_duration(far.seconds)) for far in certificate.reach],
            by_position("difference", "blocks", "time", right=(0, 1, 2)),
            folded=folded,
        ),
        of_studies(
            f"Two equal arms: {_same(certificate)}{_alike(certificate)}.",
            certificate.same,
        ),
        *(
            of_studies(f"One arm made slower; {_hits(planted)}. All blocks say {_measured(planted)}.", planted.studies)
            for planted in certificate.planted
        ),
    ]


def _times_to_find(reaches: Sequence[Reach]) -> list[str]:
    """Returns the time that a study on this machine needs to find each difference, such as `5% in 2min 20s`, beginning
    with the largest difference."""
    return [f"{as_written(reach.difference)} in {format_duration(reach.seconds)}" for reach in reversed(reaches)]


def _same(certificate: Certificate) -> str:
    return f"A/A: {len(certificate.false)} of {_studies(certificate.same)} got a verdict"


def _hits(search: Found) -> str:
    return f"planted {as_written(search.planted.slower_by)}: found in {len(search.hits)} of {_studies(search.studies)}"


def _studies(runs: Sequence[StudyRun]) -> str:
    return f"{len(runs):,} {'study' if len(runs) == 1 else 'studies'}"


def _times(hits: Sequence[StudyRun]) -> str:
    return f", after {format_duration(median(hit.seconds for hit in hits))} (median)" if hits else ""


def _measured(search: Found) -> str:
    text = f"{signed(search.difference.value)} (95% interval {search.difference.text()})"
    planted = search.planted
    if search.agrees is None or planted.low is None or planted.high is None:
        return text
    fits = "which fits" if search.agrees else "which does not fit"
    return f"{text}, {fits} the {percent(planted.low)} to {percent(planted.high)} that the calibration gives"


def _alike(certificate: Certificate) -> str:
    """Returns the end of a sentence about the difference between the two equal arms over all blocks. It is empty for a
    certificate that does not have this difference."""
    alike = certificate.alike
    if alike is None:
        return ""
    apart = alike.low is not None and alike.high is not None and not alike.low <= 0 <= alike.high
    by_chance = ", which chance gives in 5% of self-tests" if apart else ""
    return (
        f"; by all blocks the two equal servers differ by {signed(alike.value)} (95% interval {alike.text()}"
        f"{by_chance})"
    )


def _conditions(certificate: Certificate) -> str:
    where = ", ".join(certificate.servers) or "its own servers"
    version = f", PostgreSQL {certificate.postgres}" if certificate.postgres else ""
    return (
        f"{certificate.host}, {plural(certificate.cpus, 'CPU')}, {where}{version}, {certificate.load}, "
        f"{plural(certificate.blocks, 'block')} of {format_duration(certificate.block_s)}"
    )
