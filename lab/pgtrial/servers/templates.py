"""Templates: data directories loaded once, stopped cleanly, and kept between studies."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from pgtrial import __version__

DATA_FORMAT = 1
"""Raised when templates are made in another way, so that old ones are not used."""

_MARK = "template.json"


@dataclass(frozen=True)
class TemplateKey:
    """What the bytes of a template depend on; `scale` 0 is a cluster without tables."""

    kind: str
    version: str
    scale: int
    fillfactor: int = 100
    foreign_keys: bool = False
    prepared: str = ""
    """Digest of what the workload brought with it, in place of pgbench's tables."""

    @property
    def name(self) -> str:
        """Directory name for people and machines: `pg18.6-s20-1a2b3c4d`."""
        brought = self.prepared.partition(" ")[0] if " " in self.prepared else "sysbench"
        what = brought if self.prepared else f"s{self.scale}" if self.scale else "empty"
        return f"pg{self.version}-{what}-{hashlib.sha256(self._text().encode()).hexdigest()[:8]}"

    def _text(self) -> str:
        depends_on = {name: value for name, value in asdict(self).items() if name != "prepared" or value}
        return json.dumps({**depends_on, "engine": __version__, "format": DATA_FORMAT}, sort_keys=True)


@dataclass(frozen=True)
class KeptCopy:
    """A copy of a template that outlives its trial: one arm's own, or one of those that arms of a kind share."""

    template: TemplateKey
    owner: str | None
    number: int | None


@dataclass(frozen=True)
class Templates:
    """The store of templates, one directory each, with `data/` and a mark that is written when all is there."""

    root: Path

    def find(self, key: TemplateKey) -> Path | None:
        """The data directory of a finished template, or None."""
        home = self.root / key.name
        return home / "data" if (home / _MARK).is_file() else None

    def ensure(self, key: TemplateKey, staging: Path, build: Callable[[Path], None]) -> Path:
        """The data directory of the template; `build` fills it in `staging` (same file system) if there is none yet."""
        present = self.find(key)
        if present is not None:
            return present
        staging.mkdir(mode=0o711)
        try:
            build(staging / "data")
            (staging / _MARK).write_text(
                json.dumps({**asdict(key), "pgtrial": __version__, "format": DATA_FORMAT}, indent=2)
            )
            os.sync()  # the template outlives this process; it is on disk before it gets its name
            home = self.root / key.name
            try:
                staging.rename(home)
            except OSError:
                if self.find(key) is None:
                    raise
                shutil.rmtree(staging)  # another lab was faster
            return home / "data"
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise

    def present(self) -> list[Path]:
        """All directories of the store."""
        return sorted(path for path in self.root.glob("*") if path.is_dir())

    def unmarked(self) -> list[Path]:
        """Directories that nobody finished."""
        return [path for path in self.present() if not (path / _MARK).is_file()]
