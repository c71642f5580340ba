"""A server as a study file describes it, in `[server]` or `[arms.NAME]`: the keys of all kinds, each optional."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from pgtrial.model.records import Record
from pgtrial.model.resources import table
from pgtrial.model.study.build_keys import BuildKeys, checked_source
from pgtrial.model.study.keys import Facts, Key, keys_of
from pgtrial.model.study.machine_keys import MachineKeys, differing
from pgtrial.model.study.own_scripts import ScriptKeys
from pgtrial.model.study.price import known_price
from pgtrial.model.study.programs import ClientKeys
from pgtrial.model.study.storage import Storage, facts_of_storage
from pgtrial.model.units import Bytes, Setting, as_list

ENVIRONMENT = "env"
"""The dsn of the server that libpq finds by its environment variables alone."""


WORK = "pgtrial.work"
"""The name of a setting that holds how many rows the server counts in each transaction of a self-test. No server
defines it, so that any session may set it."""

SESSION_SETTINGS = frozenset([*table("session_settings.toml", __package__)["names"], WORK])
"""The settings of PostgreSQL that a session may set for itself."""


class ProviderMetrics(Record):
    """The provider's monitoring, `monitoring = { cloudwatch = "my-db", region = "eu-west-1" }`. Needs the extra
    `pgtrial[aws]` and AWS credentials; `pgtrial metrics DIRECTORY` imports metrics later.
    """

    cloudwatch: Annotated[list[Annotated[str, Field(min_length=1)]], BeforeValidator(as_list)] = Field(
        min_length=1,
        description="DB instance identifier (AWS/RDS); a list for several deployments.",
    )
    region: str | None = Field(None, description="AWS region; default: the AWS environment's.")


def _login(text: str) -> str:
    if not _LOGIN.fullmatch(text):
        raise ValueError(f"{text!r} is no login; write user@host, or a name of ~/.ssh/config (a port belongs there)")
    return text


def _servers(dsn: list[str] | None) -> list[str] | None:
    if dsn is not None and not all(text.strip() for text in dsn):
        raise ValueError(f'it is empty; write dsn = "{ENVIRONMENT}" for the server that PGHOST and the like name')
    if dsn is not None and len(set(dsn)) < len(dsn):
        raise ValueError("it names a server twice; every deployment is another server")
    return dsn


def _folder(text: str) -> str:
    if not text.startswith("/") or text.strip("/") == "" or not text.isprintable():
        raise ValueError(f"{text!r} is no folder; write it from / on, such as /var/db/pgtrial")
    return text


_LOGIN = re.compile(r"(?!-)([^\s/]+@)?[^\s/@]+")


_PATH = ("network.path", "network.interface", "network.mtu")
LOCALE = ("encoding", "locale_provider", "collate", "ctype", "provider_locale")
"""The facts of a server that say its locale."""
_OF_INITDB = tuple(f"*.{name}" for name in ("data_checksums", "wal_segment_size", "collation_version", *LOCALE))


def _facts_of_settings(values: dict[str, str], base: dict[str, str]) -> Facts:
    return [f"settings.{name}" for name in differing(values, base)]


class ServerKeys(Record):
    """The keys that say where a server comes from, what it is, and what its data are."""

    postgres: Annotated[
        Annotated[Setting, AfterValidator(checked_source)] | None,
        Key(shows=("server.version",), follows=("settings.*", "server.*"), apart=("server build", "loaded data")),
    ] = Field(
        None,
        description='A [major version](versions.md), "10" to "19", a bin directory, or a [source](builds.md), '
        '`git:PATH@REF`; default: "18". In an arm also "every": one arm for each installed build.',
    )
    dsn: Annotated[
        list[str] | None,
        BeforeValidator(as_list),
        AfterValidator(_servers),
        Key(shows=("server.dsn",), follows=("*",)),
    ] = Field(
        None,
        min_length=1,
        description="A [given server](given-servers.md): connection string or URI without password, `service=NAME`, "
        "or `env`. A list: several deployments of one product.",
    )
    ssh: Annotated[
        Annotated[str, AfterValidator(_login)] | None,
        Key(shows=("server.host",), follows=("*",), apart=("host",)),
    ] = Field(
        None,
        description="[Host](ssh-hosts.md) on which pgtrial makes the server, `user@host`. Beside `dsn`: the given "
        "server's host, [only read](given-servers.md#its-host).",
    )
    data: Annotated[
        Annotated[str, AfterValidator(_folder)] | None,
        Key(shows=("storage.source", "storage.device", "storage.filesystem", "storage.mount_options")),
    ] = Field(
        None,
        description="With ssh: the folder there, `/var/db/pgtrial`.",
    )
    address: Annotated[str | None, Key(shows=_PATH)] = Field(
        None,
        min_length=1,
        description="With ssh: where clients reach the server, if elsewhere.",
    )
    port: int | None = Field(None, ge=1024, le=65535, description="With ssh: the server's port; default: 54321.")
    sudo: bool | None = Field(
        None,
        description="With ssh: root by sudo without a password, where needed.",
    )
    storage_limit: Bytes | None = Field(
        None,
        description="Given server: size of its storage, `20GB`; larger data is refused. Default: unknown.",
    )
    monitoring: ProviderMetrics | None = Field(
        None,
        description="Given server: its provider's [monitoring](observation.md).",
    )
    settings: Annotated[dict[str, Setting], Key(shows=_facts_of_settings)] = Field(
        {}, description="postgresql.conf settings; added to the server's."
    )
    initdb: Annotated[
        list[str] | None,
        BeforeValidator(as_list),
        Key(shows=("server.initdb",), follows=_OF_INITDB, apart=("loaded data",)),
    ] = Field(None, description="Options of initdb; an arm's replace the server's.")
    setup_sql: Annotated[
        list[str], BeforeValidator(as_list), Key(shows=("server.setup_sql",), follows=("*.extensions",))
    ] = Field(
        [],
        description="SQL before each trial's load, such as an index; an arm's follows the server's. Not with `dsn`. It "
        "runs as the role that owns the data; a superuser runs `CREATE EXTENSION`, `ALTER SYSTEM`, roles and grants.",
    )
    less_durable: Annotated[
        bool | None, Key(shows=("server.unlogged_tables", "settings.synchronous_commit"), absent=None)
    ] = Field(
        None,
        description="The arm may lose acknowledged transactions by unlogged tables, or by synchronous_commit of its "
        "role, and that is what is compared: a warning in place of no verdict.",
    )
    storage: Annotated[Storage | None, Key(shows=facts_of_storage)] = Field(
        None,
        description="A file system for the data (root), or a directory; an arm's replaces the server's.",
    )
    connect: Annotated[Literal["socket", "tcp"] | None, Key(shows=_PATH, absent="socket")] = Field(
        None,
        description="Local servers: `socket` (default), or `tcp` with SCRAM on the loopback address.",
    )
    reset: Annotated[Literal["copy", "vacuum", "none"] | None, Key(shows=("server.reset",))] = Field(
        None,
        description="Before each trial: a fresh copy (default), VACUUM (default of given servers), or nothing.",
    )
    price: Annotated[Annotated[str, AfterValidator(known_price)] | None, Key()] = Field(
        None,
        description="What its server costs, `0.42 USD/h`: gives [transactions per cent](method.md#metrics).",
    )


class SetUp(ScriptKeys, ClientKeys, MachineKeys, BuildKeys, ServerKeys):
    """A server. `[server]` holds for all arms; an arm overrides it key by key. Two equal arms are an A/A study, a
    check of the method.
    """


KEYS = keys_of(SetUp)
"""The declaration of each key of an arm, by the key's name."""
