"""The study file: one question, the load, the arms and the rule of the verdict, every default written down here."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr

from pgtrial.model.errors import StudyError
from pgtrial.model.metrics import CAPACITY, METRICS, PER_CENT, RESPONSE, TIME, TPS, known_metrics
from pgtrial.model.published import known_name, published_names
from pgtrial.model.records import Record
from pgtrial.model.records.capacity import CapacityLoad
from pgtrial.model.records.job import BesideLoad, JobLoad
from pgtrial.model.records.load_point import LoadPoint
from pgtrial.model.records.replay import ReplayLoad
from pgtrial.model.records.suite import SuiteLoad
from pgtrial.model.records.tasks import TaskLoad
from pgtrial.model.study.fleet import FleetSection
from pgtrial.model.study.jobs import JOB
from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.study.own_data import weight_of
from pgtrial.model.study.packs import pack_load
from pgtrial.model.study.price import Price, price_of
from pgtrial.model.study.programs import PROGRAMS
from pgtrial.model.study.replay import REPLAY
from pgtrial.model.study.servers import Given, Server, names_server, parts_of, server_of
from pgtrial.model.study.setup import SetUp
from pgtrial.model.study.suites import SUITE, queries_of, suite_of
from pgtrial.model.study.sysbench import is_sysbench
from pgtrial.model.study.tasks import APP_TASKS
from pgtrial.model.units import Seconds, Share, as_list


class StudySection(Record):
    """The question."""

    question: str = Field("Which arm is faster?", description="The report's title.")
    name: str = Field("", description="Default: the file's name.")
    profile: str | None = Field(None, description="Written by pgtrial (`--profile`).")
    seed: int | None = Field(None, ge=0, lt=2**63, description="Of order and load; default: drawn.")
    published: Annotated[str, AfterValidator(known_name)] | None = Field(
        None,
        description="Published figures that the report sets beside this study's: " + ", ".join(published_names()) + ".",
    )


class VerdictSection(Record):
    """The rule, fixed before the first trial."""

    metrics: Annotated[list[str], BeforeValidator(as_list), AfterValidator(known_metrics)] = Field(
        [],
        description='What is [compared](method.md#metrics), `["p99", "wal per transaction"]`: the first decides. '
        "Default: `tps`, at a rate `response`.",
    )
    error: Literal["primary", "all"] = Field(
        "primary",
        description="What errs in at most 5% of studies: the primary claims together, and each other family by itself; "
        "or all claims that are printed together, which takes more blocks.",
    )
    margin: Share = Field(0.01, gt=0, lt=1, description="Smaller differences are equivalent.")
    blocks: int | None = Field(None, ge=1, description="Most blocks; default: what the budget holds.")
    budget: Seconds = Field(
        3600.0,
        gt=0,
        description="Time for all blocks. A slower study ends at the last look that comes within this and a quarter; "
        "up to the first look, before which there is no verdict, within this and three minutes if that is more.",
    )
    stop_early: bool = Field(True, description="Whether the study ends when all primary comparisons are decided.")
    drop_decided: bool = Field(
        False,
        description="Whether an arm [leaves](method.md#arms-that-leave) when its comparisons are decided; the "
        "others get its time.",
    )
    allow_busy_client: bool = Field(
        False,
        description="Whether a comparison gets a verdict although the client was the limit, or late, in more than "
        "one in eight trials.",
    )
    studies: int | None = Field(
        None,
        ge=1,
        description="How many studies share the 5% of error, this one among them. Default: 1.",
    )
    final: bool = Field(
        False,
        description="Whether the study ends for good: its looks spend the whole error of 5%, and it never "
        "[goes on](method.md#going-on) with more blocks. `gate`, `bisect` and `selftest` set it.",
    )
    one_sided: bool = Field(
        False,
        description="Whether the study asks only if an arm is worse: nine tenths of the error are on the side of "
        "worse and one tenth on that of better, and an arm is done when a loss of the margin or more is excluded. "
        "`gate` sets it, except with `--fail-on not-equivalent` and `--base-twice`.",
    )


class _Origins(dict[str, str]):
    """The user's files of scripts, by the scripts' names. Studies do not differ by them."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Origins)

    __hash__ = None


