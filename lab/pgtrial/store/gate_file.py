"""Reads a gate file: a TOML file that lists, in `[gate] studies`, the study files that one gate runs one after the
other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.query_forms import KEYS_OF_SCRIPTS
from pgtrial.model.quoting import quoted
from pgtrial.model.records import Record
from pgtrial.model.study.manifests import manifest
from pgtrial.store.study_file import content_of

GATE = "gate"
"""The name of the section that makes a gate file of a TOML file."""
_OF_SCRIPTS = frozenset((*KEYS_OF_SCRIPTS, "values"))
"""The keys of an arm that belong to a script or query of its own."""


class GateSection(Record):
    """The section `[gate]` of a gate file."""

    studies: list[str] = Field(
        min_length=1,
        description="The study files of the gate, in the order in which they run. Relative paths are "
        "relative to the gate file. `@NAME` is a bundled study.",
    )


class _GateFile(Record):
    gate: GateSection


def studies_of_gate(source: str) -> dict[str, str] | None:
    """Returns the studies that a gate file lists: the path of each study file, or `@name`, by the name of the study in
    the gate. Returns None if `source` is a study file.

    Raises StudyError if the file lists a study twice, a file that does not exist, or another gate file, or if it has
    other keys.
    """
    if source.startswith("@"):
        return None
    data, text = content_of(source)
    if GATE not in data:
        return None
    if others := sorted(data.keys() - {GATE}):
        raise StudyError(
            f"{source}: a file with [{GATE}] lists studies and has no other section; move [{others[0]}] into the study "
            "files, or remove it"
        )
    listed = manifest(text, _GateFile, source, {GATE: GateSection}).gate.studies
    studies: dict[str, str] = {}
    names: dict[str, str] = {}
    for name in listed:
        is_file = not name.startswith("@")
        path = str(Path(source).parent / Path(name).expanduser()) if is_file else name
        key = str(Path(path).resolve()) if is_file else name
        if (earlier := names.get(key)) is not None:
            what = name if earlier == name else f"{earlier} and {name}, which are one file,"
            raise StudyError(f"{source}: [{GATE}] studies lists {what} twice; leave one out")
        if is_file:
            _check(source, name, path)
        names[key] = name
        studies[name.removesuffix(".toml")] = path
    return studies


def _check(source: str, name: str, path: str) -> None:
    """Raises StudyError if a file that a gate file lists does not exist, or is a gate file itself."""
    if not Path(path).exists():
        raise StudyError(
            f"{source}: [{GATE}] studies lists {quoted(name)}, but there is no file {path}; paths are relative to the "
            "directory of the file that lists them"
        )
    if GATE in content_of(path)[0]:
        raise StudyError(
            f"{source}: [{GATE}] studies lists {quoted(name)}, which is itself a list of studies; write its studies in "
            "its place"
        )


def check_same_arms(source: str, studies: Mapping[str, str], setups: Sequence[str]) -> None:
    """Raises StudyError if one of the set-ups is the name of an arm in some of these studies only, or of arms that
    differ: then the studies of one gate would not compare the same two set-ups. An arm may have another script or query
    in each study, since a change can be one of several queries.

    `setups` are BASE and HEAD as the user gave them, and `source` is the gate file.
    """
    arms = {path: _arms_in(path) for path in studies.values()}
    for setup in setups:
        having = [path for path, known in arms.items() if setup in known]
        lacking = [path for path in arms if path not in having]
        if having and lacking:
            raise StudyError(
                f"{source}: {quoted(setup)} is an arm of {having[0]}, but not of {lacking[0]}; a gate compares the "
                f"same two set-ups in all its studies: write {marks.arm(setup)} there too"
            )
        other = next((path for path in having if arms[path][setup] != arms[having[0]][setup]), None)
        if other is not None:
            raise StudyError(
                f"{source}: the arm {quoted(setup)} of {having[0]} is not that of {other}; a gate compares the same "
                f"two set-ups in all its studies: give {marks.arm(setup)} the same keys in both"
            )


def _arms_in(path: str) -> Mapping[str, Mapping[str, Any]]:
    """Returns the arms in a study file, each without the keys of a script or query of its own."""
    arms = content_of(path)[0].get("arms")
    tables = arms.items() if isinstance(arms, Mapping) else ()
    return {
        name: {key: value for key, value in keys.items() if key not in _OF_SCRIPTS}
        for name, keys in tables
        if isinstance(keys, Mapping)
    }
