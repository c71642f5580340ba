"""The data of arms. Their files are found when a study is planned, checked against the load that all arms share, and
recorded by digest and size.

If one arm has data of its own, the planned study has data for every arm: an arm without its own has those of `[load]`.
The data of `[load]` are then those of the baseline.
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
    """Returns the spec in which each arm has the absolute paths of its data, named relative to `folder`, and their
    digest and size; unchanged if no arm has data of its own. Raises StudyError."""
    here = {arm for arm in spec.arms if isinstance(spec.resolved(arm), MadeHere)}
    if here and spec.server.data is not None:
        raise StudyError(
            f"{source}: {marks.key('server', 'data')} is a folder on a host that ssh reaches, and "
            f"{min(here)} is not on one; data of all arms are {marks.key('load', 'data')}"
        )
    own = {arm: spec.arms[arm].data for arm in spec.arms if arm in here and spec.arms[arm].data is not None}
    if not own:
        return spec
    _check(spec, here, own, source)
    arms = {}
    for arm, keys in spec.arms.items():
        places = [from_root(named, folder) for named in own.get(arm) or spec.load.data]
        files = files_of(places, f"{source}: {marks.at_arm(arm)}data")
        arms[arm] = keys.model_copy(update={"data": places, "data_files": files})
    first = arms[spec.baseline]
    load = spec.load.model_copy(update={"data": first.data, "data_files": first.data_files})
    return spec.model_copy(update={"arms": arms, "load": load})


def _check(spec: StudySpec, here: set[str], own: dict[str, list[str] | None], source: str) -> None:
    """Raises StudyError for data of arms that do not go with each other, with the servers, or with the load."""
    first, data = next(iter(own.items()))
    place = f"{source}: {marks.at_arm(first)}data"
    for arm in spec.arms:
        if arm not in here:
            raise StudyError(
                f"{place}: data of arms are loaded into servers that pgtrial makes on this machine, and {arm} is "
                "another server; load them there by hand, or have pgtrial make all servers here"
            )
    dumped = [arm for arm, named in own.items() if named and names_server(named[0])]
    if dumped or (spec.load.data and names_server(spec.load.data[0])):
        at = marks.at_arm(dumped[0]) + "data" if dumped else marks.key("load", "data")
        raise StudyError(
            f"{source}: {at} is a database, and where arms have data of their own these are files; dump it by pg_dump, "
            "and name the dump"
        )
    without = [arm for arm in spec.arms if arm not in own]
    if without and not spec.load.data:
        raise StudyError(
            f"{source}: the arm {without[0]} has no data, and {first} has some; give every arm its data, or write "
            f"{marks.key('load', 'data')} for the arms that have none"
        )
    if not without and spec.load.data and spec.load.data != own[spec.baseline]:
        raise StudyError(
            f"{source}: {marks.key('load', 'data')} is not loaded by any arm, for each has data of its own; remove it"
        )
    if spec.load.statistics == "same":
        raise StudyError(
            f"{place}: other data have other statistics of the planner, and {marks.key('load', 'statistics', 'same')} "
            "gives all arms those of the first; remove it"
        )
    if spec.load.replay.data is not None:
        raise StudyError(f"{place}: a replay has one dump for all arms; remove it")
    for objection in objections(spec.load.model_copy(update={"data": data})):
        raise StudyError(f"{place}: {objection}")
