"""The study file: one question, the load, the arms and the rule of the verdict, every default written down here."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    field_validator,
)

from pgtrial.model.published.figures import known_name, published_names
from pgtrial.model.study.fleet import FleetSection
from pgtrial.model.study.load_section import LoadSection, Section
from pgtrial.model.study.storage import Storage
from pgtrial.model.units import Bytes, Seconds, Share, as_list


class ProviderMetrics(BaseModel):
    """What to import beside the lab's own observation."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cloudwatch: Annotated[list[Annotated[str, Field(min_length=1)]], BeforeValidator(as_list)] = Field(
        min_length=1,
        description="The DB instance identifier under which Amazon CloudWatch has the server (AWS/RDS); of several "
        "deployments a list, in the order of `dsn`.",
    )
    region: str | None = Field(
        None, description="Its AWS region, `eu-west-1`; default: that of the AWS environment (AWS_REGION, profile)."
    )


def _as_setting(value: Any) -> Any:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if isinstance(value, int | float) else value


def _as_texts(value: Any) -> Any:
    return None if value is None else as_list(value)


def _login(text: str) -> str:
    user, at, host = text.rpartition("@")
    if (
        not host
        or (at and not user)
        or text.startswith("-")
        or any(letter.isspace() or letter == "/" for letter in text)
    ):
        raise ValueError(f"{text!r} is no login; write user@host, or a name of ~/.ssh/config (a port belongs there)")
    return text


def _parameters(values: dict[str, str]) -> dict[str, str]:
    for name in values:
        # a name becomes a path below /proc/sys, and a word of sysctl's command line
        if not _PARAMETER.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a kernel parameter; write it as sysctl does, vm.swappiness")
    return values


def _variables(values: dict[str, str]) -> dict[str, str]:
    for name in values:
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a variable; use letters, digits and _")
    return values


def _folder(text: str) -> str:
    if not text.startswith("/") or text.strip("/") == "" or not text.isprintable():
        raise ValueError(f"{text!r} is no folder; write it from / on, such as /var/db/pgtrial")
    return text


Setting = Annotated[str, BeforeValidator(_as_setting)]
"""A value of postgresql.conf; TOML booleans and numbers are accepted and kept as PostgreSQL would write them."""

_PARAMETER = re.compile(r"[A-Za-z0-9_%][A-Za-z0-9_%:@-]*([./][A-Za-z0-9_%:@-]+)+")

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

ENVIRONMENT = "env"
"""The dsn of the server that libpq finds by its environment variables alone."""


class StudySection(Section):
    """What is asked."""

    question: str = Field("Which arm is faster?", description="The question, in words; the report's title.")
    name: str = Field("", description="Short name for directories; default: the file's name.")
    profile: str | None = Field(
        None, description="The profile under which the file was read; written by pgtrial, chosen by `--profile`."
    )
    seed: int | None = Field(
        None, ge=0, lt=2**63, description="Seed of the order and of the load; default: drawn at planning and recorded."
    )
    published: Annotated[str, AfterValidator(known_name)] | None = Field(
        None,
        description="Published figures that the report sets beside this study's: " + ", ".join(published_names()) + ".",
    )


