"""Estimates, for the plan of a study, how many blocks a verdict needs, how long a block takes in addition to the time
of its loads, and how long its trials are."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrial.conduct.planning.deployments import are_units
from pgtrial.loads.data.kinds import data_of
from pgtrial.loads.data.pgbench_tables import MB_PER_SCALE
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.plan import Lengths, Plan
from pgtrial.model.study.design import Design
from pgtrial.model.study.order_entry import ORDER_ENTRY
from pgtrial.model.study.servers import Server
from pgtrial.statistics import p9
from pgtrial.statistics.describe import FEWEST_FOR_MEDIAN
from pgtrial.statistics.screening import fewest_units

_RESTORE_S_PER_SCALE = 0.03
"""The expected time, in seconds, to copy or to vacuum the data of one unit of pgbench's scale. These are 15 MB, at 500
MB/s."""
_ROWS_PER_SCALE = 55_000
"""The number of rows of sysbench's tables that take as much space as one unit of pgbench's scale."""
_SCALES_PER_WAREHOUSE = 7
"""The number of units of pgbench's scale that take as much space as one warehouse of order entry."""
_SMALLER = 5
"""The number of rows of `table_a`, the table of tasks, that take as much space as one row of sysbench's tables."""
_START_AND_STOP_S = 2.0
_COLLECT_S = 0.5


def fewest_for_a_verdict(design: Design) -> int:
    """Returns the smallest number of blocks with which every arm can get a verdict. For a study with a single arm, it
    is the smallest number that gives an interval."""
    if len(design.servers) == 1:
        return FEWEST_FOR_MEDIAN
    if are_units(design):
        return design.deployments
    return max(p9.first_look(design.claims, kept_of(design)), fewest_units(len(design.factors)))


def kept_of(design: Design) -> float:
    """Returns the part of the error of 5% (the probability of a wrong verdict) that the study's plan reserves for
    continuing the study after its planned end."""
    return 0.0 if design.verdict.final else p9.KEPT


def overhead_estimate(design: Design) -> float:
    """Returns the expected wall time, in seconds, that a block takes in addition to its loads: for copying data, for
    starting and stopping servers, and for reading counters."""
    servers, points = list(design.servers.values()), design.load_points
    collected_s = design.trials_of_block * _COLLECT_S
    if design.shares_server:
        servers = servers[:1]
    return collected_s + sum(
        _START_AND_STOP_S + _restore_estimate(design, server, point) for server in servers for point in points
    )


def _restore_estimate(design: Design, server: Server, point: LoadPoint) -> float:
    """Estimates the time in seconds to reset the data before a trial.

    It is near zero for copies that are kept, and where VACUUM finds nothing to do.
    """
    if server.reset == "none" or (server.reset == "vacuum" and point.workload == "select-only"):
        return 0.0
    if point.pack is not None:
        return _RESTORE_S_PER_SCALE * point.scale * point.pack.mb_per_scale / MB_PER_SCALE
    if design.load.kind.has_data_of_known_size:
        return _RESTORE_S_PER_SCALE * data_of(design.spec, point).mb / MB_PER_SCALE
    scale = point.scale * (_SCALES_PER_WAREHOUSE if point.workload == ORDER_ENTRY else 1)
    rows = (point.tables or 0) * (point.table_size or 0) + point.kind.rows_made // _SMALLER
    return _RESTORE_S_PER_SCALE * max(scale, rows / _ROWS_PER_SCALE)


@dataclass(frozen=True)
class TrialLengths:
    """The lengths of a study's trials, and the time that a block takes in addition to their loads. All times are in
    seconds."""

    load_s: float
    """The expected time of one trial's load."""
    warmup_s: float
    """The length of the warm-up. For loads that end by themselves, such as jobs, both this and `duration_s` are 0."""
    duration_s: float
    trials: int
    """The number of trials in a block."""
    overhead_s: float
    """The time that a block takes in addition to its loads."""
    chosen: Lengths | None = None
    """The way in which pgtrial chose the lengths; None if the study gives both."""
    preliminary_s: float = 0.0
    """The wall time of the preliminary block, as measured or, before it has run, as expected. It is part of the
    budget."""

    @property
    def block_s(self) -> float:
        """The expected wall time of a block, in seconds."""
        return self.overhead_s + self.trials * self.load_s

    @property
    def measured_share(self) -> float:
        """The share of a block's wall time in which trials are measured."""
        return self.trials * self.duration_s / self.block_s


def planned_lengths(plan: Plan) -> TrialLengths:
    """Returns the lengths of the trials that a plan has."""
    trials = len(plan.arms) * len(plan.load_points)
    load_s = plan.warmup_s + plan.duration_s
    return TrialLengths(
        load_s or plan.trial_estimate_s,
        plan.warmup_s,
        plan.duration_s,
        trials,
        plan.block_estimate_s - trials * (load_s or plan.trial_estimate_s),
        plan.lengths,
        preliminary_time(plan),
    )


def preliminary_time(plan: Plan) -> float:
    """Returns the wall time of the preliminary block in seconds, as measured or, before it has run, as expected; 0 if
    the plan has no such block."""
    lengths = plan.lengths
    if lengths is None:
        return 0.0
    return lengths.preliminary.wall_s if lengths.preliminary is not None else lengths.expected_s
