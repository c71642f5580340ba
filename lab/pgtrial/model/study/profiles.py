"""Profiles: variants of one study in one file, each an overlay on the keys that all of them share. Pure functions.

`[profiles.NAME.SECTION]` holds what NAME changes of `[SECTION]`. Tables are merged key by key, to any depth; any other
value, a list too, replaces the shared one. Arms are the exception: a profile that names arms names all of them, since
the first one is the baseline and a mixture would have none that one can see.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pgtrial.model.errors import StudyError
from pgtrial.model.units import nearest

SECTION = "profiles"


def profile_names(data: Mapping[str, Any], source: str) -> list[str]:
    """The profiles of a study file, in its order; `source` is what errors name. Raises StudyError."""
    profiles = data.get(SECTION, {})
    if not isinstance(profiles, Mapping):
        raise StudyError(f"{source}: profiles are tables; write [profiles.quick.load] and the keys that it changes")
    for name, overlay in profiles.items():
        if not isinstance(overlay, Mapping):
            raise StudyError(
                f"{source}: [profiles] {name} is no profile; write [profiles.{name}.load] and the keys that it changes"
            )
    return list(profiles)


def with_profile(data: Mapping[str, Any], wanted: str | None, source: str) -> dict[str, Any]:
    """The keys of a study under one profile, by default the first; `[study] profile` names it. Raises StudyError."""
    names = profile_names(data, source)
    common = {key: value for key, value in data.items() if key != SECTION}
    if not names:
        if wanted is not None:
            raise StudyError(f"{source} has no profiles; leave --profile out")
        return common
    if wanted is not None and wanted not in names:
        raise StudyError(f"{source} has no profile {wanted!r}; {nearest(wanted, names, 'it has')}")
    chosen = wanted or names[0]
    result = _merged(common, data[SECTION][chosen])
    if "arms" in data[SECTION][chosen]:
        result["arms"] = data[SECTION][chosen]["arms"]
    study = result.setdefault("study", {})
    if not isinstance(study, Mapping):
        return result  # what it is instead is told where the keys are checked
    if "profile" in study:
        raise StudyError(f"{source}: [study] profile is written by pgtrial; choose one by --profile {study['profile']}")
    return {**result, "study": {**study, "profile": chosen}}


def _merged(common: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(common)
    for key, value in overlay.items():
        shared = result.get(key)
        if isinstance(shared, Mapping) and isinstance(value, Mapping):
            result[key] = _merged(shared, value)
        else:
            result[key] = value
    return result
