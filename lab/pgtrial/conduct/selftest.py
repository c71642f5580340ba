"""The self-test of a machine: a study of two equal arms, and of further arms that are slower by a known share (planted
arms). It shows which differences pgtrial finds on the machine.

The server of a planted arm does additional work in each transaction: it counts as many rows as the setting
`pgtrial.work` says, in the statement of a point lookup or in a trigger on pgbench_history. Before that, a calibration
measures how much throughput a certain amount of work costs. Since the time of a transaction grows linearly with the
work, this gives the amount of work for each planted share.
"""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pgtrial
from pgtrial.conduct.planning.interleaving import interleaved
from pgtrial.conduct.planning.lengths import least_time
from pgtrial.conduct.planning.plan import block_estimate
from pgtrial.model.errors import StudyError
from pgtrial.model.records.machine import Certificate, Planted, Selftest
from pgtrial.model.study.design import Design
from pgtrial.model.study.load_values import AUTO
from pgtrial.model.study.setup import WORK
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import as_written, format_duration
from pgtrial.servers.runs import shared_state
from pgtrial.statistics import p9
from pgtrial.statistics.p8 import Interval
from pgtrial.statistics.paired_t import t_interval
from pgtrial.store.certificates import study_certificate, write_certificate
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.state import (
    CERTIFICATES,
    certificate_for,
    keep_certificate,
    state_root,
)
from pgtrial.store.study_file import build_study
from pgtrial.verdict import certificate as figures
from pgtrial.verdict.grid import Grid

WORKLOADS = ("select-only", "tpcb-like")

_BASELINE, _SAME = "as it is", "the same again"

LOOKUP = Path(str(files(__package__))) / "point-lookup.sql"
"""The script of the workload select-only: a point lookup that also counts rows as additional work."""
_TRIGGER = (
    f"""CREATE FUNCTION pgtrial_work() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM count(*) FROM generate_series(1, current_setting('{WORK}')::int);
        RETURN NEW;
    END $$""",
    "CREATE TRIGGER pgtrial_work BEFORE INSERT ON pgbench_history FOR EACH ROW EXECUTE PROCEDURE pgtrial_work()",
)

_CALIBRATION_BLOCKS = 4
"""The number of blocks of the calibration. The interval of their mean (Student's t) becomes the uncertainty of the
planted shares."""
_CALIBRATION_S = (1.0, 5.0)
"""The warm-up and the measured part of the calibration's trials, in seconds, unless the user gives both lengths for the
self-test."""
_NO_WORK = 1
"""The number of rows that servers of arms without planted work count. It is not 0, since the first row costs about 3%
of a point lookup, which all arms have to pay."""
FIRST_WORK = 1000
"""The number of rows that are counted in the first attempt of a calibration, which takes about 100 us of CPU time."""
_MORE_WORK = 8
_ATTEMPTS = 4
_MEASURABLE = (0.3, 0.8)
"""The smallest and the largest share of lost throughput with which a calibration is accepted. If the log-ratio has an
error of e, a planted share has a relative error of e divided by the lost share, which is at most 3.3 e. If a share is
too small, `_MORE_WORK` times the work raises it to at most 0.78, so that the next attempt cannot be above the largest
share."""
_PREPARING_S = 20.0
"""The expected time, in seconds, that making the servers and loading their data takes for the calibration and the study
together."""


@dataclass(frozen=True)
class Wanted:
    """The options of a self-test."""

    workload: str = "select-only"
    server: str | None = None
    """The connection string of a given server; None if pgtrial makes the servers."""
    planted: Sequence[float] = (0.05,)
    """The planted shares: for each slower arm, the share by which its throughput is reduced."""
    scale: int = 10
    clients: int = 8
    interleave: str = "auto"
    """The value of the key `[load] interleave`, which says whether the trials of the arms alternate in slices."""
    warmup_s: float | None = None
    """The warm-up of a trial, in seconds; None if pgtrial chooses it."""
    duration_s: float | None = None
    """The measured part of a trial, in seconds; None if pgtrial chooses it."""
    budget_s: float = 600.0
    seed: int | None = None
    lookup: Path = LOOKUP
    """The script that runs as the workload select-only."""


