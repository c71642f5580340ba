"""Makes a `StudySpec`, the checked description of a study, from a study file. Errors name the file, the line, the key
and the nearest known key."""

from __future__ import annotations

import difflib
import importlib.resources
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from pgtrial.files.reading import is_passed, read_text
from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.quoting import quoted
from pgtrial.model.study.design import Design
from pgtrial.model.study.factors import arms_of, in_factors, objections_to_factors
from pgtrial.model.study.fleet import FleetSection
from pgtrial.model.study.former_keys import name_of_today, why_gone
from pgtrial.model.study.frozen import without_secrets
from pgtrial.model.study.jobs import JobSection
from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.study.manifests import MUST, Location, all_errors, in_one, parsed
from pgtrial.model.study.objections import (
    objection_to_fleet,
    objection_to_instructions,
    objection_to_metrics,
    objection_to_own_metrics,
    objection_to_prices,
    objection_to_screen,
    objections_to_sql,
)
from pgtrial.model.study.own_metrics import JobRead, MetricSection
from pgtrial.model.study.packs import PackSection
from pgtrial.model.study.replay import ReplaySection
from pgtrial.model.study.servers import HAS, objection_to_arm, objection_to_table
from pgtrial.model.study.setup import ProviderMetrics, SetUp
from pgtrial.model.study.spec import StudySection, StudySpec, VerdictSection
from pgtrial.model.study.statistics import objection_to_statistics
from pgtrial.model.study.storage import Storage, Volume
from pgtrial.model.study.suites import SuiteSection
from pgtrial.model.study.sysbench import SysbenchSection
from pgtrial.model.study.tasks import TasksSection
from pgtrial.model.study.toml_lines import line_of
from pgtrial.model.study.variants import SECTION, Build, expanded, profile_names, with_profile
from pgtrial.model.units import nearest
from pgtrial.store.arm_data import with_arm_data
from pgtrial.store.arm_scripts import with_job_workload
from pgtrial.store.own_data import with_data
from pgtrial.store.programs import check_commands_of, with_program_workload, with_programs
from pgtrial.store.replay_files import with_replay
from pgtrial.store.sources import with_sources
from pgtrial.store.workloads import take_in

_SECTIONS: dict[str, type[BaseModel]] = {
    "study": StudySection,
    "load": LoadSection,
    "server": SetUp,
    "arms": SetUp,
    "verdict": VerdictSection,
    "fleet": FleetSection,
    "metrics": MetricSection,
}

_NESTED: dict[str, type[BaseModel]] = {
    "sysbench": SysbenchSection,
    "tasks": TasksSection,
    "pack": PackSection,
    "replay": ReplaySection,
    "suite": SuiteSection,
    "job": JobSection,
    "storage": Storage,
    "wal": Volume,
    "monitoring": ProviderMetrics,
}
"""The models of the tables in a study file that occur within other tables, such as `[load.sysbench]`, by the last part
of their names."""


_PASSED = "study"
"""The name of a study whose file is a pipe, as in `pgtrial run <(...)`. The path of a pipe, such as /dev/fd/63, would
be no useful name."""

Change = Callable[[dict[str, Any]], Mapping[str, Any]]
"""A function that changes the keys of a study file before they are checked."""


def read_study(
    source: str | Path,
    profile: str | None = None,
    builds: Callable[[], Sequence[Build]] = tuple,
    change: Change = dict,
) -> StudySpec:
    """Returns the spec in a TOML file, or that of a bundled study if `source` is `@name`. Raises StudyError if the file
    cannot be read or is invalid.

    If the study file has profiles (variants of the study), the spec is that of the profile named `profile`, or by
    default of the first profile. `builds` finds the PostgreSQL installations on this machine, for an arm that stands
    for each of them. `change` is applied to the keys of the profile.
    """
    name, text, data, folder = _parsed(source)
    section = data.setdefault("study", {})
    if isinstance(section, dict):
        section["name"] = section.get("name") or name
    data = with_profile(data, profile, str(source))
    chosen = data["study"].get("profile") if isinstance(data["study"], Mapping) else None
    where = f"{source}, profile {chosen}" if chosen is not None else str(source)
    spec = build_study(change(expanded(data, builds, where)), where, folder, text)
    if not str(source).startswith("@"):
        check_commands_of(spec, Path(source))
    return spec


