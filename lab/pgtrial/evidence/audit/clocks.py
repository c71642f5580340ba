"""Rules on clocks that differ: of the servers' hosts from the facts, of a fleet's machines from the trials."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from pgtrial.evidence.audit.case import Case, Concern, is_frequent, listed, rule
from pgtrial.model.records.where_it_ran import MachineShare

_UNSURE_US = 5_000.0
"""Error of an offset above which machines do not count as starting together."""

_WRONG_US = 3_600e6
"""An offset too large for drift: a wrong time zone, or a flat battery."""

_SYNCHRONISE = "Synchronise the clocks (chrony, ntpd, systemd-timesyncd)"


@rule("clock_offset", "a clock is off")
def clock_of_the_servers_host(case: Case) -> Iterator[Concern]:
    """Timestamps of the server's host are compared with those of the lab."""
    offsets = case.known("probes", "clock_offset_us")
    wrong = {arm: offset for arm, offset in offsets.items() if abs(offset) > _WRONG_US}
    if wrong:
        clocks = listed(f"{_ahead(offset)} on the host of {arm}" for arm, offset in wrong.items())
        yield Concern(
            list(wrong),
            f"The clock is {clocks}: the server's log and what else has its host's time do not lie beside the "
            "trials, and certificates may seem to have expired. Durations are not concerned.",
            f"{_SYNCHRONISE} before the study.",
        )
    errors = case.known("probes", "clock_offset_error_us")
    unsure = {arm: error for arm, error in errors.items() if arm not in wrong and error > _UNSURE_US}
    if unsure:
        clocks = listed(f"{_milliseconds(error)} on the host of {arm}" for arm, error in unsure.items())
        yield Concern(
            list(unsure),
            f"How far the clock is off is known to {clocks} only: events of its log are that much before or "
            "after what the lab saw. Durations are not concerned.",
            "Nothing to do for the verdict; a shorter way to the host makes it exact.",
            "info",
        )


@rule("clock_offset", "a clock is off", over_trials=True)
def wrong_clocks_of_the_fleet(case: Case) -> Iterator[Concern]:
    """The start of the load is corrected by a machine's offset; its logs are not."""
    offsets: dict[str, float] = {}
    for share in _shares(case):
        offset = share.clock_offset_us
        if offset is not None and abs(offset) > max(_WRONG_US, abs(offsets.get(share.machine, 0.0))):
            offsets[share.machine] = offset
    if offsets:
        clocks = listed(f"{_ahead(offset)} on {machine}" for machine, offset in offsets.items())
        yield Concern(
            case.plan.arms,
            f"In the fleet the clock is {clocks}: the start of its load was corrected by that, its logs are not, "
            "and certificates may seem to have expired there.",
            f"{_SYNCHRONISE} on all machines before the study.",
        )


@rule("clock_offset", "a clock is off", over_trials=True)
def unsure_clocks_of_the_fleet(case: Case) -> Iterator[Concern]:
    """A machine starts its load by its own clock: the error of its offset is an error of that instant."""
    fleet = [trial for trial in case.trials if trial.machines]
    unsure = [share for share in _shares(case) if _is_unsure(share)]
    trials = sum(any(map(_is_unsure, trial.machines)) for trial in fleet)
    if is_frequent(trials, len(fleet)):
        machines = listed(dict.fromkeys(share.machine for share in unsure))
        most = max(share.offset_error_us or 0.0 for share in unsure)
        yield Concern(
            case.plan.arms,
            f"How far the clock of {machines} is off was known to {_milliseconds(most)} only, in {trials} of "
            f"{len(fleet)} trials: that machine's load may have begun and ended so much before or after the others', "
            "and the seconds of a trial are mixed by as much.",
            f"{_SYNCHRONISE} on all machines, and use machines near to each other that do nothing else.",
        )


def _shares(case: Case) -> Iterator[MachineShare]:
    for trial in case.trials:
        yield from trial.machines


def _is_unsure(share: MachineShare) -> bool:
    return (share.offset_error_us or 0.0) > _UNSURE_US


def _ahead(offset_us: float) -> str:
    """`2:00:00 ahead`, `1 day, 0:00:03 behind`."""
    return f"{timedelta(seconds=round(abs(offset_us) / 1e6))} {'ahead' if offset_us > 0 else 'behind'}"


def _milliseconds(error_us: float) -> str:
    return f"{error_us / 1000:,.0f} ms"
