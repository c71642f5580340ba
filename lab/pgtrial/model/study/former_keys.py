"""Keys of study files that were renamed or removed. pgtrial reads stored studies that have such keys, and refuses them
in study files of users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_FORMER = {
    "load": {"jobs": "threads"},
    "server": {"metrics": "monitoring"},
    "arms": {"metrics": "monitoring"},
    "fleet": {"pack": "share_machines"},
}
"""The current name of each renamed key, by section and former name."""

_GONE = {"verdict": {"canary": "no verdict used the canary, which timed a fixed piece of work before each block"}}
"""The reason why a key was removed, by section and name of the key."""


def name_of_today(path: Sequence[int | str], key: str) -> str | None:
    """Returns the current name of a renamed key; None if the key was not renamed. `path` is the table that has the key,
    such as `("arms", "old")`."""
    depth = 2 if path and path[0] == "arms" else 1
    return _FORMER.get(str(path[0]), {}).get(key) if len(path) == depth else None


def why_gone(path: Sequence[int | str], key: str) -> str | None:
    """Returns why a key was removed, as the rest of a sentence; None if it was not removed. `path` is the table that
    has the key."""
    return _GONE.get(str(path[0]), {}).get(key) if len(path) == 1 else None


def with_names_of_today(data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the content of a stored study with the current names of its keys, and without keys that were removed."""
    return {
        section: {arm: _renamed(("arms", arm), keys) for arm, keys in table.items()}
        if section == "arms" and isinstance(table, Mapping)
        else _renamed((section,), table)
        for section, table in data.items()
    }


def with_former_names(section: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys of a section under their former names. The name of a history contains a digest of these keys,
    and must stay the same after a key is renamed."""
    before = {today: former for former, today in _FORMER.get(section, {}).items()}
    return {before.get(key, key): value for key, value in table.items()}


def _renamed(path: Sequence[str], table: Any) -> Any:
    if not isinstance(table, Mapping):
        return table
    return {name_of_today(path, key) or key: value for key, value in table.items() if why_gone(path, key) is None}