class SetUp(Section):
    """How a server comes to be; `[server]` says what all arms share, an arm overrides key by key."""

    postgres: Setting | None = Field(
        None,
        description='A major version ("15" to "18") or a bin directory; default: "18", the embedded server. In an arm '
        'also "every": one arm for each server build that this machine has, named after it, the oldest first.',
    )
    dsn: Annotated[list[str] | None, BeforeValidator(_as_texts)] = Field(
        None,
        min_length=1,
        description="A given server: connection string or URI without password, `service=NAME` of a service file, or "
        "`env` for what PGHOST, PGSERVICE and the like say; excludes postgres and initdb. A list names several "
        "[deployments](given-servers.md) of one product, as many in each arm.",
    )
    ssh: Annotated[str, AfterValidator(_login)] | None = Field(
        None,
        description="Another host that the server runs on, `user@host` or a name of ssh's configuration: pgtrial "
        "makes, starts and removes it there, with your keys, agent and known_hosts ([hosts](ssh-hosts.md)). "
        "`postgres` is then a bin directory there, or a major version looked for in the usual places. In the same "
        "table as `dsn`: the host of that given server, which is [only looked at](given-servers.md#its-host).",
    )
    data: Annotated[str, AfterValidator(_folder)] | None = Field(
        None,
        description="With ssh: the folder there, `/var/db/pgtrial`, in which everything is made, in a room of its own.",
    )
    address: str | None = Field(
        None,
        min_length=1,
        description="With ssh: where clients reach the server, if that is not where ssh goes: the address in the "
        "network that the load is to take.",
    )
    port: int | None = Field(
        None, ge=1024, le=65535, description="With ssh: the server's port, open to the clients; default: 54321."
    )
    sudo: bool | None = Field(
        None,
        description="With ssh: whether commands there are run as root, by a sudo that asks for no password. Needed "
        "for what needs root, unless the login is root. Beside `dsn`: whether root does the looking.",
    )
    storage_limit: Bytes | None = Field(
        None,
        description="Of a given server: the size of its storage, `20GB`. Data that would not fit, with its WAL, is "
        "refused before it is loaded; default: what is known of the server.",
    )
    metrics: ProviderMetrics | None = Field(
        None,
        description="Of a given server: what its provider's monitoring is asked for, "
        '`{ cloudwatch = "my-db", region = "eu-west-1" }`; [imported](observation.md) beside each trial.',
    )
    settings: dict[str, Setting] = Field(
        {}, description="postgresql.conf settings; an arm's are added to the server's."
    )
    initdb: Annotated[list[str] | None, BeforeValidator(_as_texts)] = Field(
        None, description="Extra initdb options; an arm's replace the server's."
    )
    setup_sql: Annotated[list[str], BeforeValidator(_as_texts)] = Field(
        [],
        description="SQL run on a fresh copy before each trial's load, e.g. an index or a trigger; an arm's follows "
        "the server's. Not for given servers.",
    )
    storage: Storage | None = Field(
        None,
        description="Where the data is: a filesystem made for it. An arm's replaces the server's. Needs root, "
        "unless it is a directory. Not for given servers.",
    )
    huge_pages: Literal["off", "2MB", "1GB"] | None = Field(
        None,
        description="Pages of shared memory: huge ones are reserved for each trial, as many as the settings need; "
        "a trial that does not get them fails. Sets huge_pages and huge_page_size. Needs root, unless off.",
    )
    thp: Literal["never", "madvise", "always"] | None = Field(
        None, description="Transparent huge pages of the host during a trial. Needs root."
    )
    sysctl: Annotated[dict[str, Setting], AfterValidator(_parameters)] = Field(
        {}, description="Kernel parameters during a trial; an arm's are added to the server's. Needs root."
    )
    governor: str | None = Field(None, description="CPU frequency governor of all CPUs during a trial. Needs root.")
    io_scheduler: str | None = Field(
        None, description="I/O scheduler of the block device that holds the data, during a trial. Needs root."
    )
    cpus: str | None = Field(None, description="CPUs that the server may run on: `0-3,6`.")
    connect: Literal["socket", "tcp"] | None = Field(
        None,
        description="How an embedded server, one on this machine, is reached: by its private socket (default), or "
        "`tcp`: the loopback address, with a random password for each trial and SCRAM, as a server elsewhere would be.",
    )
    environment: Annotated[dict[str, str], AfterValidator(_variables)] = Field(
        {}, description="Environment variables of the server; an arm's are added to the server's."
    )
    reset: Literal["copy", "vacuum", "none"] | None = Field(
        None,
        description="State before each trial: a fresh copy of the template (default), "
        "VACUUM of the tables after emptying the history (given servers' default), or none.",
    )

    @field_validator("dsn")
    @classmethod
    def _not_empty(cls, dsn: list[str] | None) -> list[str] | None:
        if dsn is not None and not all(each.strip() for each in dsn):
            raise ValueError(f'it is empty; write dsn = "{ENVIRONMENT}" for the server that PGHOST and the like name')
        if dsn is not None and len(set(dsn)) < len(dsn):
            raise ValueError("it names a server twice; every deployment is another server")
        return dsn

    @property
    def conninfo(self) -> str:
        """The connection string of the (first) server as libpq takes it; what it leaves open is the environment's."""
        return "" if self.dsn is None or self.dsn[0] == ENVIRONMENT else self.dsn[0]

    @property
    def deployments(self) -> list[SetUp]:
        """The set-up of each of the given servers."""
        return [self.model_copy(update={"dsn": [dsn]}) for dsn in self.dsn or []]


class VerdictSection(Section):
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
    canary: bool = Field(
        True,
        description="Whether a canary is taken between blocks, a second of work that has nothing to do with any arm; "
        "a block for which it is off is set aside and run again.",
    )


class StudySpec(Section):
    """A whole study, as read from TOML or built from a command line."""

    study: StudySection = StudySection()
    load: LoadSection = LoadSection()
    server: SetUp = SetUp()
    arms: dict[str, SetUp] = Field(min_length=2, description="The arms; the first is the baseline.")
    verdict: VerdictSection = VerdictSection()
    fleet: FleetSection | None = Field(None, description="The machines that make the load; default: this one.")
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
        given = own.dsn is not None or (shared.dsn is not None and own.postgres is None and own.ssh is None)
        # a host stands beside the dsn of its server, in the same table
        ssh = (own if own.dsn is not None else shared).ssh if given else own.ssh or shared.ssh
        makes = ssh is not None and not given
        return SetUp(
            postgres=None if given else own.postgres or shared.postgres or "18",
            dsn=(own.dsn or shared.dsn) if given else None,
            ssh=ssh,
            data=(own.data or shared.data) if makes else None,
            address=(own.address or (shared.address if own.ssh is None else None)) if makes else None,
            port=(own.port or shared.port) if makes else None,
            sudo=(own.sudo if own.sudo is not None else shared.sudo) if ssh else None,
            storage_limit=(own.storage_limit or shared.storage_limit) if given else None,
            metrics=(own.metrics or shared.metrics) if given else None,
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
            connect=None if given else own.connect or shared.connect,
            environment={} if given else {**shared.environment, **own.environment},
            reset=own.reset or shared.reset or ("vacuum" if given else "copy"),
        )
