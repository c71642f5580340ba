"""Expands a study file: chooses one of its profiles, and makes one arm for each server build of the machine. No
function has side effects.

A profile changes keys that all profiles share: `[profiles.NAME.SECTION]` has the keys of `[SECTION]` that the profile
NAME changes. Tables are merged key by key, to any depth; any other value, a list too, replaces the shared value. Arms
are the exception: a profile that names arms must name all of them. The first arm is the baseline, and if arms were
merged, the study file would not show which arm is the first.

An arm with `postgres = "every"` stands for one arm for each build. These arms are written out when the study is read,
so that the frozen study names them one by one and a resumed study has the same arms. The caller passes the builds,
since this module does not know how servers are found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.quoting import quoted
from pgtrial.model.units import nearest, numbered

SECTION = "profiles"


def profile_names(data: Mapping[str, Any], source: str) -> list[str]:
    """Returns the names of the profiles in a study file, in their order. Messages of errors begin with `source`, the
    name of the file. Raises StudyError."""
    profiles = data.get(SECTION, {})
    if not isinstance(profiles, Mapping):
        raise StudyError(
            f"{source}: profiles must be tables; write [profiles.quick.load] and below it the keys that "
            "the profile changes"
        )
    for name, overlay in profiles.items():
        if not isinstance(overlay, Mapping):
            raise StudyError(
                f"{source}: [profiles] {name} is not a table; write [profiles.{name}.load] and below it the keys that "
                "it changes"
            )
    return list(profiles)


def with_profile(data: Mapping[str, Any], wanted: str | None, source: str) -> dict[str, Any]:
    """Returns the content of a study file under one of its profiles, and the profile's name in `[study] profile`. If
    `wanted` is None, it is the first profile. Raises StudyError."""
    names = profile_names(data, source)
    common = {key: value for key, value in data.items() if key != SECTION}
    if not names:
        if wanted is not None:
            raise StudyError(f"{source} has no profiles; leave --profile out")
        return common
    if wanted is not None and wanted not in names:
        raise StudyError(f"{source} has no profile {quoted(wanted)}; {nearest(wanted, names, 'it has')}")
    chosen = wanted or names[0]
    result = _merged(common, data[SECTION][chosen])
    if "arms" in data[SECTION][chosen]:
        result["arms"] = data[SECTION][chosen]["arms"]
    study = result.setdefault("study", {})
    if not isinstance(study, Mapping):
        return result  # the check of the keys reports later that [study] is not a table
    if "profile" in study:
        raise StudyError(
            f"{source}: {marks.key('study', 'profile')} is written by pgtrial; choose a profile by --profile "
            f"{study['profile']}"
        )
    return {**result, "study": {**study, "profile": chosen}}


def _merged(common: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    result = {**common, **overlay}
    for key in common.keys() & overlay.keys():
        if isinstance(common[key], Mapping) and isinstance(overlay[key], Mapping):
            result[key] = _merged(common[key], overlay[key])
    return result


EVERY = "every"


@dataclass(frozen=True)
class Build:
    """A server build that the machine has: its version ("18.6"), its bin directory, and a word for where it comes from
    ("wheel")."""

    version: str
    bin: str
    origin: str


def expanded(data: Mapping[str, Any], builds: Callable[[], Sequence[Build]], source: str) -> dict[str, Any]:
    """Returns the content of a study file in which each arm that stands for every build is replaced by one arm for each
    build, the oldest build first. Raises StudyError.

    Such an arm is named after its build, `15.20 installed`. If several arms of the file stand for every build, the new
    names begin with the names of these arms.
    """
    arms = data.get("arms", {})
    standing = [name for name, keys in arms.items() if _stands_for_all(keys)] if isinstance(arms, Mapping) else []
    if not standing:
        return dict(data)
    oldest_first = sorted(builds(), key=lambda build: [int(part) for part in re.findall(r"\d+", build.version)])
    if len(oldest_first) < 2:
        there = f"only one, {oldest_first[0].version}" if oldest_first else "none"
        raise StudyError(
            f'{source}: {marks.at_arm(standing[0])}postgres = "{EVERY}" compares the server builds of this machine, '
            f"and there is {there}; install more: pip install 'pgtrial[server,pg16,pg17]', or your system's packages "
            "of PostgreSQL"
        )
    written: dict[str, Any] = {}
    for name, keys in arms.items():
        if name not in standing:
            written[name] = keys
            continue
        for build_name, postgres in _named(oldest_first).items():
            written[f"{name} {build_name}" if len(standing) > 1 else build_name] = {**keys, "postgres": postgres}
    return {**data, "arms": written}


def _stands_for_all(keys: Any) -> bool:
    return isinstance(keys, Mapping) and keys.get("postgres") == EVERY


def _named(builds: Sequence[Build]) -> dict[str, str]:
    """Returns the name of each build with the value of `postgres` that chooses it: the version, or the bin directory if
    several builds have the same version."""
    versions = Counter(build.version for build in builds)
    named: dict[str, str] = {}
    for build in builds:
        name = numbered(f"{build.version} {build.origin}", named)
        named[name] = build.version if versions[build.version] == 1 else build.bin
    return named
