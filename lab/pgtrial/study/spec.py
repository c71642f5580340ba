"""The study file: one question, the load, the arms and the rule of the verdict, every default written down here."""

from __future__ import annotations

import difflib
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    field_validator,
    model_validator,
)

from pgtrial.study.storage import Storage
from pgtrial.study.units import Seconds, Share


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _as_setting(value: Any) -> Any:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if isinstance(value, int | float) else value


Setting = Annotated[str, BeforeValidator(_as_setting)]
"""A value of postgresql.conf; TOML booleans and numbers are accepted and kept as PostgreSQL would write them."""

Count = Annotated[int, Field(ge=1, le=1_000_000)]
"""A scale factor or a number of clients."""

Rate = Annotated[float, Field(gt=0, le=1_000_000_000)]
"""Transactions per second."""

Protocol = Literal["simple", "extended", "prepared"]


WORKLOADS = ("tpcb-like", "simple-update", "select-only")
"""The built-in workloads, named as pgbench names its scripts."""


def is_script(workload: str) -> bool:
    """Whether a workload is a script of the study's own, given by its path, and not a built-in one."""
    return "/" in workload or workload.endswith(".sql")


def _distinct(values: list[Any]) -> list[Any]:
    repeated = sorted({str(value) for value in values if values.count(value) > 1})
    if repeated:
        raise ValueError(f"lists {', '.join(repeated)} more than once; each value makes its own load points")
    return values


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StudySection(_Section):
    """What is asked."""

    question: str = Field("Which arm is faster?", description="The question, in words; the report's title.")
    name: str = Field("", description="Short name for directories; default: the file's name.")
    seed: int | None = Field(
        None, ge=0, lt=2**63, description="Seed of the order and of the load; default: drawn at planning and recorded."
    )


class LoadSection(_Section):
    """What every arm has to serve. Lists are crossed with each other into load points."""

    workload: Annotated[list[str], BeforeValidator(_as_list), AfterValidator(_distinct)] = Field(
        ["tpcb-like"],
        min_length=1,
        description="Built-in workloads: tpcb-like, simple-update, select-only; or pgbench scripts of your own: paths "
        "with a `/` or ending in `.sql`, relative to the study file. A script finds pgbench's tables at the study's "
        "scale, which it knows as `:scale`, and what setup_sql makes.",
    )
    scale: Annotated[list[Count], BeforeValidator(_as_list), AfterValidator(_distinct)] = Field(
        [10], min_length=1, description="Scale factors; one unit is 100,000 accounts, about 15 MB."
    )
    clients: Annotated[list[Count], BeforeValidator(_as_list), AfterValidator(_distinct)] = Field(
        [8], min_length=1, description="Concurrent database clients."
    )
    rate: Annotated[list[Rate], BeforeValidator(_as_list), AfterValidator(_distinct)] = Field(
        [],
        description="Transactions per second that all clients together are to start, at random moments; the verdict is "
        "then about the mean response time. Choose what every arm can serve. Default: each client starts the next "
        "transaction when the last one is done, and the verdict is about goodput.",
    )
    cpus: str | None = Field(
        None, description="CPUs that the engine may run on: `4-7`, best none of the server's; default: all."
    )
    jobs: int | None = Field(
        None, ge=1, description="Engine threads; default: one per 16 clients, at most half the CPUs."
    )
    protocol: Protocol = Field("prepared", description="Query protocol: simple, extended or prepared.")
    fillfactor: int = Field(100, ge=10, le=100, description="Fill factor of the tables, percent.")
    foreign_keys: bool = Field(False, description="Whether the tables carry foreign keys.")
    warmup: Seconds = Field(10.0, ge=0, description="Load before the measured part; measured apart.")
    duration: Seconds = Field(30.0, ge=1, description="The measured part of each trial; whole seconds.")
    max_tries: int | None = Field(
        None,
        ge=0,
        description="How often a transaction is tried when it fails by serialization or deadlock; 0: until the time is "
        "up; default: once. One that fails for good is a failure, no goodput.",
    )
    latency_limit: Seconds | None = Field(
        None, gt=0, description="With max_tries: a transaction that has taken longer is not tried again."
    )

    @field_validator("workload")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        for name in names:
            if name not in WORKLOADS and not is_script(name):
                near = difflib.get_close_matches(name, WORKLOADS, n=1, cutoff=0.4)
                hint = (
                    f"did you mean {near[0]}?"
                    if near
                    else f"the built-in ones are {', '.join(WORKLOADS)}, and a script of your own is named by its "
                    "path, with a / or ending in .sql"
                )
                raise ValueError(f"{name!r} is no built-in workload; {hint}")
        return names

    @model_validator(mode="after")
    def _limit_of_tries(self) -> LoadSection:
        if self.latency_limit is not None and self.max_tries is None:
            raise ValueError("latency_limit ends the tries of a transaction; set max_tries as well, 0 for no other end")
        if self.latency_limit is not None and self.rate:
            raise ValueError(
                "latency_limit at a rate would skip the latest transactions and flatter the response time; leave one "
                "of the two out"
            )
        return self

    @field_validator("duration")
    @classmethod
    def _whole(cls, seconds: float) -> float:
        if seconds != int(seconds):
            raise ValueError(f"{seconds:g}s is not a whole number of seconds, which pgbench's -T requires")
        return seconds


