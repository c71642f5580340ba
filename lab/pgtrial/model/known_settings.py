"""Known properties of PostgreSQL's settings: which hold names, paths and addresses, which may hold a secret, which the
server derives from others, and which cost time."""

from __future__ import annotations

from collections.abc import Set

from pgtrial.model.records import Record
from pgtrial.model.resources import table


class Known(Record):
    """The content of known_settings.toml: what pgtrial knows about the settings of PostgreSQL."""

    places: frozenset[str]
    reported_by_server: frozenset[str]
    decided: list[str]
    texts_that_are_told: frozenset[str]
    parents: dict[str, frozenset[str]]
    """The settings from which the server derives the value of a setting, by that setting. Names of `groups` stand for
    their members."""
    groups: dict[str, frozenset[str]]
    costly: dict[str, str]

    def is_told(self, name: str, kind: str) -> bool:
        """True if a setting's value cannot be a secret; `kind` is its vartype in pg_settings."""
        return kind != "string" or name in self.texts_that_are_told

    def members(self, names: Set[str]) -> frozenset[str]:
        """Returns the settings with these names, where the name of a group stands for all of its members."""
        of_names = (self.members(self.groups[name]) if name in self.groups else {name} for name in names)
        return frozenset[str]().union(*of_names)


KNOWN = Known.model_validate(table("known_settings.toml", __package__))
