"""The kinds of servers that an arm may have, each with its keys and rules. `server_of` decides which kind of server an
arm has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from pgtrial.model.quoting import quoted
from pgtrial.model.records import Record
from pgtrial.model.study.build_keys import BuildKeys
from pgtrial.model.study.machine_keys import MachineKeys
from pgtrial.model.study.own_data import DataFiles
from pgtrial.model.study.setup import ENVIRONMENT, ProviderMetrics, SetUp
from pgtrial.model.study.sources import is_source
from pgtrial.model.study.storage import Storage
from pgtrial.model.study.variants import EVERY

OLDEST = 10
"""The oldest major version of PostgreSQL with which pgtrial can make a server."""

PORT = 54321
"""The default port of a server on another host. Other programs seldom use it, and it is the only port that a firewall
has to leave open."""


class Server(Record):
    """The keys that all kinds of servers have."""

    settings: dict[str, str]
    setup_sql: list[str]
    reset: Literal["copy", "vacuum", "none"]
    price: str | None = None
    less_durable: bool | None = None
    command: str | None = None
    command_directory: str | None = None
    command_files: dict[str, str] | None = None
    workload: str | None = None
    """The path of the script that the clients of this arm run; None if the clients of all arms run the same load."""
    values: dict[str, str] | None = None
    """The columns from which the variables of this arm's script take their values; None if they are those of the
    load."""


class Given(Server):
    """A server that somebody else runs (a given server). The arm may name several servers of one product, which are its
    deployments."""

    dsn: list[str]
    ssh: str | None
    """The login for the host of a server that somebody else runs; None if pgtrial must not look at the host. pgtrial
    changes nothing there."""
    sudo: bool
    storage_limit: int | None
    monitoring: ProviderMetrics | None

    @property
    def conninfo(self) -> str:
        """Returns the connection string of the server in the form that libpq accepts. If the arm names several servers
        (deployments), it is the connection string of the first one. Parameters that are not in it come from environment
        variables."""
        return conninfo_of(self.dsn[0])

    @property
    def deployments(self) -> list[Given]:
        """Returns the deployments of the arm (the servers of one product that it names), each as a given server with a
        single connection string."""
        return [self.model_copy(update={"dsn": [dsn]}) for dsn in self.dsn]


class Made(MachineKeys, BuildKeys, Server):
    """A server that pgtrial makes."""

    postgres: str
    initdb: list[str]
    storage: Storage | None


class MadeHere(Made):
    """A server that pgtrial makes on the machine on which pgtrial runs."""

    connect: Literal["socket", "tcp"]
    data: list[str] | None = None
    """The paths of data that only this arm has; None if all arms have the data of the load."""
    data_files: DataFiles | None = None
    """The checksum and the size of the arm's own data; None before pgtrial has read them."""


class MadeBySsh(Made):
    """A server that pgtrial makes on another host, in a folder on that host."""

    ssh: str
    data: str
    address: str | None
    port: int
    sudo: bool


_DEFAULTS = {"postgres": "18", "initdb": [], "connect": "socket", "port": PORT, "sudo": False}


def server_of(shared: SetUp, table: SetUp) -> Server:
    """Returns the server of an arm. `table` has the arm's own keys, which override the keys in `shared` that all arms
    have, or are added to them."""

    def value(key: str) -> Any:
        mine, ours = getattr(table, key), getattr(shared, key)
        match key:
            case "settings":  # names of settings are case-insensitive
                own_names = {name.lower() for name in mine}
                return {**{name: text for name, text in ours.items() if name.lower() not in own_names}, **mine}
            case "sysctl" | "environment":
                return {**ours, **mine}
            case "setup_sql":
                return [*ours, *mine]
            case "address":  # another host has another address
                return mine or (ours if table.ssh is None else None)
        first = mine if mine is not None else ours
        return first or _DEFAULTS[key] if key in _DEFAULTS else first

    given = table.dsn is not None or (shared.dsn is not None and table.postgres is None and table.ssh is None)
    made = MadeHere if (table.ssh or shared.ssh) is None else MadeBySsh
    kind: type[Server] = Given if given else made
    values = {name: value(name) for name in kind.model_fields}
    values["reset"] = values["reset"] or ("vacuum" if given else "copy")
    if kind is MadeBySsh:
        values["data"] = (values["data"] or [""])[0]
    if kind is MadeHere:
        values["data"] = table.data  # here the shared key is not used: it is a folder on another host
    if given:
        # the key ssh belongs to the dsn in the same table
        values["ssh"] = (table if table.dsn is not None else shared).ssh
    return kind(**values)


