"""Keys of study files that were renamed or removed. Stored studies that have such keys are read, and study files that
have them are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_FORMER = {
    "load": {"jobs": "threads"},
    "server": {"metrics": "monitoring"},
    "arms": {"metrics": "monitoring"},
    "fleet": {"pack": "share_machines"},
}
"""The current name of each renamed key, by its section and former name."""

_GONE = {"verdict": {"canary": "no verdict used the work that it timed before each block"}}
"""The reason why a key was removed, by its section and name."""


def name_of_today(path: Sequence[int | str], key: str) -> str | None:
    """Returns the current name of a key that the table at `path`, such as `("arms", "old")`, had; None if it was not
    renamed."""
    depth = 2 if path and path[0] == "arms" else 1
    return _FORMER.get(str(path[0]), {}).get(key) if len(path) == depth else None


def why_gone(path: Sequence[int | str], key: str) -> str | None:
    """Returns why a key of the table at `path` was removed, as the rest of a sentence; None if it was not."""
    return _GONE.get(str(path[0]), {}).get(key) if len(path) == 1 else None


def with_names_of_today(data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys of a stored study under their current names, without removed keys."""
    return {
        section: {arm: _renamed(("arms", arm), keys) for arm, keys in table.items()}
        if section == "arms" and isinstance(table, Mapping)
        else _renamed((section,), table)
        for section, table in data.items()
    }


def with_former_names(section: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys of a section under their former names, so that names which are digests of these keys stay the
    same."""
    before = {today: former for former, today in _FORMER.get(section, {}).items()}
    return {before.get(key, key): value for key, value in table.items()}


def _renamed(path: Sequence[str], table: Any) -> Any:
    if not isinstance(table, Mapping):
        return table
    return {name_of_today(path, key) or key: value for key, value in table.items() if why_gone(path, key) is None}
