"""The scope of a verdict in words: for which hosts it is valid, what was swapped between the arms at random, and what
each arm had for itself. The module also finds the differences between arms that the study declares by its keys; the
audit reports all other differences."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence

from pgtrial.conduct.planning.deployments import are_units
from pgtrial.conduct.planning.layouts import blocks_for_all
from pgtrial.model.records.where_it_ran import ServerHost
from pgtrial.model.study.design import Design
from pgtrial.model.study.servers import Given, Made, MadeBySsh, Server, parts_of
from pgtrial.model.study.setup import ENVIRONMENT, KEYS
from pgtrial.model.study.storage import Volume
from pgtrial.verdict.rules.case import listed
from pgtrial.verdict.units import FEWEST


def scope_of(design: Design, blocks: int, one_server: Collection[str] = (), *, statistics: str | None = None) -> str:
    """Returns the scope of a verdict after `blocks` blocks in words, such as `this host, a fresh copy of the data for
    every trial`.

    `one_server` has the arms that have turned out to be the same given server under different names. `statistics` says
    how the planner's statistics are made, as in the plan; None means the value in the study.
    """
    given, made = list(design.given.values()), design.made
    names = {tuple(server.dsn) for arm, server in design.given.items() if arm in one_server}
    number = len(_dsns(given)) - max(0, len(names) - 1)
    where = [words for words in (_hosts(made.values()), *_given_words(given, number)) if words]
    parts = [" and ".join(where), *_data(design, statistics or design.statistics)]
    if layouts := sorted(set(design.layouts.values())):
        counts = " or ".join(map(str, layouts))
        which = (
            f"one of {counts} layouts of the server's code"
            if blocks <= (blocks_for_all(design) or 0)
            else (f"one of these {counts} layouts of the server's code, which are used more than once,")
        )
        parts.append(f"{which} drawn for each arm and block")
    if len(design.factors) > 1:
        parts.append("the effect of each factor averaged over the levels of the others")
    if design.shares_server:
        parts.append("all arms as sessions of one server")
    if design.load.answers != "same":
        parts.append("the answers of the arms not compared")
    fixed = _fixed(design, number)
    return ", ".join([*parts, *([f"each arm with its own {listed(fixed)}"] if fixed else [])])


def _hosts(made: Collection[Made]) -> str:
    """Returns a phrase for the hosts on which the servers run that pgtrial makes."""
    logins = {_login(server) for server in made}
    names = sorted(login.rpartition("@")[2] for login in logins if login is not None)
    if not names:
        return "this host" if logins else ""
    others = f"the host {names[0]}" if len(names) == 1 else f"these {len(names)} hosts ({', '.join(names)})"
    return f"this host and {others}" if None in logins else others


def _login(server: Made) -> str | None:
    return server.ssh if isinstance(server, MadeBySsh) else None


def _given_words(given: Sequence[Given], servers: int) -> list[str]:
    """Returns a phrase for the given servers, as a list with at most one element. `servers` is their number."""
    if not given:
        return []
    number = len(given[0].dsn)
    if number >= FEWEST:
        return [f"{number} deployments of each arm, which stand for others of their kind"]
    if number > 1:
        return [f"these {number} deployments of each arm, too few to stand for others of their kind"]
    if servers == 1:
        return ["this given server as it is deployed"]
    return [f"these {servers} given servers as they are deployed"]


def _dsns(given: Sequence[Given]) -> set[str]:
    return {dsn for server in given for dsn in server.dsn}


def _data(design: Design, statistics: str) -> list[str]:
    """Returns phrases that say how trials get their data: as fresh copies, or in directories or on devices that are
    swapped between the arms at random."""
    servers, shared = design.servers, design.shared_storage
    listed = [" and ".join(group.names) for group in shared if group.names]
    copied = [arm for arm, server in servers.items() if server.reset == "copy"]
    words = {
        "drawn": "planner statistics drawn for each copy",
        "same": f"planner statistics of {design.baseline} in all arms",
        "once": "planner statistics drawn once",
    }
    whose = "" if len(copied) == len(servers) else f" of {' and '.join(copied)}"
    return [
        *([f"a fresh copy of the data for every trial{whose}", words[statistics]] if copied else []),
        *([f"its place swapped at random between {' or between '.join(listed)}"] if listed else []),
        *(["kept copies of the data swapped at random"] if any(not group.names for group in shared) else []),
    ]


def _fixed(design: Design, given: int) -> list[str]:
    """Returns the names of the properties in which the arms differ and that are never swapped between them, such as
    their host. If a host has a peculiarity, for example, the study cannot distinguish it from an effect of the arm."""
    ours = design.made
    swapped = {arm for group in design.shared_storage for arm in group.arms}
    fixed = {
        "host": _differ(ours.values(), "host"),
        "server": given > 0 and given + bool(ours) > 1 and not are_units(design),
        "server build": _differ(ours.values(), "server build"),
        "loaded data": design.spec.has_arm_data or _differ(ours.values(), "loaded data"),
        "place of the data": len({_storage_of(server) for server in ours.values()}) > 1
        or _folders_differ(ours.values()),
        "kept copy of the data": any(arm not in swapped and server.reset != "copy" for arm, server in ours.items()),
    }
    return [name for name, differs in fixed.items() if differs]


def _differ(ours: Collection[Made], what: str) -> bool:
    """True if the servers differ in a key of the study file that gives each arm a `what` of its own, such as a server
    build."""
    names = [name for name, key in KEYS.items() if what in key.apart]
    values_of_each = [[getattr(server, name, None) for name in names] for server in ours]
    return any(values != values_of_each[0] for values in values_of_each)


def _folders_differ(ours: Collection[Made]) -> bool:
    """True if arms on the same ssh host have their data, or the backing files of their volumes, in different
    folders."""
    folders = {
        (server.ssh, server.data)
        for server in ours
        if isinstance(server, MadeBySsh) and (server.storage is None or server.storage.on == ["loop"])
    }
    return len(folders) > len({ssh for ssh, _ in folders})


def _storage_of(server: Made) -> Hashable:
    """Returns a value that identifies the storage of an arm's data. Arms with equal values use the same storage one
    after the other, or their storage is swapped at random."""
    storage = server.storage
    return None if storage is None else (_blocks(storage), storage.wal and _blocks(storage.wal))


def _blocks(volume: Volume) -> Hashable:
    if volume.fs == "tmpfs":
        return "memory"
    # loop devices of the same size and kind share one backing file
    return (volume.size, volume.preallocate) if volume.on == ["loop"] else tuple(volume.on)


HERE = ServerHost(label="this machine", by="this machine")
UNNAMED = ("a given server", "as the environment says")
"""The labels of given servers whose connection string names no host. The second one is for an empty connection string,
for which libpq takes everything from environment variables."""


def hosts_of(design: Design) -> dict[str, list[ServerHost]]:
    """Returns the hosts of each arm, one for each of its deployments; an empty result if all servers are on the lab's
    machine."""
    by_arm = {arm: _hosts_of_arm(server) for arm, server in design.servers.items()}
    return by_arm if any(host != HERE for hosts in by_arm.values() for host in hosts) else {}


def _hosts_of_arm(server: Server) -> list[ServerHost]:
    match server:
        case Given():
            return [_given_host(deployment) for deployment in server.deployments]
        case MadeBySsh(ssh=login):
            address = server.address or login.rpartition("@")[2]
            return [ServerHost(label=login, by="ssh", address=address, data=server.data)]
    return [HERE]


def _given_host(server: Given) -> ServerHost:
    """Returns the host of a given server. It has only the name from the connection string, which may contain a
    password."""
    if server.dsn == [ENVIRONMENT]:
        return ServerHost(label=UNNAMED[1], by="dsn", looked_at=server.ssh)
    parts = parts_of(server.dsn[0])
    host, address = parts.get("host"), parts.get("hostaddr")
    unnamed = f"service {parts['service']}" if "service" in parts else UNNAMED[0]
    label = host or address or unnamed
    return ServerHost(label=label, by="dsn", address=address or host, looked_at=server.ssh)


def differing_keys(server: Server, base: Server) -> list[str]:
    """Returns the names of the facts that differ between two set-ups because of keys of the study, such as
    `settings.work_mem`."""
    values = ((key, getattr(server, name, key.absent), getattr(base, name, key.absent)) for name, key in KEYS.items())
    return list(
        dict.fromkeys(fact for key, mine, theirs in values if mine != theirs for fact in key.shown(mine, theirs))
    )
