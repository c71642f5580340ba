"""Templates: data directories that are loaded once and stopped cleanly, of which trials get copies."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pgtrial import __version__
from pgtrial.machines.machine import Machine

DATA_FORMAT = 4
"""The version of the way in which templates are made. It is raised with each change, so that old templates are not
used."""


@dataclass(frozen=True)
class TemplateKey:
    """All that the bytes of a template depend on; `scale` 0 is a cluster without tables."""

    kind: str
    version: str
    scale: int
    fillfactor: int = 100
    foreign_keys: bool = False
    prepared: str = ""
    """The digest of what the workload brought with it, in place of pgbench's tables."""

    @property
    def name(self) -> str:
        """The name of the directory, for people and machines: `pg18.6-s20-1a2b3c4d`."""
        brought = self.prepared.partition(" ")[0] if " " in self.prepared else "sysbench"
        what = brought if self.prepared else f"s{self.scale}" if self.scale else "empty"
        differing = {name: value for name, value in asdict(self).items() if name != "prepared" or value}
        # all templates of this pgtrial depend on these; the C library defines the order of texts in indexes
        common = {"engine": __version__, "format": DATA_FORMAT, "libc": platform.libc_ver()}
        digest = hashlib.sha256(json.dumps({**differing, **common}, sort_keys=True).encode()).hexdigest()
        return f"pg{self.version}-{what}-{digest[:8]}"


@dataclass(frozen=True)
class TemplateOrder:
    """A template that a study needs: its key, what else its record says, and how it is made."""

    key: TemplateKey
    label: str
    """The contents of the template, for people."""
    settings: Mapping[str, str]
    """The settings of the server while it loads the data."""
    build: Callable[[Path], None]
    """Makes the data directory at a path that does not exist yet."""


@dataclass(frozen=True)
class StrippedCopy:
    """What is left of a copy after its trial: its directories, and small files that nothing has changed."""

    path: Path
    missing: Mapping[str, int]
    """The sizes in bytes of the files that the template has and this copy lacks, by their paths in it."""


@dataclass(frozen=True)
class KeptCopy:
    """A copy of a template that outlives its trial: one arm's own, or one of those that arms of a kind share."""

    template: TemplateKey
    owner: str | None
    number: int | None


@dataclass(frozen=True)
class RoomTemplates:
    """The templates of one run, which last as long as its room does."""

    machine: Machine
    _made: dict[TemplateKey, Path] = field(default_factory=dict)

    def find(self, key: TemplateKey) -> Path | None:
        """Returns the data directory of a template, or None."""
        return self._made.get(key)

    def rows_file(self, key: TemplateKey) -> None:
        """Returns None: nothing is kept of the rows, since the templates end with the run."""

    def ensure(self, order: TemplateOrder, staging: Path, on_wait: Callable[[str], None], notes: list[str]) -> Path:
        """Returns the data directory of the template, which is `staging` if there is none yet."""
        del on_wait, notes  # no other lab uses this run's templates
        if order.key not in self._made:
            order.build(staging)
            self.machine.tool(["sync"])  # the template has to survive a restart of the host
            self._made[order.key] = staging
        return self._made[order.key]

    def present(self) -> list[Path]:
        """Returns all data directories."""
        return list(self._made.values())

    def forget_empty(self) -> None:
        """Forgets the templates without tables, so that they are made again: they were never flushed on their own."""
        for key in [key for key in self._made if not (key.scale or key.prepared)]:
            del self._made[key]
