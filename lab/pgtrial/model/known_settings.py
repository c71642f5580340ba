"""Properties of PostgreSQL's settings that pgtrial knows: which settings hold names, paths or addresses, which may hold
a secret, which the server derives from other settings, and which slow the server down."""

from __future__ import annotations

from collections.abc import Set

from pgtrial.model.records import Record
from pgtrial.model.resources import table


class Known(Record):
    """The content of known_settings.toml: what pgtrial knows about the settings of PostgreSQL. The file explains each
    table."""

    locations: frozenset[str]
    reported_by_server: frozenset[str]
    decided: list[str]
    texts_that_are_shown: frozenset[str]
    parents: dict[str, frozenset[str]]
    """For each setting that the server derives: the settings from which its value follows. The name of a group in
    `groups` stands for all members of the group."""
    groups: dict[str, frozenset[str]]
    costly: dict[str, str]

    def may_be_shown(self, name: str, kind: str) -> bool:
        """True if pgtrial may store and show the value of a setting, because the value cannot be a secret. `kind` is
        the setting's `vartype` in pg_settings."""
        return kind != "string" or name in self.texts_that_are_shown

    def members(self, names: Set[str]) -> frozenset[str]:
        """Returns the names of settings in which each name of a group is replaced by the members of the group."""
        of_names = (self.members(self.groups[name]) if name in self.groups else {name} for name in names)
        return frozenset[str]().union(*of_names)


KNOWN = Known.model_validate(table("known_settings.toml", __package__))