def sources_of(server: Server) -> list[str]:
    """Returns the sources that an arm names, as the study file writes them: those of its server and its extensions, and
    the commit in which its client program runs."""
    texts = [server.postgres, *(server.extensions or ())] if isinstance(server, Made) else []
    return [text for text in [*texts, server.command_directory or ""] if is_source(text)]


def _keys(kind: type[Server], *others: type[Server]) -> list[str]:
    known = {name for other in others for name in other.model_fields}
    return [name for name in kind.model_fields if name not in known]


_OF_GIVEN = _keys(Given, MadeBySsh)
_OF_SSH = [key for key in _keys(MadeBySsh, Made) if key not in ("ssh", "data")]
_OF_MADE = [key for key in _keys(MadeHere, Server) if key not in ("postgres", "data_files")]


HAS = "has "
"""The beginning of an objection that continues a sentence about a table: `[arms.new] has ...`."""


def objection_to_table(table: SetUp) -> str | None:
    """Returns what is wrong with a table that names a given server and also has keys for a server that pgtrial makes.
    The text is the rest of a sentence that begins with the table; None if nothing is wrong."""
    if table.dsn is not None and table.postgres is not None:
        return "has both dsn and postgres; a given server brings its own version: leave one of the two out"
    if table.dsn is not None and table.ssh is not None and len(table.dsn) > 1:
        return (
            f"has ssh, and dsn names {len(table.dsn)} servers; pgtrial can look only at the host of "
            "a single given server: leave ssh out"
        )
    if table.postgres == EVERY:
        return f'postgres = "{EVERY}" belongs in an arm of a study file; write it in [arms.NAME]'
    return next(_made_alone(table), None) if table.dsn is not None else None


def objection_to_arm(table: SetUp, server: Server) -> str | None:
    """Returns why the keys of an arm contradict each other or its kind of server, as the rest of a sentence that begins
    with the arm's table; None if nothing is wrong."""
    return next(_objections(table, server), None)


def _objections(table: SetUp, server: Server) -> Iterator[str]:
    if server.setup_sql and server.reset != "copy":
        cure = "have pgtrial make the server (postgres and no dsn)" if isinstance(server, Given) else "leave reset out"
        yield f"has setup_sql, which runs on a fresh copy of the data in every trial; {cure}"
    match server:
        case Given():
            yield from _made_alone(table)
            if server.monitoring is not None and len(server.monitoring.cloudwatch) != len(server.dsn):
                yield (
                    f"monitoring.cloudwatch names {len(server.monitoring.cloudwatch)} instances and dsn "
                    f"{len(server.dsn)}; name the instance of each deployment, in the same order"
                )
            if server.ssh is None:
                yield from _without_host(table)
            elif alone := _present(table, [key for key in ("data", *_OF_SSH) if key != "sudo"]):
                yield (
                    f"has dsn, ssh and {alone}; pgtrial makes nothing on the host of a given server, "
                    f"and dsn says where clients reach the server: remove {alone}"
                )
            if server.reset == "copy":
                yield (
                    'has reset = "copy", and its server is a given one, of whose data pgtrial makes no copies; write '
                    '"vacuum" or "none", or have pgtrial make the server (postgres and no dsn)'
                )
        case Made():
            if server.storage is not None and server.reset != "copy":
                yield "has storage, which is made for every trial; leave reset out"
            for key in _OF_GIVEN:
                if _present(table, [key]):
                    yield f"has {key}, which is for given servers; remove it, or give a dsn"
            yield from _of_builds(server)
            yield from _of_storage(table, server)