class StudySpec(Record):
    """A whole study, as read from TOML or built from a command line."""

    study: StudySection = StudySection()
    load: LoadSection = LoadSection()
    server: SetUp = SetUp()
    arms: dict[str, SetUp] = Field(min_length=1, description="The arms; the first is the baseline.")
    verdict: VerdictSection = VerdictSection()
    fleet: FleetSection | None = Field(None, description="The machines that make the load; default: this one.")
    _scripts: dict[str, str] = PrivateAttr(default_factory=dict)
    _origins: _Origins = PrivateAttr(default_factory=_Origins)

    @property
    def scripts(self) -> dict[str, str]:
        """Text of each script of the study's own by its name; kept in files of their own, not in the TOML."""
        return self._scripts

    def with_scripts(self, scripts: dict[str, str], origins: Mapping[str, str] | None = None) -> StudySpec:
        """The same study with these texts, and the files in which the user has written them, for messages."""
        copy = self.model_copy()
        copy._scripts = scripts
        copy._origins = _Origins(origins or {})
        return copy

    def origin(self, script: str) -> str:
        """The file in which the user has written a script; the script's name where that is not known."""
        return self._origins.get(script, script)

    @property
    def baseline(self) -> str:
        """Name of the first arm."""
        return next(iter(self.arms))

    @property
    def has_given(self) -> bool:
        """Whether an arm is a given server."""
        return any(isinstance(self.resolved(arm), Given) for arm in self.arms)

    def resolved(self, arm: str) -> Server:
        """The server of one arm, with what all arms share filled in."""
        return server_of(self.server, self.arms[arm])


def objection_to_metrics(spec: StudySpec) -> str | None:
    """What speaks against the declared metrics, a sentence; None: nothing."""
    load, names = spec.load, spec.verdict.metrics
    if names and load.runs_tasks:
        return f"metrics are not for the workload {APP_TASKS}, which has criteria of its own; remove it"
    if names and load.runs_suite:
        return "metrics are not for a suite, whose queries have claims of their own; remove it"
    for name in names:
        if (misfit := _misfit(load, name)) is not None:
            return f'metrics: "{name}" {misfit}'
    for name in (TPS, PER_CENT):
        if name in names and is_paced(spec):
            return f'metrics: at a rate "{name}" is the rate itself; leave it out, or leave out the rate'
    if PER_CENT in names and not prices_of(spec):
        return f'metrics: "{PER_CENT}" takes the price of every arm; write price = "0.42 USD/h" in each'
    return None


_WITH_BESIDE = "p99"
"""The metric of the load beside a job that is compared unless the study says otherwise."""

_FOR_JOBS = 'for jobs alone (workload = "job:FILE.sql"); leave it out'
_NOT_FOR_JOBS = f"not for a job; write {', '.join(name for name, metric in METRICS.items() if metric.is_for_jobs)}"


def _misfit(load: LoadSection, name: str) -> str | None:
    """Why a metric does not go with a load, the rest of a sentence; None: it does."""
    if (name == CAPACITY) != (load.capacity is not None):
        if name == CAPACITY:
            return 'takes a promise; write [load] capacity = { p99 = "20ms" }'
        return "is not for a study of capacity, which compares that alone; leave it out"
    is_of_beside = METRICS[name].kind == "percentile" and load.job.beside is not None
    if METRICS[name].is_for_jobs != load.runs_job and not is_of_beside:
        return f"is {_NOT_FOR_JOBS if load.runs_job else _FOR_JOBS}"
    if load.runs_programs and METRICS[name].follows_throughput:
        return "takes the time of each operation, and client programs report batches; leave it out"
    return None


def objection_to_prices(spec: StudySpec) -> str | None:
    """What speaks against the prices of the arms, a sentence; None: nothing."""
    prices = prices_of(spec)
    free = [arm for arm in spec.arms if arm not in prices]
    if prices and free:
        return f"[arms.{free[0]}] has no price; give every arm one, or none"
    currencies = sorted({price.currency for price in prices.values()})
    if len(currencies) > 1:
        return f"[arms] price: {' and '.join(currencies)} cannot be compared; write all prices in one currency"
    return None


def objection_to_job(spec: StudySpec) -> str | None:
    """What speaks against a job on the study's servers, a sentence; None: nothing."""
    if not spec.load.runs_job:
        return None
    for arm in spec.arms:
        server = spec.resolved(arm)
        if isinstance(server, Given):
            if spec.load.job.undo is None:
                return (
                    f"[arms.{arm}] a job changes the data, and a given server has no fresh copy of them for each "
                    'trial; set [load.job] undo to the SQL that undoes it, or to "none" if it leaves nothing behind'
                )
        elif server.reset != "copy":
            return (
                f'[arms.{arm}] reset = "{server.reset}" keeps what a job has done, and each trial is to do it anew; '
                "leave reset out"
            )
    if spec.load.job.undo is not None and not spec.has_given:
        return "[load.job] undo is for given servers, and here each trial has a fresh copy of the data; remove it"
    return None


