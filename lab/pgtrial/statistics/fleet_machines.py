"""What each machine of a fleet did, and which of them is slow. Pure functions of stored trials."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from pgtrial.model.records.study import Trial
from pgtrial.model.records.where_it_ran import MachinePart
from pgtrial.statistics.canaries import DEVIATIONS, FLOOR
from pgtrial.statistics.levels import robust_sd


def machine_parts(trials: Sequence[Trial]) -> list[MachinePart]:
    """One for each machine of the fleet; empty for loads made by the lab's own machine."""
    names = dict.fromkeys(share.machine for trial in trials for share in trial.machines)
    logs = {name: median(found) for name in names if (found := _relative_speeds(trials, name))}
    return [_part(name, trials, logs) for name in names]


def lost_machines(trial: Trial) -> list[str]:
    """The machines that were gone before their engine had ended; none where no engine came to its end at all."""
    gone = [share.machine for share in trial.machines if share.status is None]
    return gone if len(gone) < len(trial.machines) else []


def slower_by(logs: Mapping[str, float], machine: str) -> float | None:
    """How much slower than the usual of the others a machine is, as a share; None if it is within what is tolerated.

    `logs` holds each machine's logarithm of its speed. The rule is the canary's, one-sided.
    """
    others = [value for name, value in logs.items() if name != machine]
    if machine not in logs or not others:
        return None
    usual = median(others)
    tolerated = max(DEVIATIONS * robust_sd(others, usual), math.log1p(FLOOR))
    return -math.expm1(logs[machine] - usual) if usual - logs[machine] > tolerated else None


def _relative_speeds(trials: Iterable[Trial], machine: str) -> list[float]:
    """By trial: the logarithm of its tps per client, less the median of all machines of the trial."""
    found = []
    for trial in trials:
        logs = {
            share.machine: math.log(share.tps / share.clients)
            for share in trial.machines
            if share.status is not None and share.tps and share.clients
        }
        if machine in logs and len(logs) > 1:
            found.append(logs[machine] - median(logs.values()))
    return found


def _part(machine: str, trials: Sequence[Trial], logs: Mapping[str, float]) -> MachinePart:
    took_part = [trial for trial in trials if any(share.machine == machine for share in trial.machines)]
    own = [share for trial in took_part for share in trial.machines if share.machine == machine]
    told = [share for share in own if share.status is not None]
    transactions = sum(_known(share.transactions for share in own))
    of_all = sum(_known(share.transactions for trial in took_part for share in trial.machines))
    of_told = sum(_known(share.transactions for share in told))
    cpu_s = sum(_known(time for share in told for time in (share.cpu_user_s, share.cpu_system_s)))
    speeds = _known(share.tps for share in told)
    offsets = _known(share.clock_offset_us for share in own)
    return MachinePart(
        machine=machine,
        address=own[0].address or None,
        with_lab=own[-1].with_lab,
        trials=len(own),
        lost=sum(machine in lost_machines(trial) for trial in took_part),
        clients=max((share.clients for share in own if share.clients is not None), default=None),
        transactions=round(transactions),
        share=transactions / of_all if of_all else None,
        tps=median(speeds) if speeds else None,
        speed=math.exp(logs[machine]) if machine in logs else None,
        slower_by=slower_by(logs, machine),
        cpu_per_transaction_us=1e6 * cpu_s / of_told if of_told and cpu_s else None,
        busiest_thread_share=max(_known(share.busiest_thread_share for share in told), default=None),
        lag_p99_us=max(_known(share.lag_p99_us for share in told), default=None),
        start_skew_us=max(_known(share.start_skew_us for share in own), key=abs, default=None),
        clock_offset_us=median(offsets) if offsets else None,
        offset_error_us=max(_known(share.offset_error_us for share in own), default=None),
    )


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
