"""Packs, which are workloads in folders of SQL files and pgbench scripts: the manifest `pack.toml`, and checks of
whether the files of a pack fit together.

A study stores the files of its packs among its scripts, as `queue/pack.toml`. It names a pack by the folder that has
the files, `scripts/queue`, or with one of the pack's mixes as `scripts/kv/A`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.quoting import quoted
from pgtrial.model.records import Record
from pgtrial.model.records.pack import PackLoad, Quality, Weight
from pgtrial.model.study.manifests import manifest
from pgtrial.model.study.servers import OLDEST
from pgtrial.model.units import Number, Setting, Whole, nearest, variables

MANIFEST = "pack.toml"
SCHEMA, DATA, CHECK, MEASURE, HOLD = "schema.sql", "data.sql", "check.sql", "measure.sql", "hold.sql"
_SPECIAL = (SCHEMA, DATA, CHECK, MEASURE, HOLD)
"""The SQL files that pgtrial runs by itself. Every other SQL file of a pack is a script of the load."""

BUNDLED = "pack:"
"""The prefix of the name of a pack that comes with pgtrial."""

ROWS = (".csv", ".tsv")
"""The endings of files with rows, which data.sql of a pack reads with COPY."""

KEPT = (".toml", ".sql", *ROWS)
"""The endings of the files that belong to a pack. pgtrial ignores other files, such as a README."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,30}")
_OURS = ("scale", "mix", "client_id", "random_seed", "default_seed")
"""The variables that pgbench or pgtrial sets. A pack must not define them."""

_LISTS = ("scale", "clients")
"""The keys of `[load]` that hold lists."""


def _of_pack(values: dict[str, str]) -> dict[str, str]:
    for name in values:
        if name in _OURS:
            raise ValueError(f"{name} is set by pgtrial; choose another name")
    return values


Variables = Annotated[dict[str, Setting], AfterValidator(variables), AfterValidator(_of_pack)]


class PackSection(Record):
    """Keys for workloads that are [packs](packs.md). `fillfactor` and `foreign_keys` are refused. If a pack is the only
    workload, its `pack.toml` has the defaults of `scale`, `clients`, `protocol` and `max_tries`."""

    variables: Variables = Field(
        {},
        description="Values for variables of the pack's scripts, `{ batch = 50 }`. Default: the values in pack.toml.",
    )
    at_least: Number | None = Field(
        None,
        description="The least median [quality](packs.md#a-quality) with which an arm gets a verdict (or the "
        "highest, if less is better). Default: the value in pack.toml.",
    )
    tolerance: Number | None = Field(
        None,
        ge=0,
        description="The largest difference between the median qualities of two arms with which their comparison "
        "gets a verdict. Default: the value in pack.toml.",
    )


class Defaults(Record):
    """The pack's defaults for keys of `[load]`. They apply if the pack is the only workload of the study and the study
    does not set the key."""

    scale: Whole | None = Field(None, ge=1)
    clients: Whole | None = Field(None, ge=1)
    protocol: str | None = Field(None, pattern="^(simple|extended|prepared)$")
    max_tries: Whole | None = Field(None, ge=0)


class Pack(Record):
    """The content of pack.toml."""

    description: str = Field(min_length=1, description="A description of the pack's workload, in one sentence.")
    transaction: str = Field(min_length=1, description="A description of what one transaction does, for the report.")
    scale: str = Field(
        min_length=1, description="A description of what one unit of scale means for the size of the data, for people."
    )
    mb_per_scale: Number = Field(
        0,
        ge=0,
        description="The approximate size in megabytes of the data for one unit of scale; 0 if it is not known.",
    )
    server: Whole = Field(
        OLDEST, ge=OLDEST, description="The oldest major version of PostgreSQL on which the pack runs."
    )
    extensions: list[str] = Field([], description="The extensions that the pack needs. pgtrial creates them.")
    hold: str | None = Field(
        None,
        pattern=r"^[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*$",
        description="The name of a setting, such as `queue.hold_snapshot`. In arms in which it is on, hold.sql "
        "runs in a session of its own that stays open during the load.",
    )
    defaults: Defaults = Field(
        Defaults(), description="The defaults of scale, clients, protocol and max_tries for studies with this pack."
    )
    variables: Variables = Field({}, description="The variables of the scripts with their defaults.")
    scripts: dict[str, Weight] = Field({}, description="The weight of each script, by its file name.")
    mixes: dict[str, dict[str, Weight]] = Field(
        {},
        description="Several tables of scripts with their weights, in place of `scripts`. The first table is the "
        "default.",
    )
    quality: Quality | None = Field(
        None, description="The quality that measure.sql determines; None if the pack has no measure.sql."
    )

    @model_validator(mode="after")
    def _weights(self) -> Pack:
        if self.scripts and self.mixes:
            raise ValueError(
                "scripts and mixes exclude each other; write only [mixes.NAME] tables, and move the scripts "
                "to one of them"
            )
        for name in self.mixes:
            if not _NAME.fullmatch(name):
                raise ValueError(f"mixes: {quoted(name)} cannot be the name of a mix; use letters, digits, _ and -")
        for mix, weights in self.by_mix.items():
            where = "scripts" if mix is None else f"mixes.{mix}"
            if not any(weights.values()):
                raise ValueError(f'{where}: it has no script; write one or more with their weights, "take.sql" = 1')
        return self

    @property
    def by_mix(self) -> Mapping[str | None, dict[str, int]]:
        """Returns the scripts with their weights, by the name of their mix. A pack without mixes has its scripts under
        None."""
        return dict[str | None, dict[str, int]](self.mixes.items()) or {None: self.scripts}

    @property
    def all_scripts(self) -> list[str]:
        """Returns the file names of the scripts in all mixes, each once."""
        return list(dict.fromkeys(file for weights in self.by_mix.values() for file in weights))


