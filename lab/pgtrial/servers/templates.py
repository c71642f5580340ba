"""Templates: data directories of which trials get copies. A template's data was loaded once, and its server was shut
down cleanly."""

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
"""The version of the procedure by which pgtrial makes templates. It is increased with each change of the procedure, so
that older templates are not used any more."""


@dataclass(frozen=True)
class TemplateKey:
    """Everything on which the content of a template depends. A `scale` of 0 without `prepared` is a cluster without
    tables."""

    kind: str
    version: str
    scale: int
    fillfactor: int = 100
    foreign_keys: bool = False
    prepared: str = ""
    """The digest of the workload's own data, if the template has this data instead of pgbench's tables; otherwise
    ""."""

    @property
    def name(self) -> str:
        """The name of the template's directory, such as `pg18.6-s20-1a2b3c4d`: the version, the data, and a digest of
        the key."""
        brought = self.prepared.partition(" ")[0] if " " in self.prepared else "sysbench"
        what = brought if self.prepared else f"s{self.scale}" if self.scale else "empty"
        differing = {name: value for name, value in asdict(self).items() if name != "prepared" or value}
        # all templates depend on these as well; the C library determines the order of texts in indexes
        common = {"engine": __version__, "format": DATA_FORMAT, "libc": platform.libc_ver()}
        digest = hashlib.sha256(json.dumps({**differing, **common}, sort_keys=True).encode()).hexdigest()
        return f"pg{self.version}-{what}-{digest[:8]}"


@dataclass(frozen=True)
class TemplateOrder:
    """A template that a study needs: its key, further fields of its record, and the function that makes it."""

    key: TemplateKey
    label: str
    """A description of the template's data for messages."""
    settings: Mapping[str, str]
    """The settings of the server while it loads the data."""
    build: Callable[[Path], None]
    """The function that makes the data directory, at a path that does not exist yet."""


@dataclass(frozen=True)
class StrippedCopy:
    """The remains of a copy after its trial: its directories, and those small files that were not changed."""

    path: Path
    missing: Mapping[str, int]
    """The files of the template that this copy lacks: their sizes in bytes, by their paths relative to the data
    directory."""


@dataclass(frozen=True)
class KeptCopy:
    """Identifies a copy of a template that several trials use. It belongs to the arm `owner`; or, with `owner` None, it
    is the copy `number` of those that several arms share."""

    template: TemplateKey
    owner: str | None
    number: int | None


@dataclass(frozen=True)
class RunTemplates:
    """The templates that belong to one run. They are removed together with the run directory."""

    machine: Machine
    _made: dict[TemplateKey, Path] = field(default_factory=dict)

    def find(self, key: TemplateKey) -> Path | None:
        """Returns the data directory of a template; None if it was not made yet."""
        return self._made.get(key)

    def rows_file(self, key: TemplateKey) -> None:
        """Returns None, since digests of the rows are not stored for templates that end with their run."""

    def ensure(self, order: TemplateOrder, staging: Path, on_wait: Callable[[str], None], notes: list[str]) -> Path:
        """Returns the data directory of the template. If it does not exist yet, makes it in `staging`."""
        del on_wait, notes  # no other lab uses this run's templates
        if order.key not in self._made:
            order.build(staging)
            self.machine.tool(["sync"])  # the template has to survive a restart of the host
            self._made[order.key] = staging
        return self._made[order.key]

    def present(self) -> list[Path]:
        """Returns the data directories of all templates."""
        return list(self._made.values())

    def forget_empty(self) -> None:
        """Forgets the templates without tables, so that they are made again. After a restart of the host they may be
        damaged, since they are not flushed to disk separately."""
        for key in [key for key in self._made if not (key.scale or key.prepared)]:
            del self._made[key]
