"""The record of the noise on this machine. Adds the noise of studies that have run, and looks up the noise that is to
be expected for a new study."""

from __future__ import annotations

import hashlib
import json
import platform
from contextlib import suppress

from pgtrial.conduct.planning.scope import hosts_of
from pgtrial.model.errors import StoreError
from pgtrial.model.records.machine import Conditions, Noise
from pgtrial.model.study.design import Design
from pgtrial.model.study.frozen import without_secrets
from pgtrial.model.study.programs import TRACKED
from pgtrial.servers.runs import shared_state
from pgtrial.store.state import NOISE, keep_noise, noise_under, overhead_under, read_noise, state_root
from pgtrial.verdict.carry_over import Slices
from pgtrial.verdict.grid import Grid
from pgtrial.verdict.pace import block_time, measured_spread, within_spread


def keep(design: Design, grid: Grid, slices: Slices | None = None) -> None:
    """Adds the noise of a study to the record of this machine, if the study has enough blocks to know it. Raises
    StoreError.

    With the `slices` of its trials, the noise within trials is recorded separately from the noise between blocks.
    """
    plan = grid.plan
    measured = measured_spread(grid)
    if measured is None:
        return
    spread, blocks = measured
    within = within_spread(grid, slices) if slices else None
    loads_s = len(plan.arms) * len(plan.load_points) * (plan.warmup_s + plan.duration_s)
    timed = design.load.kind.has_planned_time and not plan.left
    noise = Noise(
        study=plan.name,
        created=plan.created,
        conditions=conditions_of(design, plan.duration_s),
        blocks=blocks,
        spread=spread,
        within=within,
        overhead_s=max(0.0, block_time(plan, grid.trials) - loads_s) if timed else None,
    )
    with shared_state() as root:
        keep_noise(root / NOISE, noise)


def noise_under_conditions(design: Design, duration_s: float) -> Noise | None:
    """Returns the recorded noise of studies with the same conditions, whose trials measure for `duration_s` seconds;
    None if there is none.

    Raises StoreError if the record is damaged or was written by a newer version of pgtrial.
    """
    return noise_under(conditions_of(design, duration_s), read_noise(state_root() / NOISE))


def noise_for(design: Design, duration_s: float) -> Noise | None:
    """Returns the recorded noise of studies with the same conditions, whose trials measure for `duration_s` seconds;
    None if there is none or the record cannot be read."""
    with suppress(StoreError):
        return noise_under_conditions(design, duration_s)
    return None


def overhead_for(design: Design) -> float | None:
    """Returns the time in seconds that a block takes in addition to its loads, as recorded for studies with the same
    conditions; None if that is not known."""
    with suppress(StoreError):
        return overhead_under(conditions_of(design, 0.0), read_noise(state_root() / NOISE))
    return None


def conditions_of(design: Design, duration_s: float) -> Conditions:
    """Returns the conditions on which the noise of a study depends, if its trials measure for `duration_s` seconds."""
    interleaving = design.interleaving
    return Conditions(
        lab_host=platform.node(),
        servers=sorted({host.label for hosts in hosts_of(design).values() for host in hosts}),
        fleet=design.spec.fleet.address if design.spec.fleet is not None else None,
        load_points=sorted(f"{point.label}, {point.protocol}" for point in design.load_points),
        arms=len(design.servers),
        duration_s=duration_s,
        slice_s=interleaving.slice_s if interleaving is not None else None,
        metric=design.primary_metric,
        own=_digest_of_own(design),
    )


def _digest_of_own(design: Design) -> str | None:
    """Returns a digest of the study's own scripts, data, programs, given servers and metrics; None if it has none. By
    this digest, studies with different scripts or programs of the same name are not taken for studies with the same
    conditions."""
    public = Design(without_secrets(design.spec))
    own: dict[str, object] = {
        "scripts": design.spec.scripts,
        "data": design.load.data_files,
        "job": design.load.job.command,
        "programs": [
            [server.command, {name: file for name, file in (server.command_files or {}).items() if name != TRACKED}]
            for server in public.servers.values()
            if server.command is not None
        ],
        "given": sorted({str(server.dsn) for server in public.given.values()}),
    }
    if arms := [(keys.data_files, keys.values) for keys in design.spec.arms.values() if keys.data_files or keys.values]:
        own["data and values of arms"] = arms
    if metrics := design.spec.own_metrics:
        own["metrics"] = {name: metric.model_dump() for name, metric in metrics.items()}
    if not any(own.values()):
        return None
    return hashlib.sha256(json.dumps(own, sort_keys=True, default=str).encode()).hexdigest()
