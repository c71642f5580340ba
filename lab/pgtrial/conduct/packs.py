"""Runs those files of a pack (a workload in a folder of SQL files) that the lab itself executes before, during and
after a load: check.sql, hold.sql and measure.sql. Also tries out all files of a pack on a small server (`pgtrial pack
check`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from pgtrial.loads.command_lines.pgbench import pack_options
from pgtrial.loads.data.kinds import data_of
from pgtrial.loads.data.pack_tables import sql_files
from pgtrial.loads.load_makers import ENGINE_HERE, DataOrder
from pgtrial.loads.process import engine_path
from pgtrial.loads.sql_files import SqlFiles
from pgtrial.loads.target import Target, value
from pgtrial.model.errors import ArmError, StudyError, TrialError
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.pack import PackLoad
from pgtrial.model.study.design import Design
from pgtrial.model.study.packs import CHECK, HOLD, MEASURE
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.units import plural
from pgtrial.servers.cluster import Cluster, create_cluster, loading_settings
from pgtrial.servers.installations import resolve
from pgtrial.servers.workspace import Workspace
from pgtrial.store.study_file import build_study
from pgtrial.store.temporary import temporary_folder

_TRANSACTIONS = 20
"""The number of transactions of each script that each client runs when a pack is tried out."""
_CLIENTS = 2

_REASONS = ("ERROR: ", " aborted in command ")
"""The words by which the lab finds the line with the reason in the engine's output. The last line of that output says
only that the run was aborted."""

Report = Callable[[str], None]


def study_of(workloads: list[str], scale: int | None) -> StudySpec:
    """Returns a study with these packs as its load, which `try_out` needs. Raises StudyError if the files of a pack
    have an error."""
    load: dict[str, Any] = {"workload": workloads, "clients": _CLIENTS}
    load |= {"scale": scale} if scale is not None else {}
    return build_study({"load": load, "arms": {"server": {}, "same": {}}}, "pgtrial pack check")


def try_out(spec: StudySpec, postgres: str, report: Report) -> None:
    """Does everything with the packs of a study that a run of the study would do, but with only a few transactions of
    each script. `postgres` names the server, and `report` reports each step.

    Raises StudyError for the first step that fails.
    """
    engine_path()
    points = Design(spec).load_points
    with Workspace() as workspace, temporary_folder() as logs:
        server = workspace.reachable(resolve(postgres))
        data = data_of(spec, points[0])
        directory = workspace.directory("pack-check")
        create_cluster(workspace, server, directory, [])
        cluster = Cluster(workspace, server, directory, workspace.socket_directory(), loading_settings(data))
        try:
            with cluster.running(logs / "log", immediate=True):
                target = cluster.served
                report(f"PostgreSQL {server.version}, {data.label}")
                with target.connect() as session:
                    if (objection := data.objection(session)) is not None:
                        raise StudyError(objection)
                data.make(target, lambda line: None)
                for point in points:
                    _try_mix(spec, point, target, report)
        except (ArmError, TrialError) as error:
            raise StudyError(str(error)) from None
        finally:
            workspace.machine.remove_tree(directory)


def _try_mix(spec: StudySpec, point: LoadPoint, target: Target, report: Report) -> None:
    files, load = sql_files(spec, point), point.pack
    if files is None or load is None:
        raise RuntimeError(f"{point.workload} is no pack")
    check(files, target, "before the load")
    with temporary_folder() as folder:
        for name, text in files.files.items():
            (folder / name).write_bytes(text.encode())
        if load.hold is not None:
            with target.connect_as_load() as session:
                files.run(session, HOLD)
            report(f"{HOLD}: runs")
        for script in load.scripts:
            _run_script(load, script, folder, point, target)
            report(f"{point.workload}: {script}: {plural(_CLIENTS * _TRANSACTIONS, 'transaction')}")
    check(files, target, "after the load")
    value = measure(files, target)
    if value is not None and load.quality is not None:
        report(f"{point.workload}: {load.quality.text(value)}")


def _run_script(load: PackLoad, script: str, folder: Path, point: LoadPoint, target: Target) -> None:
    """Runs a few transactions of a single script. Raises StudyError with the engine's message."""
    alone = load.model_copy(update={"scripts": {script: 1}})
    options = [*pack_options(alone, folder, point.whole_scale), "-M", point.protocol]
    size = ["-c", str(_CLIENTS), "-t", str(_TRANSACTIONS), "--random-seed", "1"]
    order = DataOrder(
        f"{script} of the pack {load.name}",
        ["pgbench", "-n", "--require-values", *options, *size],
        target.environment(),
    )
    lines: list[str] = []
    try:
        ENGINE_HERE.make(order, lines.append)
    except ArmError as error:
        reason = next((line for line in lines if any(words in line for words in _REASONS)), None)
        words = str(error) if reason is None else f"{order.what} failed: {' '.join(reason.split())}"
        raise StudyError(words.replace("pgbench: error: ", "").replace(f"{folder}/", "")) from None


_SHOWN = 3
"""The number of rows of check.sql that a message quotes."""


def check(files: SqlFiles, target: Target, when: str) -> None:
    """Runs check.sql, if the pack has this file.

    Each row that check.sql returns is a failure. Raises TrialError with these rows. `when` says when the check ran,
    such as `before the load`, for the message.
    """
    if rows := _rows(files, CHECK, target):
        first_rows = "; ".join(" ".join(str(column) for column in row) for row in rows[:_SHOWN])
        more = f"; and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
        raise TrialError(f"{CHECK} of the pack {files.pack} failed {when}: {first_rows}{more}")


def measure(files: SqlFiles, target: Target) -> float | None:
    """Runs measure.sql in a session with the arm's settings, and returns its number; None if the pack does not have
    this file.

    Raises StudyError if measure.sql returns anything else than one number.
    """
    rows = _rows(files, MEASURE, target)
    if rows is None:
        return None
    number = rows[0][0] if len(rows) == 1 and len(rows[0]) == 1 else None
    if isinstance(number, int | float | Decimal) and math.isfinite(number):
        return float(number)
    raise StudyError(
        f"the pack {files.pack}: {MEASURE} has to return one row with one number, but it returns "
        f"{_rows_in_words(rows)}; correct its last SELECT"
    )


def _rows(files: SqlFiles, file: str, target: Target) -> list[tuple[object, ...]] | None:
    """Runs a file of the pack and returns its rows; None if the pack does not have this file."""
    if file not in files:
        return None
    with target.connect_as_load() as session:
        return files.rows(session, file)


def _rows_in_words(rows: list[tuple[object, ...]]) -> str:
    if len(rows) != 1:
        return plural(len(rows), "row")
    return ", ".join("NULL" if column is None else str(column) for column in rows[0])


@contextmanager
def held(files: SqlFiles | None, setting: str | None, target: Target) -> Iterator[None]:
    """Runs hold.sql of a pack in a session that stays open within the context, but only if the arm has switched on the
    setting `setting`, which the pack names for this purpose. Otherwise does nothing."""
    with ExitStack() as stack:
        if files is not None and setting is not None:
            # the session is closed without a COMMIT, which would raise an error if the server was lost
            session = stack.enter_context(closing(target.connect_as_load()))
            query = "SELECT pg_catalog.current_setting(%s::pg_catalog.text, true)"
            if str(value(session, query, setting) or "off").lower() in _ON:
                files.run(session, HOLD)
        yield


_ON = ("on", "true", "yes", "1")
