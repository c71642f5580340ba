"""Lists what a study does besides putting a load on servers that pgtrial makes. pgtrial shows the list to a person who
is about to run a study that somebody else wrote.

A key of the study is listed unless it is known to be harmless.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgtrial.model.paths import stays_below
from pgtrial.model.study.connection_strings import names_server
from pgtrial.model.study.fleet import LOCAL
from pgtrial.model.study.frozen import without_secrets
from pgtrial.model.study.jobs import file_of
from pgtrial.model.study.patches import Patch, is_text
from pgtrial.model.study.setup import SetUp
from pgtrial.model.study.sources import is_source
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.study.storage import Storage
from pgtrial.model.study.suites import SUITE
from pgtrial.model.study.workload_names import is_script
from pgtrial.model.units import plural

SQL = "sql"
KINDS = {
    SQL: "SQL; on servers that pgtrial makes, a superuser runs it, who can run programs as the account of the server",
    "commands": "programs, and settings by which a server runs or loads something, on this machine",
    "servers": "servers, hosts and services elsewhere, reached with your passwords and keys",
    "machine": "changes of this machine: file systems, devices, directories, kernel parameters, huge pages",
    "sources": "builds of source code, whose own scripts run",
    "files": "files of this machine that are read",
}
"""The kinds of effects that a study may have. The keys are the words with which the user allows each kind."""


@dataclass(frozen=True)
class Effect:
    """An effect of running a study, such as a program that it starts or a host that it connects to."""

    kind: str
    """The kind of the effect, which is a key of KINDS."""
    text: str
    """The description of the effect, in one line or several. It quotes texts of the study, which may contain control
    characters."""


_HARMLESS = frozenset(
    {
        *("reset", "connect", "price", "less_durable", "port", "storage_limit", "numa", "cpus", "layouts", "lto"),
        *("pgo", "command_files", "data_files", "values"),
    }
)
"""The keys of a server that by themselves run no program, reach no host and change nothing on the machine."""

_WITH_SSH = ("address", "sudo")


def effects_of(spec: StudySpec) -> list[Effect]:
    """Returns all effects of a study, each once, by kind in the order of KINDS. Passwords are left out."""
    public = without_secrets(spec)
    found = [*_of_load(public), *_of_setups({"server": public.server, **public.arms})]
    return sorted(dict.fromkeys(found), key=lambda effect: list(KINDS).index(effect.kind))


def effects_of_setups(setups: Mapping[str, SetUp]) -> list[Effect]:
    """Returns the effects of the servers that these tables describe, in the order of `effects_of`. Effects of a load
    are left out, since the load comes from another study."""
    found = dict.fromkeys(_of_setups(setups))
    return sorted(found, key=lambda effect: list(KINDS).index(effect.kind))


def _of_load(spec: StudySpec) -> Iterator[Effect]:
    load = spec.load
    for name, text in spec.scripts.items():
        yield Effect(_kind_of_script(name, text), f"{name}:\n{text.rstrip()}")
    for name in load.workload:
        path = file_of(name).removeprefix(SUITE)
        is_path = is_script(name) or (path != name and "/" in path)
        if name.startswith("replay:") or (is_path and not _is_of_study(path)):
            yield Effect("files", f"reads {name}")
    if load.data and names_server(load.data[0]):
        yield Effect("servers", f"copies the database {load.data[0]}")
    elif load.data:
        yield from (Effect("files", f"reads {path}") for path in load.data)
    if load.replay.data is not None:
        yield Effect("files", f"reads {load.replay.data}")
    if load.job.command is not None:
        yield Effect("commands", f"job: {load.job.command}")
    yield from (Effect("files", f"reads {read.file}") for read in load.job.reads.values() if read.file is not None)
    for name, metric in spec.metrics.items():
        if metric.command is not None:
            yield Effect("commands", f"metric {name}: {metric.command}")
        elif metric.sql is not None:
            yield Effect(_kind_of_script("", metric.sql), f"metric {name}: {metric.sql}")
    if load.job.undo_sql:
        yield Effect(SQL, f"undoes the job by: {load.job.undo_sql}")
    if spec.fleet is not None and spec.fleet.address != LOCAL:
        yield Effect("servers", f"uses the Ray cluster {spec.fleet.address}")


def _is_of_study(path: str) -> bool:
    """True if a path names a script in the folder scripts/ of a frozen study. The text of such a script is listed with
    the load. Any other path is a file of this machine."""
    return path.startswith("scripts/") and stays_below(path)


_RUNS_PROGRAMS = re.compile(r"^\s*\\(set)?shell\b|\bcopy\b.*\bprogram\b", re.IGNORECASE | re.MULTILINE | re.DOTALL)


def _kind_of_script(name: str, text: str) -> str:
    return "commands" if name.endswith(".lua") or _RUNS_PROGRAMS.search(text) else SQL


def _of_setups(setups: Mapping[str, SetUp]) -> Iterator[Effect]:
    for name, setup in setups.items():
        for key, value in setup.model_dump(exclude_defaults=True).items():
            if key in _HARMLESS:
                continue
            of_key = _OF_KEYS.get(key, _unknown)
            yield from (Effect(effect.kind, f"{name}: {effect.text}") for effect in of_key(key, value, setup))


def _unknown(key: str, value: Any, setup: SetUp) -> Iterator[Effect]:
    yield Effect("commands", f"{key} = {value}")


def _postgres(key: str, value: str, setup: SetUp) -> Iterator[Effect]:
    if is_source(value):
        options = " ".join([*(setup.build or []), *([f"CC={setup.compiler}"] if setup.compiler else [])])
        yield Effect("sources", f"builds the server {value} {options}".rstrip())
    elif "/" in value or value.startswith("~"):
        yield Effect("commands", f"runs the server's programs in {value}")


def _extensions(key: str, value: Sequence[str], setup: SetUp) -> Iterator[Effect]:
    yield from (Effect("sources", f"builds the extension {source}") for source in value)


def _patches(key: str, value: Sequence[str], setup: SetUp) -> Iterator[Effect]:
    for patch in value:
        what = f"{Patch(patch).label}, {plural(patch.count(chr(10)), 'line')}" if is_text(patch) else patch
        yield Effect("sources", f"applies a patch to the source of the server: {what}")


def _built(key: str, value: Any, setup: SetUp) -> Iterator[Effect]:
    words = value if isinstance(value, str) else " ".join(value)
    yield Effect("sources", f"{key} = {words}")


def _dsn(key: str, value: Sequence[str], setup: SetUp) -> Iterator[Effect]:
    yield from (Effect("servers", f"connects to {dsn}") for dsn in value)


def _elsewhere(key: str, value: Any, setup: SetUp) -> Iterator[Effect]:
    yield Effect("servers", f"{key} = {value}")


def _data(key: str, value: Sequence[str], setup: SetUp) -> Iterator[Effect]:
    if setup.ssh is not None:
        yield from _elsewhere(key, value[0], setup)
    else:
        yield from (Effect("files", f"reads {path}") for path in value)


def _settings(key: str, value: Mapping[str, str], setup: SetUp) -> Iterator[Effect]:
    for name, text in value.items():
        if not _is_harmless(name.lower(), text):
            yield Effect("commands", f"sets {name} = {text}")


_WORDS = re.compile(r"[\w.+-]*( ?[a-zA-Z]+)?")
_NAMES = re.compile(r"\w*(\s*,\s*\w+)*")
_LOADED = re.compile(r"_librar(y|ies)$|^jit_provider$")
_POWERFUL = re.compile(r"command|path|director|file|conninfo|program|on_init|start_proc|url|host")
_LISTS = frozenset({"search_path", "temp_tablespaces", "datestyle", "timezone", "synchronous_standby_names"})


def _is_harmless(name: str, text: str) -> bool:
    """True if a setting runs no program, loads no code of others and reaches no host: its value is a number, a word, or
    names of the server's own libraries."""
    if name in _LISTS:
        return True
    if _LOADED.search(name):
        return _NAMES.fullmatch(text) is not None
    return not _POWERFUL.search(name) and _WORDS.fullmatch(text) is not None


