"""`postgres = "every"`: an arm of the study file that stands for one arm per server build of the machine.

The arms are written out when the study is read, so that its frozen form names them one by one and a resumed study has
the same ones. The builds are handed in: a study knows nothing of how servers are found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgtrial.model.errors import StudyError

EVERY = "every"


@dataclass(frozen=True)
class Build:
    """A server that the machine has: its version ("18.6"), bin directory, and origin in one word ("wheel")."""

    version: str
    bin: str
    origin: str


def expanded(data: Mapping[str, Any], builds: Callable[[], Sequence[Build]], source: str) -> dict[str, Any]:
    """The keys of a study with each arm of every build written out, the oldest build first. Raises StudyError.

    An arm is named after its build, `15.20 installed`; where several arms stand for every build, their names go before.
    """
    arms = data.get("arms", {})
    standing = [name for name, own in arms.items() if _stands_for_all(own)] if isinstance(arms, Mapping) else []
    if not standing:
        return dict(data)
    found = sorted(builds(), key=lambda build: [int(part) for part in re.findall(r"\d+", build.version)])
    if len(found) < 2:
        there = f"only one, {found[0].version}" if found else "none"
        raise StudyError(
            f'{source}: [arms.{standing[0]}] postgres = "{EVERY}" compares the server builds of this machine, and '
            f"there is {there}; install more: pip install 'pgtrial[pg16,pg17]', or your system's packages of PostgreSQL"
        )
    written: dict[str, Any] = {}
    for name, own in arms.items():
        if name not in standing:
            written[name] = own
            continue
        for build_name, postgres in _named(found).items():
            written[f"{name} {build_name}" if len(standing) > 1 else build_name] = {**own, "postgres": postgres}
    return {**data, "arms": written}


def _stands_for_all(own: Any) -> bool:
    return isinstance(own, Mapping) and own.get("postgres") == EVERY


def _named(builds: Sequence[Build]) -> dict[str, str]:
    """Name of each build -> what `postgres` has to say: its version, or the directory where versions do not differ."""
    versions = Counter(build.version for build in builds)
    named: dict[str, str] = {}
    for build in builds:
        stem = f"{build.version} {build.origin}"
        name, count = stem, 1
        while name in named:
            count += 1
            name = f"{stem} ({count})"
        named[name] = build.version if versions[build.version] == 1 else build.bin
    return named
