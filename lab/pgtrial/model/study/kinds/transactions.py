"""The load of a study that consists of transactions: pgbench's scripts, sysbench's tests, order entry or packs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, ClassVar

from pgtrial.model.records.capacity import CapacityLoad
from pgtrial.model.records.kind import PointKind
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.transactions import Transactions as OfAPoint
from pgtrial.model.study.jobs import file_of
from pgtrial.model.study.kinds.kind import Asked, LoadKind, sizes
from pgtrial.model.study.load_keys import LoadKeys
from pgtrial.model.study.own_data import weight_of
from pgtrial.model.study.packs import pack_load
from pgtrial.model.study.setup import SetUp
from pgtrial.model.study.sysbench import is_sysbench
from pgtrial.model.study.workload_names import is_script

OWN_SCRIPTS = "own scripts"
"""The name that load points have in place of the workload if each arm runs a script of its own."""


class Transactions(LoadKind):
    """Transactions for a given time. The study has a load point for each combination of workload, scale, number of
    clients and rate."""

    stored: ClassVar[type[PointKind]] = OfAPoint

    def points(self, study: Asked) -> list[LoadPoint]:
        """Returns a load point for each combination of the values in all lists, in the order of the study file.

        Tests of sysbench are combined with clients and rates only, because their tables have a single size in a study.
        """
        load = study.load
        rates: list[float | None] = [*load.rate] or [None]
        promise = self.promise(load)
        return [
            LoadPoint(**data, clients=clients, protocol=load.protocol, rate=rate, capacity=promise)
            for data in _loads_and_data(study)
            for clients, rate in itertools.product(load.clients, rates)
        ]

    def promise(self, load: LoadKeys) -> CapacityLoad | None:
        """Returns the promise, which is a limit for the response time and for failures that the highest rate has to
        keep; None if the study does not search for such a rate."""
        return None

    def may_do_without_tables(self, study: Asked) -> bool:
        return any(map(is_script, study.load.workload))


def scripts_of_arms(arms: Mapping[str, SetUp]) -> dict[str, str]:
    """Returns the file name of the script, or of the job, that each arm has for itself, by arm; empty if all arms run
    the same load."""
    paths = {arm: file_of(keys.workload) for arm, keys in arms.items() if keys.workload is not None}
    return {arm: PurePosixPath(path).name for arm, path in paths.items()}


def _loads_and_data(study: Asked) -> Iterable[dict[str, Any]]:
    """Returns the fields of load points that describe workload and data, one dictionary for each combination of the
    two."""
    load, of_arms = study.load, scripts_of_arms(study.arms)
    if of_arms:
        of_data = _sizes_for(study, dict.fromkeys(of_arms.values()))
        return [{"workload": OWN_SCRIPTS, "of_arms": of_arms, **size} for size in of_data]
    return _mix(study) if load.is_mixed else itertools.chain(*(_data(study, name) for name in load.workload))


def _mix(study: Asked) -> list[dict[str, Any]]:
    """Returns the fields of load points that describe workload and data, for a workload that consists of scripts with
    weights."""
    weights = {PurePosixPath(path).name: weight for path, weight in map(weight_of, study.load.workload)}
    name = " + ".join(script if weight is None else f"{script}={weight}" for script, weight in weights.items())
    mix = {script: 1 if weight is None else weight for script, weight in weights.items()}
    return [{"workload": name, "mix": mix, **size} for size in _sizes_for(study, mix)]


def _sizes_for(study: Asked, scripts: Iterable[str]) -> list[dict[str, Any]]:
    """Returns the fields of load points that describe their data, for a workload that consists of these scripts. If
    neither the scripts nor setup_sql name pgbench's tables, and the study does not set the scale, the load points have
    no tables.

    If the server of an arm is given (somebody else runs it), the result is always that of `sizes`. On such a server
    pgtrial makes no tables that are not needed, so `pgbench_names` later checks more closely which tables a script
    names.
    """
    load, texts = study.load, [study.scripts[name] for name in scripts if name in study.scripts]
    if not texts or study.has_given or load.scale_is_set or load.data:
        return sizes(load)
    texts += [sql for arm in study.arms for sql in study.resolved(arm).setup_sql or ()]
    return sizes(load) if any(map(_NAMES_TABLES.search, texts)) else [{"scale": 1, "without_tables": True}]


_NAMES_TABLES = re.compile(r"pgbench_|:scale\b", re.IGNORECASE)


def _data(study: Asked, workload: str) -> list[dict[str, Any]]:
    """Returns the fields of load points that describe workload and data, for one workload of the study."""
    load = study.load
    pack = pack_load(workload, study.scripts, load.pack)
    if pack is not None:
        name = pack.name if pack.mix is None else f"{pack.name}/{pack.mix}"
        return [{"workload": name, "scale": scale, "pack": pack} for scale in load.scale]
    name = PurePosixPath(workload).name
    if not is_sysbench(name):
        return [{"workload": name, **size} for size in _sizes_for(study, [name])]
    tables, size = load.sysbench.sizes(name)
    own = sizes(load)[0] if load.data else {"scale": 1}
    return [{"workload": name, **own, "sysbench": True, "tables": tables, "table_size": size}]