_LINKS_IN_ITS_ORDER = re.compile(r"-flto(?!=no)|^-Db_lto=true")


def _of_builds(server: Made) -> Iterator[str]:
    from_source = is_source(server.postgres)
    for key in ("build", "patches", "lto", "pgo", "layouts"):
        if getattr(server, key) is not None and not from_source:
            yield (
                f"has {key}, which is for a server that is built from source; remove it, or write "
                'postgres = "git:PATH@REF"'
            )
    if server.layouts is not None and (
        server.lto or any(_LINKS_IN_ITS_ORDER.search(text) for text in server.build or ())
    ):
        yield "has layouts and optimisation at link time, which orders the code by itself; leave one of them out"
    if server.compiler is not None and not from_source and not server.extensions:
        yield "has compiler, and neither its server nor an extension is built from source; remove compiler"
    if isinstance(server, MadeBySsh) and (from_source or server.extensions):
        what = "postgres" if from_source else "extensions"
        yield (
            f"has ssh and {what} from source, and pgtrial builds for this machine only; give a bin directory of that "
            "host"
        )
    if server.extensions and server.reset != "copy":
        yield 'has extensions, which are created on a fresh copy for every trial; leave reset out, or set it to "copy"'


def _of_storage(table: SetUp, server: Made) -> Iterator[str]:
    match server:
        case MadeBySsh(data=""):
            yield 'has ssh and no data; name a folder on that host for all files of pgtrial, data = "/var/db/pgtrial"'
        case MadeBySsh(data=data) if not _is_folder(data) or len(table.data or ()) > 1:
            yield (
                f"has ssh, and data is then the folder on that host: {quoted(data)} is not a folder; write it from / "
                "on, such as /var/db/pgtrial"
            )
        case MadeBySsh() if table.connect is not None:
            yield "has connect, and a server on another host is reached by TCP; leave connect out"
        case MadeBySsh(postgres=postgres) if postgres.startswith("~"):
            yield f"postgres = {quoted(postgres)}: on another host, write the directory from / on"
        case MadeHere():
            yield from _without_host(table)


def _is_folder(text: str) -> bool:
    return text.startswith("/") and text.strip("/") != "" and text.isprintable()


def _without_host(table: SetUp) -> Iterator[str]:
    if alone := _present(table, _OF_SSH):
        yield f'has {alone}, which is for a server on another host; remove it, or add ssh = "user@host"'


def _made_alone(table: SetUp) -> Iterator[str]:
    """Yields an objection if the table of a given server has keys that have an effect only on servers that pgtrial
    makes."""
    # with ssh, data is a folder on the host; `_objections` refuses the key
    on_host = ("data",) if table.ssh is not None else ()
    if asked := _present(table, [key for key in _OF_MADE if key not in on_host]):
        them = "them" if " and " in asked else "it"
        yield (
            f"has {asked}, and its server is a given one, of which pgtrial changes settings only; remove {them}, "
            "or have pgtrial make the server (postgres and no dsn)"
        )


def _present(table: SetUp, keys: Sequence[str]) -> str:
    return " and ".join(key for key in keys if getattr(table, key) not in (None, {}))


def conninfo_of(dsn: str) -> str:
    """Returns a connection string of a study in the form that libpq accepts. `env` becomes an empty string, so that
    libpq uses its environment variables."""
    return "" if dsn == ENVIRONMENT else dsn


def parts_of(dsn: str) -> dict[str, str]:
    """Returns the parameters of a connection string; empty if it cannot be parsed. pgtrial reports that error when it
    writes the study into the study directory."""
    try:
        return {name: str(part) for name, part in conninfo_to_dict(conninfo_of(dsn)).items()}
    except ProgrammingError:
        return {}
