"""Runs all collectors (functions that each find some facts), and returns the facts of an arm, whose server must be
running, or of a machine."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pgtrial.evidence.collect import (
    binding,
    bsd,
    durability,
    flush,
    hardware,
    limits,
    network,
    operating_system,
    server,
    storage,
    windows,
)
from pgtrial.evidence.collect.subject import Collector, Subject, runs_here, shown_directory
from pgtrial.loads.target import Session, Target
from pgtrial.machines.machine import LOCAL
from pgtrial.machines.windows import AnyMachine, WindowsHost
from pgtrial.model.records.facts import Facts

GROUPS = (
    "hardware",
    "cpu",
    "memory",
    "limits",
    "os",
    "storage",
    "network",
    "server",
    "settings",
    "defaults",
    "sources",
    "client",
    "probes",
)
"""The groups of facts, in the order in which reports show them. `settings` has the settings that somebody has set,
`sources` where their values come from, and `defaults` all other settings. The facts in `probes` are measurements, so
they vary from one collection to the next."""

_FILES = (storage, flush, bsd, hardware, operating_system, limits, network, server, durability, binding, windows)

COLLECTORS = [value for file in _FILES for value in vars(file).values() if isinstance(value, Collector)]
"""All collectors (functions that each find some facts), in the order of the modules in _FILES. Reports show the facts
of a group in this order."""


def collect(
    arm: str,
    target: Target,
    data_directory: Path | None = None,
    *,
    machine: AnyMachine | None = None,
    account: str | None = None,
    measure: bool = False,
) -> Facts:
    """Returns the facts of an arm whose server runs at `target`. Raises psycopg.OperationalError if the server does not
    answer.

    `data_directory` is given only for a server that pgtrial started; if pgtrial runs as root, the directory belongs to
    `account`. Other servers are asked for their data directory. `machine` is the machine of the server. If it is not
    given, it is this machine if pgtrial started the server or if the server's process is found here. Without access to
    the server's machine, the groups of facts about the machine are empty. With `measure`, collectors also run
    measurements for some seconds. Raises HostTrouble if the machine is not reachable or refuses access.
    """
    with ExitStack() as stack:
        connection = stack.enter_context(target.connect())
        of_load = None if target.owner is None else stack.enter_context(target.for_load.connect())
        if machine is None and (data_directory is not None or runs_here(connection, target)):
            machine = LOCAL
        shown = data_directory or _shown_directory(connection, machine)
        ours = data_directory is not None
        subject = Subject(
            connection, shown, machine, ours=ours, account=account, measure=measure, load_connection=of_load
        )
        return Facts(arm=arm, collected=_now(), facts=facts_of(subject))


def collect_machine(directory: Path, *, measure: bool = False) -> Facts:
    """Returns the facts of this machine, without a server. The facts about storage are those of the volume that
    contains `directory`; measurements of it write a test file there."""
    subject = Subject(None, directory, LOCAL, ours=True, measure=measure)
    return Facts(arm="this machine", collected=_now(), facts=facts_of(subject))


def _shown_directory(connection: Session, machine: AnyMachine | None) -> Path | None:
    """Returns the data directory that the server reports, if it exists on the machine, and otherwise None. On a Windows
    machine pgtrial does not check this, and returns the directory as the server reports it."""
    shown = None if machine is None else shown_directory(connection)
    there = shown is not None and (machine is None or isinstance(machine, WindowsHost) or machine.exists(shown))
    return shown if there else None


def facts_of(subject: Subject) -> dict[str, dict[str, Any]]:
    """Runs all collectors and returns their facts, by group. Raises HostTrouble if the machine is not reachable or
    refuses access."""
    subject = replace(
        subject,
        announced_files=tuple(pattern for collector in COLLECTORS for pattern in collector.files),
        announced_tools=tuple(tool for collector in COLLECTORS for tool in collector.tools),
    )
    facts: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}
    for collector in COLLECTORS:
        group = collector.group
        for name, value in collector(subject).items():
            # a collector that does not know a value must not replace the value of another collector
            if value is not None or name not in facts[group]:
                facts[group][name] = value
    return facts


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
