"""Rules on clocks that differ: of the servers' hosts from the facts, of a fleet's machines from the trials."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from pgtrial.evidence.audit.cases import TOLERATED, Case, listed
from pgtrial.model.records.machines import MachineShare
from pgtrial.model.records.study import Finding

_UNSURE_US = 5_000.0
"""Error of an offset: as far apart as the machines of a fleet may begin and still be called together."""

_WRONG_US = 3_600e6
"""An offset that is no drift any more: a wrong time zone, a battery that is flat."""

_SYNCHRONISE = "Synchronise the clocks (chrony, ntpd, systemd-timesyncd)"


def clock_of_the_servers_host(case: Case) -> Iterator[Finding]:
    """What a server writes with its time is laid beside what the lab wrote with its own."""
    offsets = {arm: case.value(arm, "probes", "clock_offset_us") for arm in case.arms}
    wrong = {arm: offset for arm, offset in offsets.items() if offset is not None and abs(offset) > _WRONG_US}
    if wrong:
        told = listed(f"{_ahead(offset)} on the host of {arm}" for arm, offset in wrong.items())
        yield Finding(
            rule="clock_offset",
            severity="warning",
            arms=list(wrong),
            message=f"The clock is {told}: the server's log and what else has its host's time do not lie beside the "
            "trials, and certificates may seem to have expired. Durations are not concerned.",
            cure=f"{_SYNCHRONISE} before the study.",
        )
    errors = {arm: case.value(arm, "probes", "clock_offset_error_us") for arm in case.arms if arm not in wrong}
    unsure = {arm: error for arm, error in errors.items() if error is not None and error > _UNSURE_US}
    if unsure:
        told = listed(f"{_milliseconds(error)} on the host of {arm}" for arm, error in unsure.items())
        yield Finding(
            rule="clock_offset",
            severity="info",
            arms=list(unsure),
            message=f"How far the clock is off is known to {told} only: events of its log are that much before or "
            "after what the lab saw. Durations are not concerned.",
            cure="Nothing to do for the verdict; a shorter way to the host makes it exact.",
        )


def wrong_clocks_of_the_fleet(case: Case) -> Iterator[Finding]:
    """All machines begin at one instant, each by its own clock: an offset is made up for, its logs have it still."""
    offsets: dict[str, float] = {}
    for share in _shares(case):
        offset = share.clock_offset_us
        if offset is not None and abs(offset) > max(_WRONG_US, abs(offsets.get(share.machine, 0.0))):
            offsets[share.machine] = offset
    if offsets:
        told = listed(f"{_ahead(offset)} on {machine}" for machine, offset in offsets.items())
        yield Finding(
            rule="clock_offset",
            severity="warning",
            arms=case.plan.arms,
            message=f"In the fleet the clock is {told}: the start of its load was corrected by that, its logs are not, "
            "and certificates may seem to have expired there.",
            cure=f"{_SYNCHRONISE} on all machines before the study.",
        )


def unsure_clocks_of_the_fleet(case: Case) -> Iterator[Finding]:
    """Where the offset is known roughly, so is the instant at which a machine begins."""
    fleet = [trial for trial in case.trials if trial.machines]
    unsure = [share for share in _shares(case) if (share.offset_error_us or 0.0) > _UNSURE_US]
    trials = sum(any((share.offset_error_us or 0.0) > _UNSURE_US for share in trial.machines) for trial in fleet)
    if trials > TOLERATED * len(fleet):
        machines = listed(dict.fromkeys(share.machine for share in unsure))
        most = max(share.offset_error_us or 0.0 for share in unsure)
        yield Finding(
            rule="clock_offset",
            severity="warning",
            arms=case.plan.arms,
            message=f"How far the clock of {machines} is off was known to {_milliseconds(most)} only, in {trials} of "
            f"{len(fleet)} trials: that machine's load may have begun and ended so much before or after the others', "
            "and the seconds of a trial are mixed by as much.",
            cure=f"{_SYNCHRONISE} on all machines, and use machines near to each other that do nothing else.",
        )


def _shares(case: Case) -> Iterator[MachineShare]:
    for trial in case.trials:
        yield from trial.machines


def _ahead(offset_us: float) -> str:
    """`2:00:00 ahead`, `1 day, 0:00:03 behind`."""
    return f"{timedelta(seconds=round(abs(offset_us) / 1e6))} {'ahead' if offset_us > 0 else 'behind'}"


def _milliseconds(error_us: float) -> str:
    return f"{error_us / 1000:,.0f} ms"
