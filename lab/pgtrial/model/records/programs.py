"""The kind of a load that the client programs of the arms make, in place of the load engine."""

from __future__ import annotations

from typing import ClassVar

from pgtrial.model.records.kind import PointKind


class ClientPrograms(PointKind):
    """A load of client programs: the program of each arm runs its operations in batches."""

    key: ClassVar[str] = "programs"
    rate_unit: ClassVar[str] = "operations/s"
    is_by_engine: ClassVar[bool] = False
    counts_failures: ClassVar[bool] = False
    rests: ClassVar[bool] = True