def profiles_of(source: str | Path) -> list[str]:
    """Returns the names of the profiles in a study file or a bundled study, in their order. Raises StudyError if the
    file cannot be read or is invalid."""
    return profile_names(_parsed(source)[2], str(source))


def content_of(source: str) -> tuple[dict[str, Any], str]:
    """Returns the keys of a TOML file or of a bundled study, which are not checked yet, and its text. Raises StudyError
    if the file cannot be read or is not valid TOML."""
    _, text, data, _ = _parsed(source)
    return data, text


def build_study(data: Mapping[str, Any], source: str, folder: Path = Path(), text: str = "") -> StudySpec:
    """Returns a checked spec for the parsed keys of a study file. Raises StudyError with all errors in the keys, or if
    a file that they name cannot be used.

    In error messages, `source` is the name of the study: a file, or the command line. Paths of scripts are relative to
    `folder`. `text` is the text of the file, in which the line numbers for messages are looked up.
    """
    try:
        return _built(_with_arms_of_factors(data, source, text), source, folder, text)
    except StudyError as error:
        if "factors" in data:
            error.reword(in_factors)
        raise


def _built(data: Mapping[str, Any], source: str, folder: Path, text: str) -> StudySpec:
    keys = with_job_workload(with_program_workload(data))
    try:
        spec = StudySpec.model_validate(keys)
    except ValidationError as error:
        raise StudyError(all_errors(error, partial(_sentence, keys), source, text, keys)) from None
    _check_arms(spec, source, text)
    # this call raises an error for an invalid connection string, which would otherwise be noticed only at the first
    # trial
    without_secrets(spec)
    for read_files in (with_sources, with_programs, with_replay, with_data, with_arm_data, take_in):
        spec = read_files(spec, folder, source)
    return spec


def _with_arms_of_factors(data: Mapping[str, Any], source: str, text: str) -> Mapping[str, Any]:
    """Returns the keys of a study file with the arms of its factors; unchanged if it has no factors. Raises StudyError
    if the factors are invalid, or if the file has arms as well.

    A study file that pgtrial has stored has both, and its arms are those of its factors.
    """
    if "factors" not in data:
        return data
    factors = data["factors"]
    if objections := list(objections_to_factors(factors)):
        raise StudyError(in_one(source, [(line_of(text, ("factors",)), sentence) for sentence in objections]))
    arms = arms_of(factors)
    if data.get("arms") and not _are_arms(data["arms"], arms):
        both = f"{marks.section('factors')} and {marks.section('arms')} exclude each other; remove one of the two"
        raise StudyError(in_one(source, [(line_of(text, ("factors",)), both)]))
    return {**data, "arms": arms}


def _are_arms(given: Any, arms: Mapping[str, Any]) -> bool:
    """True if the tables of arms in a study file mean the same as `arms`."""
    if not isinstance(given, Mapping) or list(given) != list(arms):
        return False
    with suppress(ValidationError):
        return all(SetUp.model_validate(given[arm]) == SetUp.model_validate(keys) for arm, keys in arms.items())
    return False


def with_fleet(spec: StudySpec, **given: str | bool | int | None) -> StudySpec:
    """Returns the study with a fleet that has these keys. For keys that are None, the values of the study's own fleet
    are kept. Raises StudyError if the keys are invalid."""
    keys = {} if spec.fleet is None else spec.fleet.model_dump()
    try:
        fleet = FleetSection(**{**keys, **{key: value for key, value in given.items() if value is not None}})
    except ValidationError as error:
        raise StudyError(all_errors(error, _fleet_sentence, "")) from None
    with_it = spec.model_copy(update={"fleet": fleet})
    if (objection := objection_to_fleet(with_it)) is not None:
        raise StudyError(objection)
    return with_it


