"""Collect what an arm is, while its server runs; collectors are one file each and register themselves here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from pgtrial.arm.connect import Target
from pgtrial.discover import load_modules
from pgtrial.facts.place import backend_process, runs_here
from pgtrial.store.records import Facts

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
"""In this order people read them. `settings` holds what is not at its default in this arm, `defaults` all the rest,
`sources` where the former come from; `probes` are measured, and never twice the same."""


@dataclass(frozen=True)
class Subject:
    """What a collector looks at. `connection` is None for a machine without a server, `data_directory` if unknown."""

    connection: psycopg.Connection[tuple[Any, ...]] | None
    data_directory: Path | None
    here: bool
    """Whether the server is on this machine, so that its CPU and disks can be looked at."""

    server_process: int | None = None
    """A process of the server, if it is one of this machine."""

    ours: bool = False
    """Whether the data directory is the lab's own, so that a probe may write there."""

    measure: bool = False
    """Whether to measure, which takes seconds and must not disturb a load."""

    def value(self, query: str, *parameters: object) -> Any:
        """First column of the first row, or None if the server does not know or the role may not ask."""
        rows = self.rows(query, *parameters)
        return rows[0][0] if rows else None

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]] | None:
        """All rows, or None if the server does not know or the role may not ask."""
        if self.connection is None:
            return None
        try:
            return self.connection.execute(query.encode(), parameters or None).fetchall()
        except psycopg.Error:
            return None


Collector = Callable[[Subject], dict[str, Any]]
_collectors: list[tuple[str, Collector]] = []


def collector(group: str) -> Callable[[Collector], Collector]:
    """Register a function that finds the facts of one group; an unknown value is None, never guessed."""

    def register(function: Collector) -> Collector:
        _collectors.append((group, function))
        return function

    return register


def collect(arm: str, target: Target, data_directory: Path | None = None, *, measure: bool = False) -> Facts:
    """The facts of an arm whose server runs at `target`. Raises psycopg.OperationalError if it is not there.

    `data_directory` is one of the lab's own; of other servers it is asked for. Facts of the machine are collected only
    if the server is on this one; otherwise their groups are empty. With `measure`, probes take some seconds; without
    it there are none.
    """
    with target.connect() as connection:
        return Facts(arm=arm, collected=_now(), facts=_facts(_subject(connection, target, data_directory, measure)))


def collect_machine(directory: Path, *, measure: bool = False) -> Facts:
    """The facts of this machine, without a server; storage is that of `directory`, where probes write if they may."""
    subject = Subject(None, directory, here=True, ours=True, measure=measure)
    return Facts(arm="this machine", collected=_now(), facts=_facts(subject))


def _subject(
    connection: psycopg.Connection[tuple[Any, ...]], target: Target, data_directory: Path | None, measure: bool
) -> Subject:
    here = data_directory is not None or runs_here(connection, target)
    process = backend_process(connection) if here else None
    subject = Subject(connection, data_directory, here, process, ours=data_directory is not None, measure=measure)
    if data_directory is None and here:
        shown = subject.value("SELECT current_setting('data_directory', true)")
        if shown and Path(shown).exists():
            return replace(subject, data_directory=Path(shown))
    return subject


def _facts(subject: Subject) -> dict[str, dict[str, Any]]:
    load_modules("pgtrial.facts")
    found: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}
    for group, function in _collectors:
        for name, value in function(subject).items():
            # what one collector knows another's ignorance does not undo
            if value is not None or name not in found[group]:
                found[group][name] = value
    return found


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
