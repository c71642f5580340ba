"""A place where an arm's data is once it is loaded, and what is kept there about its rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from pgtrial.loads.target import Target
from pgtrial.machines.machine import LOCAL
from pgtrial.model.records.rows import TableRows

_ROWS = TypeAdapter(dict[str, TableRows])
_ANALYSIS = "analysis.json"


@dataclass(frozen=True)
class LoadedData:
    """A place of loaded data: a template, of which trials get copies, or a given server."""

    identity: Hashable
    """Identifies the copy of the data. It is equal for arms that share a template or a given server, and so have the
    same rows."""
    deployment: int | None
    """The number of a given server among those of its arm; None for a template."""
    served: Callable[[Path], AbstractContextManager[Target]]
    """Provides a server with this data, on which nothing may be changed; its log is written to the path."""
    kept: Path | None = None
    """The file beside the template that keeps what is known of its rows; None if that is not kept."""

    @property
    def is_given(self) -> bool:
        """True for a given server, which keeps what trials write."""
        return self.deployment is not None

    def known_rows(self) -> dict[str, TableRows]:
        """Returns what is kept about the rows of each table; empty if the rows were not read yet."""
        if self.kept is not None:
            with suppress(OSError, ValidationError):
                return _ROWS.validate_json(self.kept.read_bytes())
        return {}

    def keep_rows(self, rows: Mapping[str, TableRows]) -> None:
        """Keeps what is known of the rows with the template. If the disk is full, nothing is kept."""
        if self.kept is not None:
            # no other account may read the digests, from which values that are easy to guess could be found
            with suppress(OSError):
                LOCAL.write_text(self.kept, _ROWS.dump_json(dict(rows)).decode(), mode=0o600, durable=True)

    def known_analysis_s(self) -> float | None:
        """Returns the time that ANALYZE of this data took, in seconds; None if it was not measured yet."""
        if self.kept is not None:
            with suppress(OSError, ValueError):
                return float(self.kept.with_name(_ANALYSIS).read_text())
        return None

    def keep_analysis_s(self, seconds: float) -> None:
        """Keeps the time that ANALYZE took with the template. If the disk is full, nothing is kept."""
        if self.kept is not None:
            with suppress(OSError):
                LOCAL.write_text(self.kept.with_name(_ANALYSIS), f"{seconds:.3f}\n", mode=0o644, durable=True)
