"""The type of a load that the client programs of the arms make."""

from __future__ import annotations

from typing import ClassVar

from pgtrial.model.records.kind import PointKind


class ClientPrograms(PointKind):
    """The batches of the arms' client programs."""

    key: ClassVar[str] = "programs"
    rate_unit: ClassVar[str] = "operations/s"
    is_by_engine: ClassVar[bool] = False
    counts_failures: ClassVar[bool] = False
    rests: ClassVar[bool] = True
