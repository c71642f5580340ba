"""Describes where the loaded data of an arm is stored, and keeps the facts that pgtrial has found out about its rows,
such as their number, in the same directory."""

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
    """The data of an arm after it was loaded: in a template, of which trials get copies, or on a given server."""

    identity: Hashable
    """A value that identifies the loaded data. It is equal for arms that share a template or a given server, and that
    therefore have the same rows."""
    deployment: int | None
    """The number of a given server among the deployments of its arm, counted from 0; None for a template."""
    served: Callable[[Path], AbstractContextManager[Target]]
    """The function that provides a server with this data. The caller must not change the data. The argument is the file
    for the server's log."""
    kept: Path | None = None
    """The file beside the template in which pgtrial stores the number and the digest of each table's rows; None if it
    stores nothing."""

    @property
    def is_given(self) -> bool:
        """True if the data is on a given server, where the changes of a trial remain."""
        return self.deployment is not None

    def known_rows(self) -> dict[str, TableRows]:
        """Returns the count and the digest of each table's rows, as far as they are stored; empty if pgtrial has not
        read the rows yet."""
        if self.kept is not None:
            with suppress(OSError, ValidationError):
                return _ROWS.validate_json(self.kept.read_bytes())
        return {}

    def keep_rows(self, rows: Mapping[str, TableRows]) -> None:
        """Stores the count and the digest of each table's rows beside the template. Stores nothing if the file cannot
        be written, for example on a full disk."""
        if self.kept is not None:
            # other accounts must not read the digests, by which they could check guesses of the rows' values
            with suppress(OSError):
                LOCAL.write_text(self.kept, _ROWS.dump_json(dict(rows)).decode(), mode=0o600, durable=True)

    def known_analysis_s(self) -> float | None:
        """Returns the time that ANALYZE of this data took, in seconds; None if it was not measured yet."""
        if self.kept is not None:
            with suppress(OSError, ValueError):
                return float(self.kept.with_name(_ANALYSIS).read_text())
        return None

    def keep_analysis_s(self, seconds: float) -> None:
        """Stores the time that ANALYZE took beside the template. Stores nothing if the file cannot be written, for
        example on a full disk."""
        if self.kept is not None:
            with suppress(OSError):
                LOCAL.write_text(self.kept.with_name(_ANALYSIS), f"{seconds:.3f}\n", mode=0o644, durable=True)