def objection_to_fleet(spec: StudySpec) -> str | None:
    """What speaks against a fleet for the study's load, a sentence; None: nothing."""
    if spec.fleet is None:
        return None
    load = spec.load
    objections = {
        "values are drawn by one engine, so such a load has no fleet": bool(load.values),
        "a client program runs on the lab's machine": load.runs_programs,
        "one session runs the queries of a suite, so it has no fleet": load.runs_suite,
        "one engine replays all sessions, so a replay has no fleet": load.replays,
        "one session runs a job, so it has no fleet": load.runs_job,
        "one engine makes the probes of a capacity, so such a study has no fleet": load.capacity is not None,
    }
    return next((f"[fleet] {why}; remove it" for why, applies in objections.items() if applies), None)


def prices_of(spec: StudySpec) -> dict[str, Price]:
    """The prices of the arms that have one."""
    texts = {arm: spec.resolved(arm).price for arm in spec.arms}
    return {arm: price_of(text) for arm, text in texts.items() if text is not None}


def metrics_of(spec: StudySpec) -> list[str]:
    """The metrics that a study declares; prices declare transactions per cent, and a promise the capacity."""
    names = spec.verdict.metrics
    if spec.load.job.beside is not None and not names:
        return [TIME, _WITH_BESIDE]
    if spec.load.capacity is not None:
        return [CAPACITY]
    if not prices_of(spec) or PER_CENT in names or is_paced(spec) or spec.load.runs_tasks:
        return list(names)
    return [*(names or [TPS]), PER_CENT]


def primary_metric_of(spec: StudySpec) -> str | None:
    """The declared metric of the primary claims; None: it is the measure of the load."""
    names = metrics_of(spec)
    usual = TIME if spec.load.runs_job else RESPONSE if is_paced(spec) else TPS
    return names[0] if names and names[0] != usual else None


def is_paced(spec: StudySpec) -> bool:
    """Whether the number of transactions is given, so that the server's speed does not change it."""
    load = spec.load
    given = load.runs_suite or load.runs_job or (load.replays and load.replay.factor is not None)
    return bool(load.rate) or given


def load_points(spec: StudySpec) -> list[LoadPoint]:
    """The crossing of workloads, scales, clients and rates, in the order of the study file.

    Tests of sysbench are crossed with clients and rates only: their tables have one size in a study. Tasks and a replay
    are one load point, and a job is one for each scale.
    """
    load = spec.load
    if load.runs_tasks:
        return [_tasks(load)]
    if load.replays:
        return [_replay(load)]
    if load.runs_suite:
        return [_suite(load, spec.scripts)]
    if load.runs_job:
        return [_job(load, size, beside) for size in _sizes(load) for beside in _loads_beside(load)]
    if load.runs_programs:
        return [
            LoadPoint(workload=PROGRAMS, programs=True, clients=1, protocol="the driver's", **size)
            for size in _sizes(load)
        ]
    rates: list[float | None] = [*load.rate] or [None]
    promise = load.capacity
    capacity = (
        CapacityLoad(
            percentile=promise.percentile,
            limit_s=promise.limit,
            failures=promise.failures,
            at_most=promise.at_most,
        )
        if promise is not None
        else None
    )
    return [
        LoadPoint(**data, clients=clients, protocol=load.protocol, rate=rate, capacity=capacity)
        for data in _loads_and_data(spec)
        for clients, rate in itertools.product(load.clients, rates)
    ]


def scripts_of_arms(spec: StudySpec) -> dict[str, str]:
    """Returns by arm the name of its own script; empty: all arms run the same load."""
    paths = {arm: keys.workload for arm, keys in spec.arms.items() if keys.workload is not None}
    return {arm: PurePosixPath(path).name for arm, path in paths.items()}


OWN_SCRIPTS = "own scripts"
"""The workload of load points at which each arm runs its own script."""


def _loads_and_data(spec: StudySpec) -> Iterable[dict[str, Any]]:
    """Returns what the load points say of their workload and data, one after the other."""
    load, of_arms = spec.load, scripts_of_arms(spec)
    if of_arms:
        sizes = _sizes_for(spec, dict.fromkeys(of_arms.values()))
        return [{"workload": OWN_SCRIPTS, "of_arms": of_arms, **size} for size in sizes]
    return _mix(spec) if load.is_mixed else itertools.chain(*(_data(spec, name) for name in load.workload))


def _tasks(load: LoadSection) -> LoadPoint:
    asked = load.tasks
    return LoadPoint(
        workload=APP_TASKS,
        scale=1,
        clients=asked.connections,
        protocol=load.protocol,
        tasks=TaskLoad(
            pool_timeout_s=asked.pool_timeout, **asked.model_dump(exclude={"pool_timeout", "pool_lifetime"})
        ),
    )