def bundled_studies() -> dict[str, str]:
    """Returns the questions of the studies that come with pgtrial, by the name of the study."""
    return {name: _parsed(f"@{name}")[2]["study"]["question"] for name in _bundled_names()}


def _parsed(source: str | Path) -> tuple[str, str, dict[str, Any], Path]:
    """Returns the study's name, its text, its keys, and the folder to which paths of scripts are relative."""
    if isinstance(source, str) and source.startswith("@"):
        name, text, folder = source[1:], _bundled_text(source[1:]), Path()
    elif is_passed(Path(source)):
        name, text, folder = _PASSED, _text(Path(source)), Path()
    else:
        name, text, folder = Path(source).stem, _text(Path(source)), Path(source).parent
    data = parsed(text, str(source))
    if any("\0" in one for one in _texts(data)):
        raise StudyError(
            f"{source} has a text with the character \\u0000, which no program accepts; remove the character"
        )
    return name, text, data, folder


def _texts(value: Any) -> Iterator[str]:
    """Yields all keys and all texts within a TOML value."""
    match value:
        case str():
            yield value
        case list():
            yield from (text for item in value for text in _texts(item))
        case dict():
            yield from (text for item in value.items() for part in item for text in _texts(part))


def _bundled_names() -> list[str]:
    folder = importlib.resources.files("pgtrial.store") / "studies"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def _bundled_text(name: str) -> str:
    names = _bundled_names()
    if name not in names:
        raise StudyError(f"no bundled study is called @{name}; {nearest(name, names, 'the bundled studies are')}")
    return (importlib.resources.files("pgtrial.store") / "studies" / f"{name}.toml").read_text(encoding="utf-8")


def _text(path: Path) -> str:
    try:
        return read_text(path, "utf-8-sig")
    except UnicodeDecodeError:
        raise StudyError(f"{path} is not a text file in UTF-8; a study is a TOML file, saved in UTF-8") from None
    except IsADirectoryError:
        raise StudyError(
            f"{path} is the directory of a study, but a study file is needed here; name {path / 'study.toml'}"
            if (path / "study.toml").is_file()
            else f"{path} is a directory without a study.toml; name a study file or a study's directory"
        ) from None
    except FileNotFoundError:
        raise StudyError(f"there is no study file {path}; `pgtrial list` lists the bundled studies (@name)") from None
    except OSError as error:
        raise StudyError(f"cannot read the study file {path}: {error.strerror}") from None


_TWO_ARMS = f"a study needs at least two arms; write {marks.arm('NAME')} for each of them, the baseline first"


def _check_arms(spec: StudySpec, source: str, text: str) -> None:
    if objections := list(_objections(Design(spec))):
        mistakes = [(line_of(text, location), sentence) for location, sentence in objections]
        raise StudyError(in_one(source, mistakes))


def _objections(design: Design) -> Iterator[tuple[Location, str]]:
    """Yields contradictions between keys that are valid each by itself, as pairs: the location of the contradiction in
    the study file, and a sentence for the user."""
    spec = design.spec
    if len(spec.arms) < spec.load.kind.fewest_arms:
        yield ("arms",), _TWO_ARMS
    if (objection := objection_to_metrics(design)) is not None:
        yield ("verdict", "metrics"), objection
    of_the_study = (
        objection_to_own_metrics(spec),
        objection_to_prices(design),
        spec.load.kind.objection_to_servers(spec),
        objection_to_fleet(spec),
        objection_to_instructions(design),
        objection_to_statistics(design),
        objection_to_screen(design),
    )
    for objection in of_the_study:
        if objection is not None:
            yield (), objection
    yield from objections_to_sql(spec)
    if (objection := objection_to_table(spec.server)) is not None:
        yield ("server",), f"{marks.heading('server')}{objection}"
    for arm, table in spec.arms.items():
        if not arm.strip() or len(arm) > 60 or not arm.isprintable():
            yield (
                ("arms",),
                f"{marks.arm(quoted(arm))} is not a valid name for an arm; use 1 to 60 printable characters",
            )
        objection = objection_to_table(table) or objection_to_arm(table, design.servers[arm])
        if objection is not None:
            beginning = f"{marks.arm(arm)} " if objection.startswith(HAS) else marks.at_arm(arm)
            yield ("arms", arm), f"{beginning}{objection}"


