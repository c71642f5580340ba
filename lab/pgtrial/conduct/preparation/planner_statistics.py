"""Gives the copies of the data their planner statistics: statistics that ANALYZE draws for each trial, the same
statistics in all arms, or those that the templates have.

ANALYZE reads a random sample. If a template keeps the statistics of one sample for a whole study, an arm with an
unusual sample can have another plan in every block, which looks like a difference between the arms. If a new sample is
drawn for each trial, such effects are part of the noise between blocks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg

from pgtrial.conduct.planning.scope import scope_of
from pgtrial.conduct.preparation.rehearsal import as_study_error
from pgtrial.conduct.progress import Listener, Preparing
from pgtrial.loads.data.data import Data
from pgtrial.loads.data.kinds import NO_TABLES, data_of
from pgtrial.loads.data.planner_statistics import draw_anew, read_statistics
from pgtrial.loads.target import Session, value
from pgtrial.model.errors import ArmError, StudyError, one_line
from pgtrial.model.records.plan import Plan
from pgtrial.model.study.design import Design
from pgtrial.model.study.servers import Made
from pgtrial.model.study.statistics import TAKES_STATISTICS, too_old
from pgtrial.model.units import format_duration
from pgtrial.servers.arm import Arm
from pgtrial.servers.copy_statistics import DrawnStatistics, SameStatistics
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.temporary import temporary_folder

_MOST_OF_A_BLOCK = 0.1
"""The largest share of a block's time that ANALYZE may take. If it would take more, the statistics are drawn only
once."""

_QUICK_MB = 200
"""The largest size of data, in megabytes, for which the time of ANALYZE is not measured, since it takes less time than
the start of a server."""


def give_statistics(study: StudyDirectory, design: Design, arms: Mapping[str, Arm], listener: Listener) -> None:
    """Sets the planner statistics that fresh copies of the data get in all arms, as the plan says. Raises StudyError
    and ArmError.

    If the plan says that ANALYZE draws them for each trial, but ANALYZE would take too much of the blocks' time, and no
    trial is stored yet, changes the plan to statistics that are drawn once.
    """
    if study.plan.statistics == "drawn" and not study.trials():
        _check_time(study, design, arms, listener)
    if study.plan.statistics == "drawn":
        for arm in arms.values():
            arm.use_statistics(DrawnStatistics())
    elif study.plan.statistics == "same" and (of_first := _of_first_arm(design, arms)) is not None:
        for arm in arms.values():
            arm.use_statistics(of_first)


def _check_time(study: StudyDirectory, design: Design, arms: Mapping[str, Arm], listener: Listener) -> None:
    plan = study.plan
    took_s = _block_s(design, plan, arms, listener)
    if took_s <= _MOST_OF_A_BLOCK * plan.block_estimate_s:
        return
    listener(
        Preparing(
            f"the planner's statistics are drawn once: ANALYZE for each trial would take {format_duration(took_s)} of "
            f"a block of {format_duration(plan.block_estimate_s)}, and may take a tenth; with longer trials they are "
            "drawn for each trial",
            stays=True,
        )
    )
    scope = scope_of(design, plan.max_blocks, statistics="once")
    study.extend(plan.model_copy(update={"statistics": "once", "scope": scope}))


def _block_s(design: Design, plan: Plan, arms: Mapping[str, Arm], listener: Listener) -> float:
    """Returns the time in seconds that ANALYZE takes for all trials of a block. Small data, for which ANALYZE is quick,
    are left out."""
    total_s = 0.0
    measured: dict[object, float] = {}
    serving = list(arms.values())[:1] if plan.shares_server else list(arms.values())
    for point in plan.load_points:
        for arm in serving:
            data, server = data_of(design.spec, point, arm.name), arm.setup
            if _is_quick(data) or not isinstance(server, Made) or server.reset != "copy":
                continue
            for loaded in arm.loaded(data):
                if loaded.identity not in measured:
                    known_s = loaded.known_analysis_s()
                    if known_s is None:
                        listener(Preparing(f"{arm.name}: timing ANALYZE of {data.label}"))
                        known_s = _timed(arm, data)
                        loaded.keep_analysis_s(known_s)
                    measured[loaded.identity] = known_s
                total_s += measured[loaded.identity]
    return total_s


def _is_quick(data: Data) -> bool:
    """True if it is known without a measurement that ANALYZE of the data takes little time.

    That is never known for rows that SQL of the user makes, since pgtrial does not know how many there are.
    """
    return data == NO_TABLES or (0 < data.mb <= _QUICK_MB and not data.has_users_rows)


@contextmanager
def _session(arm: Arm, data: Data, *, as_owner: bool) -> Iterator[Session]:
    """Provides a session on a copy of an arm's data. The copy is removed at the end of the context. Raises StudyError
    and ArmError."""
    with (
        as_study_error(arm.name),
        temporary_folder() as logs,
        arm.rehearsal(data, logs / "log") as target,
        (target.for_load if as_owner else target).connect() as session,
    ):
        try:
            yield session
        except psycopg.Error as error:
            raise ArmError(f"arms.{arm.name}: the planner's statistics: {one_line(error)}") from None


def _timed(arm: Arm, data: Data) -> float:
    with _session(arm, data, as_owner=True) as session:
        began = time.monotonic()
        draw_anew(session)
        return time.monotonic() - began


def _of_first_arm(design: Design, arms: Mapping[str, Arm]) -> SameStatistics | None:
    """Returns the planner statistics of the first arm, which all other arms get too. Returns None if all arms have
    these statistics already, because they share a template.

    Raises StudyError if the version of a server has no functions for writing statistics.
    """
    first, *others = arms.values()
    statements: dict[Data, list[str]] = {}
    for data in dict.fromkeys(data_of(design.spec, point) for point in design.load_points):
        apart = {loaded.identity: arm for arm in others for loaded in arm.loaded(data)}
        for loaded in first.loaded(data):
            apart.pop(loaded.identity, None)
        if not apart:
            continue
        for arm in (first, *apart.values()):
            with _session(arm, data, as_owner=False) as session:
                if session.info.server_version < 10_000 * TAKES_STATISTICS:
                    raise StudyError(too_old(str(value(session, "SHOW server_version"))))
                if arm is first:
                    statements[data] = read_statistics(session)
    return SameStatistics(statements) if statements else None
