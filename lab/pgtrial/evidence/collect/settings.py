"""All settings of the server, apart from those that merely say where this trial's server lives."""

from __future__ import annotations

import tomllib
from collections.abc import Set
from typing import Any

from pgtrial.evidence.collect.subject import Subject, collector
from pgtrial.model.records import Record
from pgtrial.model.resources import resource


class Known(Record):
    """settings.toml: what is known of the settings of PostgreSQL."""

    places: frozenset[str]
    reported_by_server: frozenset[str]
    parents: dict[str, frozenset[str]]
    """Settings from which the server derives others; a name may be one of `groups`."""
    groups: dict[str, frozenset[str]]
    costly: dict[str, str]

    def members(self, names: Set[str]) -> frozenset[str]:
        """The settings of these names and groups."""
        found = (self.members(self.groups[name]) if name in self.groups else {name} for name in names)
        return frozenset[str]().union(*found)


KNOWN = Known.model_validate(tomllib.loads(resource("settings.toml", __package__)))

_QUERY = "SELECT name, current_setting(name, true), source FROM pg_settings ORDER BY name"
_UNSET = ("default", "override", "session")
"""Sources of what nobody set; `session` is this very connection's, and no property of the arm."""
_LABS_OWN = ("client", "client_encoding")
"""What the lab's connections ask for; all else of the source `client` is in the arm's connection parameters."""


def _settings(subject: Subject) -> list[tuple[str, str, str]]:
    rows = subject.rows(_QUERY) or []
    left_out = KNOWN.places | KNOWN.reported_by_server
    return [(name, value, source) for name, value, source in rows if name not in left_out]


def _is_set(name: str, source: str) -> bool:
    return source not in _UNSET and (source, name) != _LABS_OWN


@collector("settings")
def settings(subject: Subject) -> dict[str, Any]:
    """What is not at its default, as SHOW prints it."""
    return {name: value for name, value, source in _settings(subject) if _is_set(name, source)}


@collector("defaults")
def defaults(subject: Subject) -> dict[str, Any]:
    """What nobody set, as SHOW prints it: built-in defaults, and values that the server works out by itself."""
    return {name: value for name, value, source in _settings(subject) if not _is_set(name, source)}


@collector("sources")
def sources(subject: Subject) -> dict[str, Any]:
    """Where the value of each setting in `settings` comes from, as pg_settings names it."""
    return {name: source for name, _, source in _settings(subject) if _is_set(name, source)}