def _replay(load: LoadSection) -> LoadPoint:
    asked, capture = load.replay, PurePosixPath(load.workload[0].removeprefix(REPLAY)).name
    if asked.files is None or asked.data is None:
        raise StudyError("the study does not say which capture and data it has; read it from its file")
    return LoadPoint(
        workload=f"{REPLAY}{capture}",
        scale=1,
        clients=asked.max_connections or 1,
        protocol="as recorded",
        replay=ReplayLoad(
            capture=capture,
            data=PurePosixPath(asked.data).name,
            **asked.files.model_dump(include={"capture_sha256", "data_sha256", "sessions", "statements"}),
            speed=asked.factor,
            sample=asked.sample,
            copies=asked.copies,
        ),
    )


def _suite(load: LoadSection, scripts: Mapping[str, str]) -> LoadPoint:
    asked, name = load.suite, PurePosixPath(load.workload[0].removeprefix(SUITE)).name
    data = suite_of(name, scripts).data
    return LoadPoint(
        workload=f"{SUITE}{name}",
        **_sizes(load)[0] if data is not None or load.data else {"scale": 1},
        clients=1,
        protocol="simple",
        suite=SuiteLoad(
            name=name,
            queries=queries_of(name, scripts),
            runs=asked.runs,
            limit_s=asked.limit_s,
            cache=asked.cache,
            data=data,
            unchecked=asked.unchecked,
        ),
    )


def _loads_beside(load: LoadSection) -> list[BesideLoad | None]:
    """The loads beside a job, or none."""
    if load.job.beside is None:
        return [None]
    script = PurePosixPath(load.job.beside).name
    return [
        BesideLoad(script=script, clients=clients, rate=rate, protocol=load.protocol)
        for clients, rate in itertools.product(load.clients, load.rate)
    ]


def _job(load: LoadSection, size: Mapping[str, Any], beside: BesideLoad | None) -> LoadPoint:
    asked, file = load.job, load.workload[0].removeprefix(JOB)
    program = shlex.split(asked.command)[0] if asked.command is not None else file
    return LoadPoint(
        workload=PurePosixPath(program).name,
        **size,
        clients=1 + (beside.clients if beside is not None else 0),
        protocol="simple",
        job=JobLoad(limit_s=asked.limit, command=asked.command, beside=beside),
    )


def _mix(spec: StudySpec) -> list[dict[str, Any]]:
    """What the load points of scripts with weights say of their data."""
    load = spec.load
    weights = {PurePosixPath(path).name: weight for path, weight in map(weight_of, load.workload)}
    name = " + ".join(script if weight is None else f"{script}={weight}" for script, weight in weights.items())
    mix = {script: 1 if weight is None else weight for script, weight in weights.items()}
    return [{"workload": name, "mix": mix, **size} for size in _sizes_for(spec, mix)]


def _sizes_for(spec: StudySpec, scripts: Iterable[str]) -> list[dict[str, Any]]:
    """As `_sizes`, for these scripts; those that name none of pgbench's tables do without, unless the scale is set.

    What setup_sql makes may name them too. On a given server, where tables are in somebody's way, it is asked more
    closely what a script names (`pgbench_names`).
    """
    load, texts = spec.load, [spec.scripts[name] for name in scripts if name in spec.scripts]
    if not texts or spec.has_given or load.scale_is_set or load.data:
        return _sizes(load)
    texts += [sql for arm in spec.arms for sql in spec.resolved(arm).setup_sql or ()]
    return _sizes(load) if any(map(_NAMES_TABLES.search, texts)) else [{"scale": 1, "without_tables": True}]


_NAMES_TABLES = re.compile(r"pgbench_|:scale\b", re.IGNORECASE)


def _sizes(load: LoadSection) -> list[dict[str, Any]]:
    """The scales of tables that pgtrial makes, or the user's own data."""
    if not load.data:
        return [{"scale": scale} for scale in load.scale]
    if names_server(load.data[0]):
        parts = parts_of(load.data[0])
        database = parts.get("dbname") or parts.get("service") or "the environment"
        return [{"scale": 1, "data": f"database {database}"}]
    return [{"scale": 1, "data": " + ".join(PurePosixPath(path).name for path in load.data)}]


def _data(spec: StudySpec, workload: str) -> list[dict[str, Any]]:
    """What load points of a workload say of their data, one after the other."""
    load = spec.load
    pack = pack_load(workload, spec.scripts, load.pack)
    if pack is not None:
        name = pack.name if pack.mix is None else f"{pack.name}/{pack.mix}"
        return [{"workload": name, "scale": scale, "pack": pack} for scale in load.scale]
    name = PurePosixPath(workload).name
    if not is_sysbench(name):
        return [{"workload": name, **size} for size in _sizes_for(spec, [name])]
    tables, size = load.sysbench.sizes(name)
    own = _sizes(load)[0] if load.data else {"scale": 1}
    return [{"workload": name, **own, "sysbench": True, "tables": tables, "table_size": size}]
