"""Handles arms that have a script or query of their own. When a study is planned, the scripts are read, checked against
the load that all arms share, and copied into the study.

If one arm has a script or a query, the planned study has one for every arm: an arm without a script of its own runs the
script of `[load]`. In the planned study, the workload of `[load]` is the script of the baseline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.study.jobs import JOB, file_of, is_job
from pgtrial.model.study.load_objections import objections
from pgtrial.model.study.own_data import QUERY_OF_ARM
from pgtrial.model.study.spec import StudySpec, have_own_setup
from pgtrial.model.study.suites import is_suite
from pgtrial.model.units import slug

FOLDER = "scripts"
"""The folder of a study directory that contains the scripts. study.toml names them by paths relative to itself, such as
`scripts/orders.sql`. A pack is a folder in it, and is named together with its mix (a set of its scripts with weights),
such as `scripts/kv/A`."""

Read = Callable[[str], str]
"""A function that returns the text of the script at a path. It raises StudyError if the script cannot be read."""


def has_arm_scripts(spec: StudySpec) -> bool:
    """True if an arm has a script or a query of its own."""
    return any(keys.workload is not None or keys.query is not None for keys in spec.arms.values())


def with_job_workload(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the keys of a study. If each arm has a job (statements or a program that are run once and timed) of its
    own and the study names no workload, the job of the baseline is added as the workload of `[load]`, so that `[load]`
    may have the keys of a job."""
    load, arms = data.get("load", {}), data.get("arms", {})
    tables = list(arms.values()) if isinstance(arms, Mapping) else []
    jobs = [str(keys.get("workload", "")) for keys in tables if isinstance(keys, Mapping)]
    if len(jobs) != len(tables) or not jobs or not all(map(is_job, jobs)):
        return data
    if not isinstance(load, Mapping) or {"workload", "query"} & load.keys():
        return data
    return {**data, "load": {**load, "workload": [jobs[0]]}}


def check_arm_scripts(spec: StudySpec, source: str) -> None:
    """Raises StudyError if the scripts of some arms contradict those of other arms, or contradict the load that all
    arms share."""
    if spec.server.workload is not None or spec.server.query is not None:
        key = "workload" if spec.server.workload is not None else "query"
        raise StudyError(
            f"{source}: {marks.key('server', key)} would be the same for all arms; write {marks.key('load', key)} "
            "instead, or write it in each arm"
        )
    _check_values(spec, source)
    with_own = {arm: "query" if keys.query is not None else "workload" for arm, keys in spec.arms.items() if _own(keys)}
    if not with_own:
        differ = have_own_setup(spec) or spec.has_arm_data or any(keys.values for keys in spec.arms.values())
        if spec.load.answers != "same" and not differ:
            raise StudyError(
                f"{source}: {marks.key('load', 'answers')} is for arms with scripts, queries, setup_sql, data or "
                "values of their own, but no arm has any of these; remove it"
            )
        return
    for arm in with_own:
        if spec.arms[arm].query is not None and spec.arms[arm].workload is not None:
            raise StudyError(f"{source}: {marks.arm(arm)} has both query and workload; remove one of the two")
    first, key = next(iter(with_own.items()))
    jobs = [arm for arm in with_own if is_job(spec.arms[arm].workload or "")]
    if jobs:
        _check_jobs(spec, jobs, list(with_own), source)
    is_set = spec.load.query is not None or "workload" in spec.load.model_fields_set
    key_of_load = "query" if spec.load.query is not None else "workload"
    if not jobs and is_set and key_of_load == "workload" and not _is_one_script(spec.load.workload, of_jobs=False):
        shared = spec.load.workload if len(spec.load.workload) > 1 else spec.load.workload[0]
        raise StudyError(
            f"{source}: {marks.at_arm(first)}{key}: arms cannot have scripts of their own together with "
            f"{marks.key('load', 'workload', shared)}; remove the latter, and give every arm a script or a query"
        )
    without = [arm for arm in spec.arms if arm not in with_own]
    if without and not is_set:
        raise StudyError(
            f"{source}: the arm {without[0]} has no query and no workload, but {first} has one; give every arm a query "
            f"or a workload, or write {marks.key('load', 'query')}, or {marks.key('load', 'workload')}, for the arms "
            "that have none"
        )
    if not without and is_set and spec.load.workload != [spec.arms[spec.baseline].workload]:
        raise StudyError(
            f"{source}: {marks.key('load', key_of_load)} is not run by any arm, because each has a script or a query "
            "of its own; remove it"
        )