def check_name(name: str, source: str) -> None:
    """Raises StudyError if a pack cannot have this name, which is the name of its folder."""
    if not _NAME.fullmatch(name):
        raise StudyError(
            f"{source}: {quoted(name)} cannot be the name of a pack; use letters, digits, _ and -, at most 31"
        )


def read_pack(name: str, files: Mapping[str, str]) -> Pack:
    """Returns the manifest of a pack. `files` has the texts of the pack's files by their names. Raises StudyError if
    the files do not fit together."""
    pack = _parsed(name, files[MANIFEST])
    for complaint in _complaints(pack, files):
        raise StudyError(f"the pack {name}: {complaint}")
    return pack


def _complaints(pack: Pack, files: Mapping[str, str]) -> Iterable[str]:
    named = pack.all_scripts
    if SCHEMA not in files:
        yield f"it has no {SCHEMA}, which makes its tables; write one"
    for file in named:
        if file in _SPECIAL:
            yield f"{MANIFEST} names {file} as a script of the load, which pgtrial itself runs; rename the script"
        if not file.endswith(".sql") or "/" in file:
            yield f"{MANIFEST} names the script {quoted(file)}; a script lies in the pack's folder and ends in .sql"
        if file not in files:
            yield f"{MANIFEST} names {file}, which is not in the folder; write it, or remove the line"
    for file in sorted(files):
        if file.endswith(".sql") and file not in (*_SPECIAL, *named):
            yield f"{file} is not a script of any mix; name it in {MANIFEST} with its weight, or remove the file"
    for file, name, key in ((MEASURE, "[quality]", pack.quality), (HOLD, "hold", pack.hold)):
        if (file in files) != (key is not None):
            here, lacking = (file, f"{name} in {MANIFEST}") if file in files else (f"{name} in {MANIFEST}", file)
            yield f"it has {here} and no {lacking}; each needs the other"


@lru_cache
def _parsed(name: str, text: str) -> Pack:
    return manifest(text, Pack, f"the pack {name}: {MANIFEST}", {"defaults": Defaults, "quality": Quality})


def pack_files(name: str, scripts: Mapping[str, str]) -> dict[str, str]:
    """Returns the texts of the files of one pack, by their names in the pack's folder. `scripts` has the files of all
    packs of a study."""
    return {path.removeprefix(f"{name}/"): text for path, text in scripts.items() if path.startswith(f"{name}/")}


def pack_load(workload: str, scripts: Mapping[str, str], section: PackSection) -> PackLoad | None:
    """Returns the pack that a workload of a planned study names, with the chosen mix; None if the workload is not a
    pack. The name of such a workload is a path in the study directory: `scripts/queue`, or with a mix `scripts/kv/A`.
    Raises StudyError."""
    _, name, named_mix = (*PurePosixPath(workload).parts, "", "", "")[:3]
    mix = named_mix or None
    if f"{name}/{MANIFEST}" not in scripts:
        return None
    pack = read_pack(name, pack_files(name, scripts))
    if mix not in pack.by_mix:
        known = [known_mix for known_mix in pack.by_mix if known_mix is not None]
        hint = nearest(str(mix), known, "it has") if known else "it has none"
        raise StudyError(f"the pack {name} has no mix {quoted(mix)}; {hint}")
    asked = {key: value for key in ("at_least", "tolerance") if (value := getattr(section, key)) is not None}
    return PackLoad(
        name=name,
        mix=mix,
        scripts=pack.by_mix[mix],
        variables={
            **pack.variables,
            **{key: value for key, value in section.variables.items() if key in pack.variables},
        },
        transaction=pack.transaction,
        mb_per_scale=pack.mb_per_scale,
        hold=pack.hold,
        quality=pack.quality and pack.quality.model_copy(update=asked),
    )


def check_section(section: PackSection, packs: Iterable[Pack], source: str) -> None:
    """Raises StudyError if a key of `[load.pack]` applies to none of the packs."""
    of_all = list(packs)
    known = list(dict.fromkeys(name for pack in of_all for name in pack.variables))
    for name in section.variables:
        if name not in known:
            hint = nearest(name, known, "its packs have") if known else "its packs have no variables"
            raise StudyError(
                f"{source}: {marks.key('load.pack', 'variables')}: there is no variable {quoted(name)}; {hint}"
            )
    measured = any(pack.quality is not None for pack in of_all)
    if not measured and (section.at_least is not None or section.tolerance is not None):
        raise StudyError(
            f"{source}: {marks.key('load.pack', 'at_least')} and {marks.short_key('load.pack', 'tolerance')} are for "
            "packs that measure a quality, and none of these does; remove them"
        )


def defaults_of(pack: Pack, given: Collection[str]) -> dict[str, Any]:
    """Returns the pack's defaults for keys of `[load]`, except for the keys in `given`, which the study sets."""
    chosen = pack.defaults.model_dump(exclude_none=True)
    return {key: [value] if key in _LISTS else value for key, value in chosen.items() if key not in given}
