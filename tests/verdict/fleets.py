"""Trials whose load was made by a fleet, made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pgtrial.model.records.trial import Trial
from pgtrial.model.records.where_it_ran import MachineShare

LOST = None
"""The speed of a machine that was lost."""


def by_fleet(trial: Trial, speeds: Mapping[str, float | None], **values: Any) -> Trial:
    """Returns the trial as if machines of a fleet had made its load. `speeds` has the transactions per second of one
    client on each machine; each machine has four clients.
    """
    return trial.model_copy(update={"machines": [share(name, speed, **values) for name, speed in speeds.items()]})


def share(machine: str, speed: float | None, **values: Any) -> MachineShare:
    lived = (
        {"transactions": 50, "tps": 5.0}
        if speed is LOST
        else {
            "transactions": round(40 * speed),
            "tps": 4 * speed,
            "cpu_user_s": 40 * speed * 2e-6,
            "cpu_system_s": 40 * speed * 1e-6,
            "busiest_thread_share": 0.25,
            "status": 0,
        }
    )
    clock = {"clock_offset_us": 0.0, "offset_error_us": 20.0}
    return MachineShare(machine=machine, **{"address": "", "clients": 4, **clock, **lived, **values})
