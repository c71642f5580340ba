"""The keys of `[server]` and `[arms.NAME]`, which describe a server. All keys of all kinds of servers are here, and
each is optional."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from pgtrial.model.quoting import quoted
from pgtrial.model.records import Record
from pgtrial.model.resources import table
from pgtrial.model.study.build_keys import BuildKeys, checked_source
from pgtrial.model.study.keys import Facts, Key, keys_of
from pgtrial.model.study.machine_keys import MachineKeys, differing
from pgtrial.model.study.own_data import DataFiles, OwnData
from pgtrial.model.study.own_scripts import ScriptKeys
from pgtrial.model.study.price import known_price
from pgtrial.model.study.programs import ClientKeys
from pgtrial.model.study.storage import Storage, facts_of_storage
from pgtrial.model.units import Bytes, Setting, Whole, as_list

ENVIRONMENT = "env"
"""The value of `dsn` for the server that libpq finds by its environment variables alone."""


WORK = "pgtrial.work"
"""The name of a setting that holds how many rows the server counts in each transaction of a self-test. PostgreSQL does
not define the setting, so that any session may set it."""

SESSION_SETTINGS = frozenset([*table("session_settings.toml", __package__)["names"], WORK])
"""The settings of PostgreSQL that a session may set for itself."""


class ProviderMetrics(Record):
    """The monitoring of a cloud provider, `monitoring = { cloudwatch = "my-db", region = "eu-west-1" }`, from which
    pgtrial imports metrics of the server. It needs the extra `pgtrial[aws]` and AWS credentials. `pgtrial metrics
    DIRECTORY` imports metrics that were not available yet when the study ended.
    """

    cloudwatch: Annotated[list[Annotated[str, Field(min_length=1)]], BeforeValidator(as_list)] = Field(
        min_length=1,
        description="The identifier of the DB instance in AWS/RDS. If `dsn` names several servers "
        "(deployments), a list with one identifier for each.",
    )
    region: str | None = Field(None, description="The AWS region. Default: the region of the AWS environment.")


def _login(text: str) -> str:
    if not _LOGIN.fullmatch(text):
        raise ValueError(
            f"{quoted(text)} is not a login; write user@host, or a name of ~/.ssh/config (a port belongs there)"
        )
    return text


def _servers(dsn: list[str] | None) -> list[str] | None:
    if dsn is not None and not all(text.strip() for text in dsn):
        raise ValueError(
            f'a connection string is empty; write dsn = "{ENVIRONMENT}" for the server that PGHOST, PGPORT and so on '
            "name"
        )
    if dsn is not None and len(set(dsn)) < len(dsn):
        raise ValueError("the list names a server twice; name a different server for each deployment")
    return dsn


_LOGIN = re.compile(r"(?!-)([^\s/]+@)?[^\s/@]+")


_PATH = ("network.path", "network.interface", "network.mtu")
LOCALE = ("encoding", "locale_provider", "collate", "ctype", "provider_locale")
"""The names of the facts that describe the locale of a server."""
_OF_INITDB = tuple(f"*.{name}" for name in ("data_checksums", "wal_segment_size", "collation_version", *LOCALE))


_PLACE = ("storage.source", "storage.device", "storage.filesystem", "storage.mount_options")


def _facts_of_data(value: list[str] | str | None, base: list[str] | str | None) -> Facts:
    """Returns the names of the facts that differ between arms with these values of `data`: a folder on a host, or data
    that only one arm has."""
    return _PLACE if isinstance(value, str) or isinstance(base, str) else ("load.data",)


def _facts_of_settings(values: dict[str, str], base: dict[str, str]) -> Facts:
    return [f"settings.{name}" for name in differing(values, base)]


class ServerKeys(Record):
    """The keys that say where a server comes from, which settings it has, and where its data are."""

    postgres: Annotated[
        Annotated[Setting, AfterValidator(checked_source)] | None,
        Key(shows=("server.version",), follows=("settings.*", "server.*"), apart=("server build", "loaded data")),
    ] = Field(
        None,
        description='The PostgreSQL that runs: a [major version](versions.md), "10" to "19"; the path of a bin '
        'directory; or a [source](builds.md) that pgtrial builds, `git:PATH@REF`. Default: "18". In '
        'an arm "every" stands for all PostgreSQL servers that are installed, with an arm for each.',
    )
    dsn: Annotated[
        list[str] | None,
        BeforeValidator(as_list),
        AfterValidator(_servers),
        Key(shows=("server.dsn",), follows=("*",)),
    ] = Field(
        None,
        min_length=1,
        description="A [server that exists already](given-servers.md): a connection string or URI without "
        "password, `service=NAME`, or `env` for the server that PGHOST, PGPORT and so on name. A "
        "list names several servers of one product, which are called deployments.",
    )
    ssh: Annotated[
        Annotated[str, AfterValidator(_login)] | None,
        Key(shows=("server.host",), follows=("*",), apart=("host",)),
    ] = Field(
        None,
        description="The [host](ssh-hosts.md) on which pgtrial makes the server, such as `user@host`. Together with "
        "`dsn`: the host of the given server, which pgtrial [only reads](given-servers.md#its-host).",
    )
    data: Annotated[
        OwnData | None,
        BeforeValidator(as_list),
        Key(shows=_facts_of_data),
    ] = Field(
        None,
        min_length=1,
        description="In an arm: [data of its own](tutorials/own-query.md#6-two-forms-of-the-data) in place of "
        '`[load] data`, as a dump or SQL files, such as `"orders-v7.sql"`. With `ssh`: the folder on the host for '
        "all data of the server, such as `/var/db/pgtrial`.",
    )
    data_files: DataFiles | None = Field(
        None,
        description="pgtrial writes this key into the study file that it stores in the study directory: the "
        "checksum and the size of `data`.",
    )
    address: Annotated[str | None, Key(shows=_PATH)] = Field(
        None,
        min_length=1,
        description="With `ssh`: the address at which clients reach the server. Default: the address that ssh uses.",
    )
    port: Whole | None = Field(
        None, ge=1024, le=65535, description="With `ssh`: the port of the server. Default: 54321."
    )
    sudo: bool | None = Field(
        None,
        description="With `ssh`: true to run commands that need root by `sudo -n`, which asks for no password.",
    )
    storage_limit: Bytes | None = Field(
        None,
        description="For a server given by `dsn`: the size of its storage, such as `20GB`. pgtrial refuses data "
        "that do not fit. Default: pgtrial does not check the size.",
    )
    monitoring: ProviderMetrics | None = Field(
        None,
        description="For a server given by `dsn`: the [monitoring](observation.md) of its provider.",
    )
    settings: Annotated[dict[str, Setting], Key(shows=_facts_of_settings)] = Field(
        {},
        description='Settings of postgresql.conf, `{ work_mem = "64MB" }`. Settings of an arm are added to those of '
        "`[server]`.",
    )
    initdb: Annotated[
        list[str] | None,
        BeforeValidator(as_list),
        Key(shows=("server.initdb",), follows=_OF_INITDB, apart=("loaded data",)),
    ] = Field(
        None, description='Options of initdb, `["--wal-segsize=64"]`. Options of an arm replace those of `[server]`.'
    )
    setup_sql: Annotated[
        list[str], BeforeValidator(as_list), Key(shows=("server.setup_sql",), follows=("*.extensions",))
    ] = Field(
        [],
        description="SQL that runs in each trial before the load, such as CREATE INDEX. The SQL of an arm runs "
        "after that of `[server]` ([how](tutorials/own-query.md#5-with-and-without-an-index)). It runs as "
        "the role that owns the data; only `CREATE EXTENSION`, "
        "`ALTER SYSTEM`, and statements about roles and grants run as a superuser. Not with `dsn`.",
    )
    less_durable: Annotated[
        bool | None, Key(shows=("server.unlogged_tables", "settings.synchronous_commit"), absent=None)
    ] = Field(
        None,
        description="True if the arm may lose committed transactions in a crash, because it has unlogged tables or "
        "its role sets `synchronous_commit`, and you want to compare exactly that. Such a difference between arms is "
        "then a warning; otherwise it withholds the verdict.",
    )
    storage: Annotated[Storage | None, Key(shows=facts_of_storage)] = Field(
        None,
        description="The [storage of the data](#storage): a file system that pgtrial makes for each trial, which "
        "requires root, or a directory. The storage of an arm replaces that of `[server]`.",
    )
    connect: Annotated[Literal["socket", "tcp"] | None, Key(shows=_PATH, absent="socket")] = Field(
        None,
        description="For servers on this machine: how clients connect. `socket`, the default: by a Unix socket. "
        "`tcp`: by the loopback address, with SCRAM authentication.",
    )
    reset: Annotated[Literal["copy", "vacuum", "none"] | None, Key(shows=("server.reset",))] = Field(
        None,
        description="What happens to the data before each trial. `copy`, the default: the trial gets a fresh "
        "copy. `vacuum`, the default for servers given by `dsn`: the data stay, and VACUUM runs on "
        "the tables. `none`: nothing happens.",
    )
    price: Annotated[Annotated[str, AfterValidator(known_price)] | None, Key()] = Field(
        None,
        description="The price of the server, such as `0.42 USD/h`. The report then has [transactions per "
        "cent](method.md#metrics).",
    )


class SetUp(ScriptKeys, ClientKeys, MachineKeys, BuildKeys, ServerKeys):
    """The keys of a server. The keys of `[server]` apply to all arms, and an arm can override each of them. A study of
    two equal arms (an A/A study) checks the method: it should find no difference."""


KEYS = keys_of(SetUp)
"""The declaration of each key of an arm, by the key's name."""
