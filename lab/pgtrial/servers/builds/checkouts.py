"""Checks out the commits in which client programs run. The files of a commit are written once into a directory, which
is kept among the builds of this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from pgtrial.model.study.sources import GitSource
from pgtrial.servers.builds.kept import BuildRecord, Made, Order, record_beside
from pgtrial.store.sources import described, export

_FILES = "files"
"""The directory with the files of the commit, below the directory of the build."""
_SUBJECT = "subject"


def checkout_order(source: GitSource, report: Callable[[str], None]) -> Order:
    """Returns the order for a directory with the files of a fixed commit. `Builds.ensure` finds it on the machine, or
    makes it."""

    def make(home: Path, log: Path, earlier: BuildRecord | None) -> Made:
        del log, earlier  # no program runs, and no progress is estimated
        report(f"checking out {source.short}")
        export(source, home / _FILES, report)
        facts = {"directory": source.text, _SUBJECT: described(source)}
        return Made(_FILES, facts, created=[], steps=0)

    digest = hashlib.sha256(source.text.encode()).hexdigest()[:12]
    return Order(f"checkout-{digest}", source.short, source.repository, make)


def facts_of_checkout(directory: str | None) -> dict[str, str]:
    """Returns the facts of a directory in which a client program runs: the commit that it has, and the subject of the
    commit. The result is empty if pgtrial has not checked it out."""
    record = None if directory is None else record_beside(Path(directory))
    return record.facts if record is not None and _SUBJECT in record.facts else {}
