"""Rules on clocks that are wrong: the clocks of the servers' hosts, which are read from the facts, and the clocks of
the machines of a fleet (machines that make the load together), which are read from the trials."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from pgtrial.model.units import grouped
from pgtrial.verdict.rules.case import Case, Concern, is_frequent, listed, rule

_UNSURE_US = 5_000.0
"""If the offset of a clock is known only with a larger error than this, in microseconds, machines do not count as
starting together."""

_WRONG_US = 3_600e6
"""An offset above this, in microseconds, cannot be drift. Its cause is a wrong time zone or a flat battery."""

_SYNCHRONISE = "Synchronise the clocks (chrony, ntpd, systemd-timesyncd)"


@rule("clock_offset", "a clock is off")
def clock_of_the_servers_host(case: Case) -> Iterator[Concern]:
    """Finds servers whose host has a wrong clock. Timestamps of that host are compared with those of the machine on
    which pgtrial runs."""
    offsets = case.known("probes", "clock_offset_us")
    wrong = {arm: offset for arm, offset in offsets.items() if abs(offset) > _WRONG_US}
    if wrong:
        clocks = listed(f"{_ahead(offset)} on the host of {arm}" for arm, offset in wrong.items())
        yield Concern(
            list(wrong),
            f"The clock is {clocks}: timestamps of the server's log and of its host do not match those of the trials, "
            "and certificates may seem to have expired. Durations are not affected.",
            f"{_SYNCHRONISE} before the study.",
        )
    errors = case.known("probes", "clock_offset_error_us")
    unsure = {arm: error for arm, error in errors.items() if arm not in wrong and error > _UNSURE_US}
    if unsure:
        clocks = listed(f"{_milliseconds(error)} on the host of {arm}" for arm, error in unsure.items())
        yield Concern(
            list(unsure),
            f"How far the clock is off is known to {clocks} only: timestamps of its log may be wrong by as much in "
            "comparison with those of the trials. Durations are not affected.",
            "Nothing to do for the verdict; a shorter way to the host makes it exact.",
            "info",
        )


@rule("clock_offset", "a clock is off", over_trials=True)
def clocks_of_the_fleet(case: Case) -> Iterator[Concern]:
    """Finds machines with wrong clocks in a fleet, which is a group of machines that make the load together.

    A machine starts its load by its own clock, corrected by the measured offset. If the offset is not known exactly,
    the start is wrong by the same error. The timestamps in the machine's logs are not corrected.
    """
    fleet = [trial.machines for trial in case.trials if trial.machines]
    shares = [share for machines in fleet for share in machines]
    wrong = grouped(
        (share.machine, share.clock_offset_us) for share in shares if abs(share.clock_offset_us) > _WRONG_US
    )
    if wrong:
        clocks = listed(f"{_ahead(max(offsets, key=abs))} on {machine}" for machine, offsets in wrong.items())
        yield Concern(
            case.plan.arms,
            f"In the fleet the clock is {clocks}: the start of its load was corrected by that, its logs are not, "
            "and certificates may seem to have expired there.",
            f"{_SYNCHRONISE} on all machines before the study.",
        )
    errors = [max(share.offset_error_us for share in machines) for machines in fleet]
    unsure = [error for error in errors if error > _UNSURE_US]
    if is_frequent(len(unsure), len(fleet)):
        names = listed(dict.fromkeys(share.machine for share in shares if share.offset_error_us > _UNSURE_US))
        yield Concern(
            case.plan.arms,
            f"How far the clock of {names} is off was known to {_milliseconds(max(unsure))} only, in {len(unsure)} of "
            f"{len(fleet)} trials: that machine's load may have begun and ended so much before or after the others', "
            "and the seconds of a trial are mixed by as much.",
            f"{_SYNCHRONISE} on all machines, and use machines near to each other that do nothing else.",
        )


def _ahead(offset_us: float) -> str:
    """Returns an offset in words, such as `2:00:00 ahead` or `1 day, 0:00:03 behind`."""
    return f"{timedelta(seconds=round(abs(offset_us) / 1e6))} {'ahead' if offset_us > 0 else 'behind'}"


def _milliseconds(error_us: float) -> str:
    return f"{error_us / 1000:,.0f} ms"