def calibration_of(wanted: Wanted, work: int = FIRST_WORK) -> StudySpec:
    """Returns the study of a calibration, which measures by which share this amount of work reduces the throughput.
    Raises StudyError."""
    warmup_s, duration_s = _CALIBRATION_S
    if wanted.warmup_s is None or wanted.duration_s is None:
        wanted = replace(wanted, warmup_s=warmup_s, duration_s=duration_s)
    return _spec(wanted, {_BASELINE: _NO_WORK, "working": work}, {"blocks": _CALIBRATION_BLOCKS, "budget": "24h"})


def next_work(work: int, slower_by: float, attempt: int) -> int | None:
    """Returns the amount of work for the next attempt of the calibration; None if the result `slower_by` is within the
    accepted limits. Raises StudyError after the last attempt."""
    least, most = _MEASURABLE
    if least <= slower_by <= most:
        return None
    if attempt == _ATTEMPTS:
        raise StudyError(
            f"the server cannot be calibrated: counting {work:,} rows in each transaction costs {slower_by:.0%} of the "
            "throughput; let nothing else run on the machine, or choose other --clients"
        )
    return work * _MORE_WORK if slower_by < least else max(_NO_WORK + 1, work // _MORE_WORK)


def lost_share(study: StudyDirectory) -> Interval:
    """Returns the share by which the throughput of the second arm is lower than that of the first, with its 95%
    interval. It is computed from the mean of the blocks' log-ratios. Raises StudyError."""
    ratios = Grid(study.plan, study.trials()).ratios(study.plan.arms[1], range(len(study.plan.load_points)))
    known = [ratio.log_ratio for ratio in ratios if ratio.log_ratio is not None]
    if not known:
        raise StudyError("the calibration has no block in which both arms committed transactions")
    ratio = t_interval(known)
    return Interval(*(-math.expm1(end) for end in (ratio.high, ratio.estimate, ratio.low)))


def selftest_of(wanted: Wanted, work: int, lost: Interval) -> Selftest:
    """Returns the arms of the self-test. `lost` is the share of the throughput that the amount `work` costs, as
    calibrated."""
    return Selftest(
        same=_SAME,
        planted=[_planted(share, work - _NO_WORK, lost) for share in wanted.planted],
        calibrated_work=work,
        calibrated_slower_by=lost.estimate,
    )


def _planted(share: float, calibrated: int, lost: Interval) -> Planted:
    """Returns the planted arm that is slower by `share`. `lost` is the share of the throughput that counting
    `calibrated` rows costs.

    If the throughput is reduced by a share s, a transaction takes longer by s / (1 - s) of its time without work. This
    additional time is proportional to the number of rows.
    """
    rows = max(1, round(calibrated * _in_time(share) / _in_time(lost.estimate)))
    low, high = (_in_time(max(0.0, end)) * rows / calibrated if end < 1 else math.inf for end in (lost.low, lost.high))
    return Planted(
        arm=f"{as_written(share)} slower",
        slower_by=share,
        work=_NO_WORK + rows,
        low=low / (1 + low),
        high=high / (1 + high) if math.isfinite(high) else 1.0,
    )


def _in_time(share: float) -> float:
    return share / (1 - share)


def study_of(wanted: Wanted, selftest: Selftest, left_s: float) -> StudySpec:
    """Returns the study of the self-test. Its budget is the time that is left after the calibration, `left_s` seconds.
    Raises StudyError."""
    work = {_BASELINE: _NO_WORK, selftest.same: _NO_WORK, **{effect.arm: effect.work for effect in selftest.planted}}
    return _spec(wanted, work, {"budget": max(left_s - _PREPARING_S / 2, _least_study_s(wanted)), "stop_early": False})


def check_budget(wanted: Wanted) -> None:
    """Raises StudyError if the budget is too short for a self-test whose result (the certificate) says anything."""
    calibration = calibration_of(wanted)
    least = _PREPARING_S + _CALIBRATION_BLOCKS * block_estimate(calibration) + _least_study_s(wanted)
    if wanted.budget_s < least:
        rounded = 60.0 * math.ceil(least / 60)
        raise StudyError(
            f"--budget {format_duration(wanted.budget_s)} is too short for this self-test; "
            f"give it at least {format_duration(rounded)}"
        )


def certify(study: StudyDirectory, selftest: Selftest) -> Certificate:
    """Returns the certificate from the trials of a self-test that has ended. Raises StudyError."""
    plan = study.plan
    grid = Grid(plan, study.trials())
    blocks = len(grid.counted)
    if blocks < p9.first_look():
        raise StudyError(
            f"{study.path} has {blocks} complete blocks, but a certificate needs at least {p9.first_look()}: "
            f"give the self-test more time"
        )
    same, *slower = (figures.series(grid, arm) for arm in (selftest.same, *(effect.arm for effect in selftest.planted)))
    spread = max(figure.spread for figure in (same, *slower))
    interleaving = plan.interleaving
    facts = study.facts().get(plan.baseline)
    return Certificate(
        **plan.model_dump(include={"created", "warmup_s", "duration_s"}),
        pgtrial=pgtrial.__version__,
        host=platform.node(),
        cpus=os.cpu_count() or 1,
        servers=plan.server_hosts,
        postgres=facts.facts.get("server", {}).get("version") if facts is not None else None,
        load=plan.load_points[0].label,
        slice_s=interleaving.slice_s if interleaving is not None else None,
        shared_server=plan.shares_server,
        blocks=blocks,
        block_s=same.block_s,
        spread=spread,
        reach=figures.reach(spread, same.block_s),
        same=figures.consecutive(same, figures.SAME_BLOCKS, plan.margin),
        alike=figures.measured(same),
        planted=[
            figures.found(slow, planted, plan.margin) for slow, planted in zip(slower, selftest.planted, strict=True)
        ],
    )


def _spec(wanted: Wanted, work: dict[str, int], verdict: dict[str, Any]) -> StudySpec:
    read_only = wanted.workload == "select-only"
    if wanted.workload not in WORKLOADS:
        raise StudyError(f"--workload {wanted.workload}: a self-test runs only {' or '.join(WORKLOADS)}")
    if wanted.server is not None and not read_only:
        raise StudyError(
            f"--workload {wanted.workload} needs a trigger on fresh copies of the data, which a given server does not "
            "have; leave out --workload, or --server"
        )
    server = {"dsn": wanted.server} if wanted.server is not None else {"setup_sql": [] if read_only else list(_TRIGGER)}
    data = {
        "study": {"question": "What can pgtrial tell on this machine?", "name": "selftest", "seed": wanted.seed},
        "load": {
            "workload": wanted.lookup.name if read_only else wanted.workload,
            "scale": wanted.scale,
            "clients": wanted.clients,
            "interleave": wanted.interleave,
            "warmup": AUTO if wanted.warmup_s is None else wanted.warmup_s,
            "duration": AUTO if wanted.duration_s is None else wanted.duration_s,
            "share_server": wanted.server is not None,
        },
        "server": server,
        "arms": {name: {"settings": {WORK: str(rows)}} for name, rows in work.items()},
        # a busy client does not bias the comparison, since the client's share of the work is the same in all arms
        "verdict": {"allow_busy_client": True, "final": True, **verdict},
    }
    return build_study(data, "selftest", wanted.lookup.parent)


def _least_study_s(wanted: Wanted) -> float:
    arms = {_BASELINE: _NO_WORK, _SAME: _NO_WORK, **{str(share): 1 for share in wanted.planted}}
    return least_time(interleaved(Design(_spec(wanted, arms, {"budget": wanted.budget_s}))))


def keep_for_studies(certificate: Certificate) -> None:
    """Stores a certificate in the state directory, where later studies on this machine find it. Raises StoreError."""
    with shared_state() as root:
        keep_certificate(root / CERTIFICATES, certificate)


def take_certificate(study: StudyDirectory) -> None:
    """Stores this machine's certificate in the directory of a study that begins, so that the study's report can name
    it.

    Raises StoreError if the record of certificates is damaged or was written by a newer version of pgtrial.
    """
    if study.trials() or study_certificate(study) is not None:
        return
    certificate = certificate_for(state_root() / CERTIFICATES, study.plan.server_hosts)
    if certificate is not None:
        write_certificate(study, certificate)