def _check_values(spec: StudySpec, source: str) -> None:
    """Raises StudyError if the key `values` of an arm (columns from which variables of scripts take values) does not
    fit the load, or is in `[server]`, where it would be the same for all arms."""
    if spec.server.values is not None:
        raise StudyError(
            f"{source}: {marks.key('server', 'values')} would be the same for all arms; write "
            f"{marks.key('load', 'values')} instead, or values in each arm"
        )
    for arm, keys in spec.arms.items():
        for objection in objections(spec.load.model_copy(update={"values": keys.values})) if keys.values else ():
            raise StudyError(f"{source}: {marks.at_arm(arm)}values: {objection}")


def _check_jobs(spec: StudySpec, jobs: Sequence[str], with_own: Sequence[str], source: str) -> None:
    """Raises StudyError if some arms have jobs, and other arms or the load that all arms share have none.

    `with_own` are all arms with a job, a script or a query of their own.
    """
    if others := [arm for arm in with_own if arm not in jobs]:
        raise StudyError(
            f"{source}: {marks.at_arm(jobs[0])}workload is a job, which runs once in a trial, but {others[0]} has a "
            "script or a query, which is repeated; give all arms a job, or none"
        )
    key = "query" if spec.load.query is not None else "workload"
    is_set = key == "query" or "workload" in spec.load.model_fields_set
    if is_set and (key == "query" or not _is_one_script(spec.load.workload, of_jobs=True)):
        raise StudyError(
            f"{source}: {marks.at_arm(jobs[0])}workload is a job, but {marks.key('load', key)} is not a job; remove "
            "the latter, and give every arm a job"
        )


def _own(keys: object) -> bool:
    return getattr(keys, "workload", None) is not None or getattr(keys, "query", None) is not None


def _is_one_script(workload: list[str], *, of_jobs: bool) -> bool:
    """True if a workload consists of a single script; with `of_jobs`, if it consists of the SQL file of a job."""
    name = workload[0]
    return len(workload) == 1 and name.endswith(".sql") and not is_suite(name) and is_job(name) == of_jobs


def with_arm_scripts(spec: StudySpec, texts: dict[str, str], origins: dict[str, str], read: Read) -> StudySpec:
    """Returns the spec in which each arm names its script by the path of the copy in the study directory. Adds the
    texts of the scripts to `texts`, and the paths that the user wrote to `origins`.

    `texts` must already contain the script of `[load]`, which is removed if every arm has a script of its own. Raises
    StudyError if a script cannot be read.
    """
    common, before = spec.load.workload[0], dict(texts)
    runs_common = any(not _own(keys) for keys in spec.arms.values())
    if not runs_common:
        texts.clear()
        origins.clear()
    arms = {}
    for arm, keys in spec.arms.items():
        if not _own(keys):
            arms[arm] = keys.model_copy(update={"workload": common})
            continue
        if keys.query is not None:
            text, name, origin = as_script(keys.query), f"{slug(arm)}{QUERY_OF_ARM}", f"the query of {arm}"
        else:
            path = keys.workload or ""
            # the script of the baseline is also the script of [load], whose text was read before
            file = file_of(path)
            text = before[PurePosixPath(file).name] if path == common and before else read(file)
            name, origin = PurePosixPath(file_of(path)).name, file_of(path)
        name = _free(name, arm, text, texts)
        texts[name], origins[name] = text, origin
        prefix = JOB if is_job(keys.workload or "") else ""
        arms[arm] = keys.model_copy(update={"workload": f"{prefix}{FOLDER}/{name}", "query": None})
    load = spec.load.model_copy(update={"workload": [next(iter(arms.values())).workload], "query": None})
    return spec.model_copy(update={"arms": arms, "load": load})


def as_script(query: str) -> str:
    """Returns the text of a pgbench script that consists of this query."""
    query = query.strip()
    return f"{query}\n" if query.endswith(";") else f"{query};\n"


def _free(name: str, arm: str, text: str, texts: Mapping[str, str]) -> str:
    """Returns the name under which the script of an arm is copied into the study: `name`, or a variant of it that no
    other text has, since scripts in different folders may have the same name."""
    names = [name, f"{slug(arm)}-{name}", *(f"{number}-{slug(arm)}-{name}" for number in range(2, len(texts) + 3))]
    return next(one for one in names if texts.get(one, text) == text)
