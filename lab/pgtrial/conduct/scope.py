"""Of what a study's verdict speaks: the hosts, what was swapped by the coin, and what each arm had as its own."""

from __future__ import annotations

from collections.abc import Collection, Hashable

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from pgtrial.conduct.deployments import are_units
from pgtrial.model.records.machines import ServerHost
from pgtrial.model.study.places import shared_places
from pgtrial.model.study.spec import ENVIRONMENT, SetUp, StudySpec
from pgtrial.model.study.storage import Volume
from pgtrial.statistics.deployments import FEWEST


def scope_of(spec: StudySpec) -> str:
    """The scope in words, e.g. `this host, a fresh copy of the data for every trial`."""
    setups = {arm: spec.resolved(arm) for arm in spec.arms}
    parts = [_where(list(setups.values())), *_data(spec, setups)]
    fixed = _fixed(spec, setups)
    return ", ".join(parts) + (f" (not swapped between the arms: {', '.join(fixed)})" if fixed else "")


def _where(setups: list[SetUp]) -> str:
    given = _given(setups)
    ours = [place for place in (_hosts(setups), *_given_words(setups, given)) if place]
    return " and ".join(ours)


def _hosts(setups: list[SetUp]) -> str:
    """The hosts that servers of our own run on."""
    logins = {setup.ssh for setup in setups if setup.dsn is None}
    names = sorted(login.rpartition("@")[2] for login in logins if login is not None)
    if not names:
        return "this host" if logins else ""
    others = f"the host {names[0]}" if len(names) == 1 else f"these {len(names)} hosts ({', '.join(names)})"
    return f"this host and {others}" if None in logins else others


def _given_words(setups: list[SetUp], given: set[str]) -> list[str]:
    if not given:
        return []
    number = len(next(setup.dsn for setup in setups if setup.dsn is not None))
    if number >= FEWEST:
        return [f"{number} deployments of each arm, which stand for others of their kind"]
    if number > 1:
        return [f"these {number} deployments of each arm, too few to stand for others of their kind"]
    if len(given) == 1:
        return ["this given server as it is deployed"]
    return [f"these {len(given)} given servers as they are deployed"]


def _given(setups: list[SetUp]) -> set[str]:
    return {dsn for setup in setups for dsn in setup.dsn or []}


def _data(spec: StudySpec, setups: dict[str, SetUp]) -> list[str]:
    """How trials come by their data: new for each, and what the coin swaps."""
    shared = shared_places(spec)
    listed = [" and ".join(group.places) for group in shared if group.places]
    copied = [arm for arm, setup in setups.items() if setup.reset == "copy"]
    whose = "" if len(copied) == len(setups) else f" of {' and '.join(copied)}"
    return [
        *([f"a fresh copy of the data for every trial{whose}"] if copied else []),
        *([f"its place swapped by the coin between {' or between '.join(listed)}"] if listed else []),
        *(["kept copies of the data swapped by the coin"] if any(not group.places for group in shared) else []),
    ]


def _fixed(spec: StudySpec, setups: dict[str, SetUp]) -> list[str]:
    """What differs from arm to arm and stays with it: what is peculiar to one of these looks like the arm's doing."""
    ours = {arm: setup for arm, setup in setups.items() if setup.dsn is None}
    given = _given(list(setups.values()))
    swapped = {arm for group in shared_places(spec) for arm in group.arms}
    fixed = {
        "host": len({setup.ssh for setup in ours.values()}) > 1,
        "server": bool(given) and len(given) + bool(ours) > 1 and not are_units(spec),
        "server build": len({setup.postgres for setup in ours.values()}) > 1,
        "loaded data": len({(setup.postgres, *(setup.initdb or [])) for setup in ours.values()}) > 1,
        "place of the data": len({_place(setup) for setup in ours.values()}) > 1 or _folders_differ(ours.values()),
        "kept copy of the data": any(arm not in swapped and setup.reset != "copy" for arm, setup in ours.items()),
    }
    return [name for name, differs in fixed.items() if differs]


def _folders_differ(ours: Collection[SetUp]) -> bool:
    """Whether arms on one host reached by ssh have their data, or the files of their volumes, in different folders."""
    folders = {(setup.ssh, setup.data) for setup in ours if setup.storage is None or setup.storage.on == ["loop"]}
    return len(folders) > len({ssh for ssh, _ in folders})


def _place(setup: SetUp) -> Hashable:
    """Where an arm's data are; arms with the same are in turn on the same blocks, or swapped."""
    storage = setup.storage
    return None if storage is None else (_blocks(storage), storage.wal and _blocks(storage.wal))


def _blocks(volume: Volume) -> Hashable:
    if volume.fs == "tmpfs":
        return "memory"
    # loop volumes of one size and kind are on one file
    return (volume.size, volume.preallocate) if volume.on == ["loop"] else tuple(volume.on)


HERE = ServerHost(label="this machine", by="this machine")


def hosts_of(spec: StudySpec) -> dict[str, list[ServerHost]]:
    """The hosts of each arm, one for each of its deployments; empty where all servers are on the lab's machine."""
    found = {arm: _hosts_of_arm(spec.resolved(arm)) for arm in spec.arms}
    return found if any(host != HERE for hosts in found.values() for host in hosts) else {}


def _hosts_of_arm(setup: SetUp) -> list[ServerHost]:
    if setup.dsn is not None:
        return [_given_host(each) for each in setup.deployments]
    if setup.ssh is None:
        return [HERE]
    address = setup.address or setup.ssh.rpartition("@")[2]
    return [ServerHost(label=setup.ssh, by="ssh", address=address, data=setup.data)]


def _given_host(setup: SetUp) -> ServerHost:
    """By its host alone: a connection string may hold a password."""
    if setup.dsn == [ENVIRONMENT]:
        return ServerHost(label="as the environment says", by="dsn", looked_at=setup.ssh)
    try:
        parts = conninfo_to_dict(setup.conninfo)
    except ProgrammingError:  # refused, with a sentence, when the study is frozen
        parts = {}
    host = parts.get("host") or parts.get("hostaddr")
    if host is None:
        label = f"service {parts['service']}" if "service" in parts else "a given server"
        return ServerHost(label=label, by="dsn", looked_at=setup.ssh)
    address = parts.get("hostaddr") or host
    return ServerHost(label=str(host), by="dsn", address=str(address), looked_at=setup.ssh)