_OF_INITDB = re.compile(
    r"-k|--(no-)?data-checksums|-E|--(locale|lc-[a-z]+|encoding|locale-provider|icu-locale|icu-rules|builtin-locale"
    r"|wal-segsize)(=[\w.@+-]*)?|[\w.@+-]+"
)


def _initdb(key: str, value: Sequence[str], setup: SetUp) -> Iterator[Effect]:
    if not all(_OF_INITDB.fullmatch(option) for option in value):
        yield Effect("commands", f"runs initdb with {' '.join(value)}")


def _setup_sql(key: str, value: Sequence[str], setup: SetUp) -> Iterator[Effect]:
    for text in value:
        yield Effect(_kind_of_script("", text), f"SQL before each trial: {text}")


def _storage(key: str, value: Any, setup: SetUp) -> Iterator[Effect]:
    storage: Storage | None = setup.storage
    for volume in (storage, storage.wal) if storage is not None else ():
        if volume is None:
            continue
        for path in volume.on:
            erased = ", WHATEVER IS ON IT" if volume.overwrite else ""
            if path.startswith("/dev/"):
                yield Effect("machine", f"makes a file system {volume.fs} on the device {path}{erased}")
            elif path.startswith("/"):
                yield Effect("machine", f"writes data in the directory {path}")
            else:
                options = " ".join([*volume.mkfs, *volume.mount])
                yield Effect("machine", f"makes and mounts a file system {volume.fs} in a file {options}".rstrip())


def _machine(key: str, value: Any, setup: SetUp) -> Iterator[Effect]:
    values = value if isinstance(value, dict) else {key: value}
    yield from (Effect("machine", f"sets {name} = {text}") for name, text in values.items())


def _environment(key: str, value: Mapping[str, str], setup: SetUp) -> Iterator[Effect]:
    yield from (Effect("commands", f"starts the server with {name}={text}") for name, text in value.items())


def _command(key: str, value: str, setup: SetUp) -> Iterator[Effect]:
    where = f" in {setup.command_directory}" if setup.command_directory else ""
    yield Effect("commands", f"runs {value}{where}")


def _directory(key: str, value: str, setup: SetUp) -> Iterator[Effect]:
    if is_source(value):
        yield Effect("sources", f"writes the files of {value}, in which a program runs")


def _script(key: str, value: str, setup: SetUp) -> Iterator[Effect]:
    path = file_of(value)
    if not _is_of_study(path):
        yield Effect("files", f"reads {path}")


def _query(key: str, value: str, setup: SetUp) -> Iterator[Effect]:
    yield Effect(SQL, f"runs {value}")


_OF_KEYS: Mapping[str, Callable[[str, Any, SetUp], Iterator[Effect]]] = {
    "postgres": _postgres,
    "extensions": _extensions,
    "patches": _patches,
    "build": _built,
    "compiler": _built,
    "dsn": _dsn,
    "ssh": _elsewhere,
    **dict.fromkeys(_WITH_SSH, _elsewhere),
    "monitoring": _elsewhere,
    "settings": _settings,
    "initdb": _initdb,
    "data": _data,
    "setup_sql": _setup_sql,
    "storage": _storage,
    **dict.fromkeys(("huge_pages", "thp", "sysctl", "governor", "io_scheduler"), _machine),
    "environment": _environment,
    "command": _command,
    "command_directory": _directory,
    "workload": _script,
    "query": _query,
}