def _fleet_sentence(location: Location, message: str | None) -> str:
    return _sentence({}, ("fleet", *location), message)


def _sentence(keys: Mapping[str, Any], location: Location, message: str | None) -> str:
    """Returns the sentence about an error in the keys of a study file. `message` is None for an unknown key."""
    path, key = location[:-1], str(location[-1])
    if location == ("gate",) and message is None:
        return (
            "the section [gate] lists the studies of a gate, which only `pgtrial gate --study` runs; here name the "
            "file of one study, without [gate]"
        )
    if message is None:
        where = f" in {_table(path)}" if path else ""
        noun = "key" if path else "section or key"
        return f"unknown {noun} {quoted(key)}{where}; {_known_keys(keys, path, key)}"
    if location == ("arms",):
        return _TWO_ARMS
    return f"{_where(location)}{'' if message.startswith(MUST) else ':'} {message}"


def _known_keys(keys: Mapping[str, Any], path: Sequence[int | str], key: str) -> str:
    if not path:
        return nearest(key, [*StudySpec.model_fields, SECTION], "known are")
    if (name := name_of_today(path, key)) is not None:
        return f"it is called {name} now"
    if (why := why_gone(path, key)) is not None:
        return f"the key does not exist any more, since {why}; remove it"
    # the name of an arm may be the same as that of a nested table
    nested = _NESTED.get(str(path[-1])) if path[0] != "arms" or len(path) > 2 else None
    if tuple(path[:-1]) == ("load", "job", "reads"):
        nested = JobRead
    section = nested or _SECTIONS[str(path[0])]
    if section is SetUp:
        return _known_of_setups(keys, path, key)
    return nearest(key, list(section.model_fields), "known are")


def _known_of_setups(keys: Mapping[str, Any], path: Sequence[int | str], key: str) -> str:
    """Returns what to do about an unknown key of an arm or of [server]."""
    known = list(SetUp.model_fields)
    if key in LoadSection.model_fields:
        return f"it belongs in {marks.section('load')}, since it is the same for all arms"
    if difflib.get_close_matches(key, known, n=1, cutoff=0.6):
        return nearest(key, known, "known are")
    match path:
        case ("arms", str(arm)) if isinstance(keys["arms"][arm][key], Mapping):
            # TOML takes [arms.16.4] for the table 4 in the arm 16
            name = f'"{arm}.{key}"'
            return f"a name with a period is written in quotes: {marks.arm(name)}"
    return f"a PostgreSQL setting is written settings = {{ {key} = ... }}; known keys are {', '.join(known)}"


def _where(location: Sequence[int | str]) -> str:
    """Returns the name of a location for messages: `("load", "clients", 1)` becomes `[load] clients, item 2`."""
    depth = 2 if location and location[0] in ("arms", "metrics") else 1
    section, rest = location[:depth], location[depth:]
    keys = ".".join(str(part) for part in rest if isinstance(part, str))
    items = "".join(f", item {part + 1}" for part in rest if isinstance(part, int))
    if not keys:
        return f"{_table(section)}{items}"
    if section[0] == "arms":
        return f"{marks.at_arm(str(section[-1]))}{keys}{items}"
    return f"{marks.key('.'.join(map(str, section)), keys)}{items}"


def _table(path: Sequence[int | str]) -> str:
    """Returns the name, for messages, of the TOML table at a path of keys in a study file."""
    first, *rest = map(str, path)
    return marks.arm(".".join(rest)) if first == "arms" and rest else marks.section(".".join((first, *rest)))
