"""The views of a server that are read, with the versions that have them: views.toml."""

from __future__ import annotations

import tomllib
from typing import Any

from pgtrial.model.records import Record
from pgtrial.model.resources import resource


class Source(Record):
    """One view, and how it is read in versions from `since` to `until`."""

    name: str
    since: int = 9
    until: int = 99
    query: str


_TABLES: dict[str, Any] = tomllib.loads(resource("views.toml", __package__))
COUNTED = [Source(**each) for each in _TABLES["counted"]]
SAMPLED = [Source(**each) for each in _TABLES["sampled"]]
