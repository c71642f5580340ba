"""A server as a study file describes it, in `[server]` or `[arms.NAME]`: the keys of all kinds, each optional."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from pgtrial.model.records import Record
from pgtrial.model.resources import table
from pgtrial.model.study.keys import Facts, Key, keys_of
from pgtrial.model.study.machine_keys import MachineKeys, differing
from pgtrial.model.study.storage import Storage, facts_of_storage
from pgtrial.model.units import Bytes, Setting, as_list

ENVIRONMENT = "env"
"""The dsn of the server that libpq finds by its environment variables alone."""


WORK = "pgtrial.work"
"""How many rows the server counts in each transaction of a self-test. No server defines it: any session may set it."""

SESSION_SETTINGS = frozenset([*table("session_settings.toml", __package__)["names"], WORK])
"""The settings of PostgreSQL that a session may set for itself."""


class ProviderMetrics(Record):
    """What the provider of a given server knows of it, e.g.
    `metrics = { cloudwatch = "my-db", region = "eu-west-1" }`. Needs the extra `pgtrial[aws]` and credentials of AWS
    that may read metrics; without them the study runs, and `pgtrial metrics DIRECTORY` imports them later.
    """

    cloudwatch: Annotated[list[Annotated[str, Field(min_length=1)]], BeforeValidator(as_list)] = Field(
        min_length=1,
        description="The DB instance identifier under which Amazon CloudWatch has the server (AWS/RDS); of several "
        "deployments a list, in the order of `dsn`.",
    )
    region: str | None = Field(
        None, description="Its AWS region, `eu-west-1`; default: that of the AWS environment (AWS_REGION, profile)."
    )


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
    """Where a server comes from, what it is, and what its data are."""

    postgres: Annotated[
        Setting | None,
        Key(shows=("server.version",), follows=("settings.*", "server.*"), apart=("server build", "loaded data")),
    ] = Field(
        None,
        description='A [major version](versions.md) ("10" to "18") or a bin directory; default: "18". In '
        'an arm also "every": one arm for each server build that this machine has, named after it, the oldest first.',
    )
    dsn: Annotated[
        list[str] | None,
        BeforeValidator(as_list),
        AfterValidator(_servers),
        Key(shows=("server.dsn",), follows=("*",)),
    ] = Field(
        None,
        min_length=1,
        description="A given server: connection string or URI without password, `service=NAME` of a service file, or "
        "`env` for what PGHOST, PGSERVICE and the like say; excludes postgres and initdb. A list names several "
        "[deployments](given-servers.md) of one product, as many in each arm.",
    )
    ssh: Annotated[
        Annotated[str, AfterValidator(_login)] | None,
        Key(shows=("server.host",), follows=("*",), apart=("host",)),
    ] = Field(
        None,
        description="Another host that the server runs on, `user@host` or a name of ssh's configuration: pgtrial "
        "makes, starts and removes it there, with your keys, agent and known_hosts ([hosts](ssh-hosts.md)). "
        "`postgres` is then a bin directory there, or a major version looked for in the usual places. In the same "
        "table as `dsn`: the host of that given server, which is [only looked at](given-servers.md#its-host).",
    )
    data: Annotated[
        Annotated[str, AfterValidator(_folder)] | None,
        Key(shows=("storage.source", "storage.device", "storage.filesystem", "storage.mount_options")),
    ] = Field(
        None,
        description="With ssh: the folder there, `/var/db/pgtrial`, in which everything is made, in a room of its own.",
    )
    address: Annotated[str | None, Key(shows=_PATH)] = Field(
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
    settings: Annotated[dict[str, Setting], Key(shows=_facts_of_settings)] = Field(
        {}, description="postgresql.conf settings; an arm's are added to the server's."
    )
    initdb: Annotated[
        list[str] | None,
        BeforeValidator(as_list),
        Key(shows=("server.initdb",), follows=_OF_INITDB, apart=("loaded data",)),
    ] = Field(None, description="Extra initdb options; an arm's replace the server's.")
    setup_sql: Annotated[
        list[str], BeforeValidator(as_list), Key(shows=("server.setup_sql",), follows=("*.extensions",))
    ] = Field(
        [],
        description="SQL run on a fresh copy before each trial's load, e.g. an index or a trigger; an arm's follows "
        "the server's. Not for given servers.",
    )
    storage: Annotated[Storage | None, Key(shows=facts_of_storage)] = Field(
        None,
        description="Where the data is: a filesystem made for it. An arm's replaces the server's. Needs root, "
        "unless it is a directory. Not for given servers.",
    )
    connect: Annotated[Literal["socket", "tcp"] | None, Key(shows=_PATH, absent="socket")] = Field(
        None,
        description="How an embedded server, one on this machine, is reached: by its private socket (default), or "
        "`tcp`: the loopback address, with a random password for each trial and SCRAM, as a server elsewhere would be.",
    )
    reset: Annotated[Literal["copy", "vacuum", "none"] | None, Key(shows=("server.reset",))] = Field(
        None,
        description="State before each trial: a fresh copy of the template (default), "
        "VACUUM of the tables after emptying the history (given servers' default), or none.",
    )


class SetUp(MachineKeys, ServerKeys):
    """How a server comes to be. `[server]` says what all arms share; an arm overrides it key by key, and its settings
    are added to the server's. Two arms that come out the same make an A/A study, a check of the method: the program
    says so and runs it.
    """


KEYS = keys_of(SetUp)
"""What each key of an arm says of itself."""
