"""Keys of study files that had other names or are gone: stored studies are read with them, study files are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_FORMER = {
    "load": {"jobs": "threads"},
    "server": {"metrics": "monitoring"},
    "arms": {"metrics": "monitoring"},
    "fleet": {"pack": "share_machines"},
}
"""By section and former name, the name of today."""

_GONE = {"verdict": {"canary": "no verdict used the work that it timed before each block"}}
"""By section and key, why the key is gone."""


def name_of_today(path: Sequence[int | str], key: str) -> str | None:
    """Returns what a key of the table at `path`, such as `("arms", "old")`, is called now; None: it was no key."""
    depth = 2 if path and path[0] == "arms" else 1
    return _FORMER.get(str(path[0]), {}).get(key) if len(path) == depth else None


def why_gone(path: Sequence[int | str], key: str) -> str | None:
    """Returns why a key that the table at `path` had is gone, the rest of a sentence; None: it was no such key."""
    return _GONE.get(str(path[0]), {}).get(key) if len(path) == 1 else None


def with_names_of_today(data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys of a stored study by their names of today, without those that are gone."""
    return {
        section: {arm: _renamed(("arms", arm), keys) for arm, keys in table.items()}
        if section == "arms" and isinstance(table, Mapping)
        else _renamed((section,), table)
        for section, table in data.items()
    }


def with_former_names(section: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys of a section by their former names: what is named by a digest of them keeps its name."""
    before = {today: former for former, today in _FORMER.get(section, {}).items()}
    return {before.get(key, key): value for key, value in table.items()}


def _renamed(path: Sequence[str], table: Any) -> Any:
    if not isinstance(table, Mapping):
        return table
    return {name_of_today(path, key) or key: value for key, value in table.items() if why_gone(path, key) is None}
