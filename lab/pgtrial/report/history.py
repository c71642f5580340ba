"""The history of a study: the entries that a bundle adds to it, a series of results for each machine, and the changes
in a series. Each result is the ratio of a commit's speed to the speed of a reference. A change is a commit from which
on this ratio stays higher or lower than before."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from pgtrial.model.records import Record
from pgtrial.model.records.claims import Estimate
from pgtrial.model.records.facts import Facts
from pgtrial.model.records.history import Entry
from pgtrial.model.records.plan import Plan
from pgtrial.model.study.former_keys import with_former_names
from pgtrial.model.study.frozen import without_secrets
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import grouped, percent, plural, slug
from pgtrial.report.data import StudyData
from pgtrial.report.table import Column, Table, number
from pgtrial.report.words import bounds_text, signed
from pgtrial.statistics.change_points import FEWEST, change_points
from pgtrial.verdict.series import as_difference

_COMMIT = re.compile(r"git:.*@([0-9a-f]{40}(?:[0-9a-f]{24})?)", re.DOTALL)
"""Matches a source in a frozen study file (the stored copy with all defaults), a Git repository with a commit. Studies
that differ only in the path of the repository count as the same study."""


class Change(Record):
    """A change in a series of commits: from a certain commit on, the speed stays higher or lower than before."""

    machine: str
    before: str = Field(description="The commit just before the change, which is the last one with the old speed.")
    after: str = Field(description="The commit just after the change, which is the first one with the new speed.")
    at: str
    difference: Estimate = Field(
        description="The typical speed of the commits after the change, divided by the typical speed of the commits "
        "before it, minus 1, with Welch's interval."
    )
    p: float
    commits: tuple[int, int] = Field(
        description="How many commits were averaged to compute the old speed and the new speed."
    )
    surely: tuple[str, str] = Field(
        description="The change lies between these two commits with a confidence of 95%: the first commit of the pair "
        "still has the old speed, and the second one already has the new speed."
    )
    ends: tuple[int, int] = Field(
        description="The positions of the two commits of `surely`, counted from 0, in the list of the series' commits "
        "without those for which no speed is known."
    )

    @property
    def sentence(self) -> str:
        """The change as a sentence, such as `it fell by 5.1% (-6.0 to -4.2%) between a1b2 and c3d4; the levels rest on
        8 and 6 commits`. The levels are the typical speeds before and after the change, here computed from 8 and 6
        commits."""
        verb = "fell" if self.difference.value < 0 else "rose"
        size = percent(abs(self.difference.value))
        between = f"between {self.before} and {self.after}"
        rest = f"the levels rest on {self.commits[0]} and {plural(self.commits[1], 'commit')}"
        apart = self.surely != (self.before, self.after)
        surely = f"; with 95% it is between {self.surely[0]} and {self.surely[1]}" if apart else ""
        return f"it {verb} by {size} ({bounds_text(self.difference)}) {between}{surely}; {rest}"


class Series(Record):
    """The results of the commits that were measured on one machine, in the order of the commits, and the commits at
    which the speed changed for good."""

    machine: str
    entries: list[Entry]
    changes: list[Change]

    def around(self, change: Change) -> tuple[Entry, Entry]:
        """Returns the last entry that certainly has the speed from before the change, and the first entry that
        certainly has the speed from after it.

        The two entries directly next to the change may have the same speed, because the position of the change is
        uncertain.
        """
        known = [entry for entry in self.entries if entry.difference is not None and entry.has_level]
        return known[change.ends[0]], known[change.ends[1]]


def entries_of(data: StudyData, *, commit: str | None = None, at: str | None = None) -> list[Entry]:
    """Returns the entries that a study adds to a history: one for each arm except the reference. `commit` and `at`
    replace the commit and the time of the study itself."""
    spec, plan = without_secrets(data.spec), data.plan
    return [
        Entry(
            study=plan.identity,
            at=at or plan.created,
            commit=commit or _commit_of(spec, claim.arm),
            arm=claim.arm,
            reference=_commit_of(spec, plan.baseline),
            machine=machine_of(data.facts.get(plan.baseline)),
            pgtrial=data.result.pgtrial,
            measure=plan.primary_metric or plan.measure,
            load=_load(plan),
            blocks=claim.blocks,
            margin=plan.margin,
            verdict=claim.verdict,
            difference=claim.difference if claim.verdict != "withheld" else None,
            setup=spec.arms[claim.arm].model_dump(mode="json", exclude_defaults=True),
        )
        for claim in data.result.primary
    ]


def _load(plan: Plan) -> str:
    more = len(plan.load_points) - 1
    return plan.load_points[0].label + (f" and {plural(more, 'more load point')}" if more else "")


def file_name(spec: StudySpec) -> str:
    """Returns the file name of a study's history, without its ending. Studies with another load, other data, another
    server or another reference get another name."""
    public = without_secrets(spec)
    sections = {"load": public.load, "server": public.server, "arms": public.arms[public.baseline]}
    load, server, reference = (
        with_former_names(name, section.model_dump(mode="json", exclude_none=True))
        for name, section in sections.items()
    )
    what = {
        "load": load,
        "server": _without_paths(server),
        "reference": _without_paths(reference),
        "metrics": public.verdict.metrics,
        "scripts": spec.scripts,
    }
    digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
    return f"{slug(public.study.name or 'study')}-{digest[:8]}"


def machine_of(facts: Facts | None) -> str:
    """Returns a machine as text, such as `AMD EPYC 7B13, 2 CPUs, 8 GB`. Results with the same text form one series of a
    history, since they come from the same machine or from CI runners of the same kind."""
    known: Mapping[str, Mapping[str, Any]] = facts.facts if facts is not None else {}
    model = known.get("cpu", {}).get("model")
    cpus, memory_mb = known.get("cpu", {}).get("logical"), known.get("memory", {}).get("total_mb")
    parts = [str(model)] if model else []
    parts += [plural(cpus, "CPU")] if isinstance(cpus, int) else []
    parts += [f"{memory_mb / 1000:.0f} GB"] if isinstance(memory_mb, int | float) else []
    return ", ".join(parts) or "an unknown machine"


def series_of(entries: Sequence[Entry]) -> list[Series]:
    """Returns one series for each machine. The series with the latest commit comes first."""
    by_machine = grouped((entry.machine, entry) for entry in entries)
    made = [
        Series(machine=machine, entries=of_machine, changes=list(_changes(of_machine)))
        for machine, of_machine in by_machine.items()
    ]
    return sorted(made, key=lambda series: series.entries[-1].at, reverse=True)


def _changes(entries: Sequence[Entry]) -> Iterator[Change]:
    """Yields the changes of speed in a series. An entry counts only if its speed relative to the reference is known and
    above zero. If there are too few such entries, no change is found."""
    known = [(entry, entry.difference) for entry in entries if entry.difference is not None and entry.has_level]
    if len(known) < 2 * FEWEST:
        return
    found = change_points([math.log1p(difference.value) for _, difference in known])
    bounds = [0, *(change.index for change in found), len(known)]
    for change, start, end in zip(found, bounds, bounds[2:], strict=False):
        after = known[change.index][0]
        ends = (change.ends[0] - 1, change.ends[1])
        yield Change(
            machine=after.machine,
            before=known[change.index - 1][0].commit,
            after=after.commit,
            at=after.at,
            difference=as_difference(change.size),
            p=change.p,
            commits=(change.index - start, end - change.index),
            surely=(known[ends[0]][0].commit, known[ends[1]][0].commit),
            ends=ends,
        )


def entry_table(
    entries: Sequence[Entry], changes: Sequence[Change], addresses: Mapping[str, str] | None = None
) -> Table[Entry]:
    """Returns a table of the commits of a series. The first commit after each change of speed is marked. `addresses`
    has the address of the page of each study."""
    new_levels = {(change.after, change.at) for change in changes}
    return Table(
        "",
        entries,
        [
            Column("date", lambda entry: entry.at[:10]),
            Column("commit", lambda entry: entry.commit, whole=True),
            number("difference", lambda entry: entry.difference and signed(entry.difference.value)),
            number("95% interval", lambda entry: entry.difference and entry.difference.text()),
            Column("verdict", lambda entry: entry.verdict, verdict=lambda entry: entry.verdict),
            number("blocks", lambda entry: entry.blocks),
            Column("", lambda entry: "new level" if (entry.commit, entry.at) in new_levels else ""),
        ],
        lambda entry: (entry.commit, entry.at) in new_levels,
        page_of=lambda entry: (addresses or {}).get(entry.study),
    )


def _commit_of(spec: StudySpec, arm: str) -> str:
    """Returns the commits from which the server and the extensions of an arm were built, as the frozen study file (the
    stored copy with all defaults) names them. If there are none, returns the name of the arm."""
    own = spec.arms[arm].model_dump(mode="json", exclude_none=True)
    commits = [match[1] for text in _texts(own) if (match := _COMMIT.fullmatch(text))]
    return " + ".join(dict.fromkeys(commits)) or arm


def _without_paths(value: Any) -> Any:
    """Returns a set-up in which each source (a Git repository with a commit) is replaced by the commit alone, without
    the path of the repository."""
    match value:
        case dict():
            return {key: _without_paths(part) for key, part in value.items()}
        case list():
            return [_without_paths(part) for part in value]
        case str():
            return match[1] if (match := _COMMIT.fullmatch(value)) else value
    return value


def _texts(value: Any) -> Iterator[str]:
    match value:
        case dict():
            yield from (text for part in value.values() for text in _texts(part))
        case list():
            yield from (text for part in value for text in _texts(part))
        case str():
            yield value
