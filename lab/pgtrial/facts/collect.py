"""Collect what an arm is, while its server runs; collectors are one file each and register themselves here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from pgtrial.arm.connect import Target
from pgtrial.discover import load_modules
from pgtrial.store.records import Facts

GROUPS = ("cpu", "memory", "os", "storage", "server", "settings", "defaults", "client")
"""In this order people read them. `settings` holds what is not at its default in this arm, `defaults` all the rest."""


@dataclass(frozen=True)
class Subject:
    """What a collector looks at. `connection` is None for a machine without a server, `data_directory` if unknown."""

    connection: psycopg.Connection[tuple[Any, ...]] | None
    data_directory: Path | None
    here: bool
    """Whether the server is on this machine, so that its CPU and disks can be looked at."""

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


def collect(arm: str, target: Target, data_directory: Path | None = None) -> Facts:
    """The facts of an arm whose server runs at `target`. Raises psycopg.OperationalError if it is not there.

    Facts of the machine are collected only if the server is on this one; otherwise their groups are empty.
    """
    with _subject(target, data_directory) as subject:
        return Facts(arm=arm, collected=_now(), facts=_facts(subject))


def collect_machine(data_directory: Path) -> Facts:
    """The facts of this machine, without a server; storage is that of `data_directory`."""
    return Facts(arm="this machine", collected=_now(), facts=_facts(Subject(None, data_directory, here=True)))


@contextmanager
def _subject(target: Target, data_directory: Path | None) -> Iterator[Subject]:
    with target.connect() as connection:
        subject = Subject(connection, data_directory, target.local)
        if data_directory is None and target.local:
            shown = subject.value("SELECT current_setting('data_directory', true)")
            if shown and Path(shown).exists():
                subject = Subject(connection, Path(shown), here=True)
        yield subject


def _facts(subject: Subject) -> dict[str, dict[str, Any]]:
    load_modules("pgtrial.facts")
    found: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}
    for group, function in _collectors:
        found[group].update(function(subject))
    return found


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