class SetUp(_Section):
    """How a server comes to be; `[server]` says what all arms share, an arm overrides key by key."""

    postgres: Setting | None = Field(
        None, description='A major version ("15" to "18") or a bin directory; default: "18", the embedded server.'
    )
    dsn: str | None = Field(
        None, description="A given server: connection string or URI without password; excludes postgres and initdb."
    )
    settings: dict[str, Setting] = Field(
        {}, description="postgresql.conf settings; an arm's are added to the server's."
    )
    initdb: list[str] | None = Field(None, description="Extra initdb options; an arm's replace the server's.")
    setup_sql: list[str] = Field(
        [],
        description="SQL run on a fresh copy before each trial's load, e.g. an index or a trigger; an arm's follows "
        "the server's. Only for embedded servers.",
    )
    storage: Storage | None = Field(
        None,
        description="Where the data is: a filesystem made for it. An arm's replaces the server's. Needs root, "
        "unless it is a directory. Only for embedded servers.",
    )
    huge_pages: Literal["off", "2MB", "1GB"] | None = Field(
        None,
        description="Pages of shared memory: huge ones are reserved for each trial, as many as the settings need; "
        "a trial that does not get them fails. Sets huge_pages and huge_page_size. Needs root, unless off.",
    )
    thp: Literal["never", "madvise", "always"] | None = Field(
        None, description="Transparent huge pages of the host during a trial. Needs root."
    )
    sysctl: dict[str, Setting] = Field(
        {}, description="Kernel parameters during a trial; an arm's are added to the server's. Needs root."
    )
    governor: str | None = Field(None, description="CPU frequency governor of all CPUs during a trial. Needs root.")
    io_scheduler: str | None = Field(
        None, description="I/O scheduler of the block device that holds the data, during a trial. Needs root."
    )
    cpus: str | None = Field(None, description="CPUs that the server may run on: `0-3,6`.")
    environment: dict[str, str] = Field(
        {}, description="Environment variables of the server; an arm's are added to the server's."
    )
    reset: Literal["copy", "vacuum", "none"] | None = Field(
        None,
        description="State before each trial: a fresh copy of the template (embedded servers' default), "
        "VACUUM of the tables after emptying the history (given servers' default), or none.",
    )


class VerdictSection(_Section):
    """The rule, fixed before the first trial."""

    margin: Share = Field(0.01, gt=0, lt=1, description="Differences smaller than this count as equivalent.")
    blocks: int | None = Field(
        None, ge=1, description="Blocks at most; default: as many as the budget holds, at the planned looks."
    )
    budget: Seconds = Field(
        3600.0,
        gt=0,
        description="Wall time for running blocks: sets their number at planning. A study that turns out slower ends "
        "before the first block that would take it a quarter beyond.",
    )
    stop_early: bool = Field(
        True, description="Whether to end at the first planned look that decides every primary claim."
    )
    allow_busy_client: bool = Field(
        False,
        description="Whether a comparison is given a verdict although the client itself was a limit, or behind its "
        "schedule, in more than one in eight trials of an arm.",
    )


class StudySpec(_Section):
    """A whole study, as read from TOML or built from a command line."""

    study: StudySection = StudySection()
    load: LoadSection = LoadSection()
    server: SetUp = SetUp()
    arms: dict[str, SetUp] = Field(min_length=2, description="The arms; the first is the baseline.")
    verdict: VerdictSection = VerdictSection()
    _scripts: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def scripts(self) -> dict[str, str]:
        """Text of each script of the study's own by its name; kept in files of their own, not in the TOML."""
        return self._scripts

    def with_scripts(self, scripts: dict[str, str]) -> StudySpec:
        """The same study with these texts."""
        copy = self.model_copy()
        copy._scripts = scripts
        return copy

    @property
    def baseline(self) -> str:
        """Name of the first arm."""
        return next(iter(self.arms))

    def resolved(self, arm: str) -> SetUp:
        """The set-up of one arm with what all arms share filled in; settings are merged, the arm's win."""
        shared, own = self.server, self.arms[arm]
        given = own.dsn is not None or (shared.dsn is not None and own.postgres is None)
        return SetUp(
            postgres=None if given else own.postgres or shared.postgres or "18",
            dsn=(own.dsn or shared.dsn) if given else None,
            settings={**shared.settings, **own.settings},
            initdb=None if given else (own.initdb if own.initdb is not None else shared.initdb) or [],
            setup_sql=[*shared.setup_sql, *own.setup_sql],
            storage=None if given else own.storage or shared.storage,
            huge_pages=None if given else own.huge_pages or shared.huge_pages,
            thp=None if given else own.thp or shared.thp,
            sysctl={} if given else {**shared.sysctl, **own.sysctl},
            governor=None if given else own.governor or shared.governor,
            io_scheduler=None if given else own.io_scheduler or shared.io_scheduler,
            cpus=None if given else own.cpus or shared.cpus,
            environment={} if given else {**shared.environment, **own.environment},
            reset=own.reset or shared.reset or ("vacuum" if given else "copy"),
        )
