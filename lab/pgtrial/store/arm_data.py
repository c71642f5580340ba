"""Handles arms that have data of their own (the key `data` of an arm). When a study is planned, the files are found,
checked against the load that all arms share, and recorded by digest and size.

If one arm has data of its own, the planned study names data for every arm: an arm without its own data gets those of
`[load]`. In the planned study, the data of `[load]` are those of the baseline.
"""

from __future__ import annotations

from pathlib import Path

from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.study.connection_strings import names_server
from pgtrial.model.study.load_objections import objections
from pgtrial.model.study.servers import MadeHere
from pgtrial.model.study.spec import StudySpec
from pgtrial.store.dumps import from_root
from pgtrial.store.own_data import files_of


def with_arm_data(spec: StudySpec, folder: Path, source: str) -> StudySpec:
    """Returns the spec in which each arm has the absolute paths of its data, with their digest and size. In the study
    file, the paths are relative to `folder`. The spec is unchanged if no arm has data of its own. Raises StudyError if
    a file is missing, or if the data of the arms contradict each other."""
    here = {arm for arm in spec.arms if isinstance(spec.resolved(arm), MadeHere)}
    if here and spec.server.data is not None:
        raise StudyError(
            f"{source}: {marks.key('server', 'data')} is a folder on a host that pgtrial reaches by ssh, and "
            f"{min(here)} is not on such a host; data for all arms are named by {marks.key('load', 'data')}"
        )
    own = {arm: spec.arms[arm].data for arm in spec.arms if arm in here and spec.arms[arm].data is not None}
    if not own:
        return spec
    _check(spec, here, own, source)
    arms = {}
    for arm, keys in spec.arms.items():
        paths = [from_root(named, folder) for named in own.get(arm) or spec.load.data]
        files = files_of(paths, f"{source}: {marks.at_arm(arm)}data")
        arms[arm] = keys.model_copy(update={"data": paths, "data_files": files})
    first = arms[spec.baseline]
    load = spec.load.model_copy(update={"data": first.data, "data_files": first.data_files})
    return spec.model_copy(update={"arms": arms, "load": load})


def _check(spec: StudySpec, here: set[str], own: dict[str, list[str] | None], source: str) -> None:
    """Raises StudyError if the data of the arms contradict each other, the servers or the load that all arms share.
    `here` has the names of the arms whose servers pgtrial starts on this machine, and `own` has the data of the arms
    that have data of their own."""
    first, data = next(iter(own.items()))
    key = f"{source}: {marks.at_arm(first)}data"
    for arm in spec.arms:
        if arm not in here:
            raise StudyError(
                f"{key}: pgtrial loads data of arms only into servers that it starts on this machine, and {arm} is "
                "another server; load the data there yourself, or let pgtrial start all servers here"
            )
    dumped = [arm for arm, named in own.items() if named and names_server(named[0])]
    if dumped or (spec.load.data and names_server(spec.load.data[0])):
        at = marks.at_arm(dumped[0]) + "data" if dumped else marks.key("load", "data")
        raise StudyError(
            f"{source}: {at} is a database, and arms can only have data in files; dump the database with pg_dump, and "
            "name the dump"
        )
    without = [arm for arm in spec.arms if arm not in own]
    if without and not spec.load.data:
        raise StudyError(
            f"{source}: the arm {without[0]} has no data, but {first} has data of its own; give every arm its data, or "
            f"write {marks.key('load', 'data')} for the arms that have none"
        )
    if not without and spec.load.data and spec.load.data != own[spec.baseline]:
        raise StudyError(
            f"{source}: {marks.key('load', 'data')} is not loaded by any arm, because each has data of its own; remove "
            "it"
        )
    if spec.load.statistics == "same":
        raise StudyError(
            f"{key}: different data have different planner statistics, but {marks.key('load', 'statistics', 'same')} "
            "gives all arms the statistics of the first arm; remove this key"
        )
    if spec.load.replay.data is not None:
        raise StudyError(f"{key}: a replay uses one dump for all arms; remove the data of the arm")
    for objection in objections(spec.load.model_copy(update={"data": data})):
        raise StudyError(f"{key}: {objection}")
