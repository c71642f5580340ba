"""Reads workloads that are files: pgbench scripts, Lua scripts, and packs, which come with pgtrial or are folders of
the user.

The files are read when a study is planned, and are copied into the study.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath

from pgtrial.files.reading import read_bytes
from pgtrial.files.trust import refusal_to_run
from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.quoting import quoted
from pgtrial.model.records.suite import SuiteLoad
from pgtrial.model.study.jobs import JOB, is_job
from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.study.own_data import QUERY, weight_of
from pgtrial.model.study.packs import (
    BUNDLED,
    KEPT,
    MANIFEST,
    Pack,
    PackSection,
    check_name,
    check_section,
    defaults_of,
    pack_load,
    read_pack,
)
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.study.suites import SUITE
from pgtrial.model.study.workload_names import BUILT_IN, WORKLOADS, is_script
from pgtrial.model.units import nearest
from pgtrial.store.arm_scripts import FOLDER, as_script, check_arm_scripts, has_arm_scripts, with_arm_scripts
from pgtrial.store.files import texts_of
from pgtrial.store.suites import check_suite_servers, find_suite, with_suite_files

_PACKS = files("pgtrial.store") / "packs"
"""The folder of the packs that come with pgtrial."""

_SHELL = re.compile(r"^\s*\\(set)?shell\b", re.MULTILINE)
"""Matches the backslash commands in a pgbench script that run a program."""
_REQUIRE = re.compile(r"""\brequire\s*\(?\s*["']([\w.-]+)["']""")


def take_in(spec: StudySpec, folder: Path, source: str) -> StudySpec:
    """Returns the spec with the texts of its scripts, packs or suite, whose paths are relative to `folder`. Raises
    StudyError if a file cannot be read, or does not fit the load."""
    check_arm_scripts(spec, source)
    read = _OF_A_KIND.get(spec.load.kind.stored.key, _with_scripts)
    return read(spec, folder, source)


def _with_scripts(spec: StudySpec, folder: Path, source: str) -> StudySpec:
    """Returns the spec to which the texts of its scripts and packs have been added."""
    texts: dict[str, str] = {}
    origins: dict[str, str] = {}
    packs: dict[str, FoundPack] = {}
    kept: list[str] = []
    if spec.load.query is not None:
        spec = _with_query(spec, texts, origins)
    for named in spec.load.workload if not texts else ():
        if is_job(named):
            kept.append(_with_job(named, folder, source, texts, origins))
            continue
        path, weight = weight_of(named)
        if not is_script(path):
            kept.append(named)
            continue
        pack = find_pack(path, folder, f"{source}: {marks.key('load', 'workload')}")
        if pack is not None:
            _check_beside(pack, packs, texts, source)
            packs[pack.path] = pack
            for text in pack.files.values():
                _check_runnable(folder / path, text, source)
            texts |= {f"{pack.name}/{file}": text for file, text in pack.files.items()}
            kept.append(f"{FOLDER}/{pack.path}")
            continue
        name = PurePosixPath(path).name
        if name in texts:
            raise StudyError(
                f"{source}: {marks.key('load', 'workload')}: two scripts are called {name}; the report tells them "
                "apart by their names, so rename one"
            )
        if any(name == pack.name for pack in packs.values()):
            raise StudyError(
                f"{source}: {marks.key('load', 'workload')}: the script {path} has the same name as a pack of the "
                "study; rename it"
            )
        if name in BUILT_IN:
            raise StudyError(
                f"{source}: {marks.key('load', 'workload')}: the script {path} has the same name as a built-in "
                "workload; rename it"
            )
        texts[name] = _read(folder / path, source)
        origins[name] = path
        if name.endswith(".lua"):
            texts |= _required(texts[name], (folder / path).parent, source, set(texts))
        kept.append(f"{FOLDER}/{name}" if weight is None else f"{FOLDER}/{name}={weight}")
    load = spec.load.model_copy(update={"workload": kept}) if kept else spec.load
    if has_arm_scripts(spec):
        spec = spec.model_copy(update={"load": load})
        spec = with_arm_scripts(spec, texts, origins, lambda path: _read_script(folder / path, source))
        load = spec.load
    load = _with_beside(load, folder, source, texts, origins)
    _check_own(load, packs, source)
    _check_values_of_arms(spec, load, source)
    load = _with_packs(load, packs, texts, source)
    return spec.model_copy(update={"load": load}).with_scripts(texts, origins)


def _with_suite(spec: StudySpec, folder: Path, source: str) -> StudySpec:
    """Returns the spec to which the texts of the files of its suite have been added."""
    (named,) = spec.load.workload
    found = find_suite(named, folder, f"{source}: {marks.key('load', 'workload')}")
    check_suite_servers(spec, source)
    load = with_suite_files(spec.load, found, source)
    load = load.model_copy(update={"workload": [f"{SUITE}{FOLDER}/{found.name}"]})
    _check_own(load, {}, source)
    origins = {name: f"{named.removeprefix(SUITE)}/{PurePosixPath(name).name}" for name in found.scripts}
    return spec.model_copy(update={"load": load}).with_scripts(found.scripts, origins)


_OF_A_KIND: Mapping[str, Callable[[StudySpec, Path, str], StudySpec]] = {SuiteLoad.key: _with_suite}
"""The functions that read the files of a load and add them to the spec, by the key of the kind of load. Kinds of load
that are not listed here have scripts or packs as their files."""


def _with_query(spec: StudySpec, texts: dict[str, str], origins: dict[str, str]) -> StudySpec:
    """Returns the spec in which the key `query` of the load is replaced by a script with this query. Adds the text of
    the script to `texts`."""
    texts[QUERY] = as_script(spec.load.query or "")
    origins[QUERY] = "the query"
    load = spec.load.model_copy(update={"workload": [f"{FOLDER}/{QUERY}"], "query": None})
    return spec.model_copy(update={"load": load})


def _with_beside(
    load: LoadSection, folder: Path, source: str, texts: dict[str, str], origins: dict[str, str]
) -> LoadSection:
    """Returns the load with the path of a script replaced by the path of the script's copy in the study. It is the
    script of the load that runs at the same time as a job. Adds the text of the script to `texts`."""
    path = load.job.beside
    if path is None or path in WORKLOADS:
        return load
    if not path.endswith(".sql"):
        raise StudyError(
            f"{source}: {marks.key('load.job', 'beside')}: {path} is not a script of pgbench; write "
            f"{', '.join(WORKLOADS)}, or the path of a .sql file"
        )
    name = PurePosixPath(path).name
    if name in texts:
        raise StudyError(
            f"{source}: {marks.key('load.job', 'beside')}: {name} has the same name as the file of the job; rename one "
            "of the two"
        )
    texts[name] = _read(folder / path, source)
    origins[name] = path
    return load.model_copy(update={"job": load.job.model_copy(update={"beside": f"{FOLDER}/{name}"})})


def _with_job(named: str, folder: Path, source: str, texts: dict[str, str], origins: dict[str, str]) -> str:
    """Returns the workload of a job (statements that run once and are timed) in which the path of the SQL file is
    replaced by the path of the file's copy in the study. Adds the text of the file to `texts`."""
    path = named.removeprefix(JOB)
    if not path:
        return named
    name = PurePosixPath(path).name
    texts[name] = _read(folder / path, source)
    origins[name] = path
    return f"{JOB}{FOLDER}/{name}"


def _check_own(load: LoadSection, packs: Mapping[str, FoundPack], source: str) -> None:
    """Raises StudyError if keys about the user's own data (`data`, `values`) contradict the workloads."""
    for pack in packs.values():
        if load.data:
            raise StudyError(
                f"{source}: {marks.key('load', 'data')}: the pack {pack.name} makes tables of its own; remove "
                f"{marks.key('load', 'data')}, or name scripts on your data as {marks.key('load', 'workload')} in "
                "place of the pack"
            )
        if load.is_mixed:
            raise StudyError(
                f"{source}: {marks.key('load', 'workload')}: the pack {pack.name} cannot be mixed with "
                "scripts that have weights; give the pack a study of its own"
            )
    if load.values:
        _check_values(load, marks.key("load", "values"), marks.short_key("load", "values"), source)


def _check_values_of_arms(spec: StudySpec, load: LoadSection, source: str) -> None:
    for arm in (arm for arm, keys in spec.arms.items() if keys.values):
        key = f"{marks.at_arm(arm)}values"
        _check_values(load, key, key, source)


def _check_values(load: LoadSection, key: str, short_key: str, source: str) -> None:
    """Raises StudyError if variables cannot get values, since a workload is no query and no pgbench script of the user.
    `key` and `short_key` name the key with the values."""
    for workload in load.workload:
        if workload in BUILT_IN or not weight_of(workload)[0].endswith(".sql"):
            raise StudyError(
                f"{source}: {key} are only for queries and pgbench scripts (.sql), but the workload is {workload}; "
                f"remove {short_key}"
            )


def _check_beside(pack: FoundPack, packs: Mapping[str, FoundPack], texts: Mapping[str, str], source: str) -> None:
    """Raises StudyError if the study already lists this pack, or another workload with the pack's name."""
    alike = [other for other in packs.values() if other.name == pack.name and other.files != pack.files]
    if alike or pack.name in texts or pack.name in BUILT_IN:
        raise StudyError(
            f"{source}: {marks.key('load', 'workload')}: another workload has the same name as the pack {pack.name}; "
            "rename the folder of the pack"
        )
    if pack.path in packs:
        raise StudyError(
            f"{source}: {marks.key('load', 'workload')}: the pack {pack.path} is listed more than once; remove one of "
            "them"
        )


def _with_packs(
    load: LoadSection, packs: Mapping[str, FoundPack], texts: Mapping[str, str], source: str
) -> LoadSection:
    """Returns the load. If its only workload is a pack, keys that the study file leaves out get the defaults of the
    pack. Raises StudyError if keys about packs do not fit the workloads."""
    distinct = {pack.name: pack.pack for pack in packs.values()}
    if packs:
        check_section(load.pack, distinct.values(), source)
    elif load.pack != PackSection():
        raise StudyError(
            f"{source}: {marks.key('load', 'pack')} is only for packs, but no workload is a pack; remove it"
        )
    for workload in load.workload:
        pack_load(workload, texts, load.pack)
    if len(distinct) == 1 and len(packs) == len(load.workload):
        (pack,) = distinct.values()
        return load.model_copy(update=defaults_of(pack, load.model_fields_set))
    return load


def digest(text: str) -> str:
    """Returns the SHA-256 of a text in hexadecimal, as the plan stores it for each script."""
    return hashlib.sha256(text.encode()).hexdigest()


def _required(text: str, folder: Path, source: str, known: set[str]) -> dict[str, str]:
    """Returns the modules in the folder of a Lua script that the script requires, directly or through other modules.
    Modules in other places are not included."""
    modules: dict[str, str] = {}
    for module in _REQUIRE.findall(text):
        name = f"{module}.lua"
        if name not in known and (folder / name).is_file():
            modules[name] = _read(folder / name, source)
            modules |= _required(modules[name], folder, source, known | set(modules))
    return modules


def _read_script(path: Path, source: str) -> str:
    """Returns the text of an arm's script. Raises StudyError if it cannot be read."""
    if path.is_dir():
        raise StudyError(
            f"{source}: {marks.heading('arms')}workload: {path} is a folder; arms can only have scripts of their own, "
            "so name a .sql file"
        )
    return _read(path, source)


def _read(path: Path, source: str) -> str:
    try:
        # the bytes are decoded here, since reading the file as text would change line ends
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise StudyError(
            f"{source}: {marks.key('load', 'workload')}: the script {path} is not a text file in UTF-8; save it "
            "in UTF-8"
        ) from None
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise StudyError(
            f"{source}: {marks.key('load', 'workload')}: cannot read the script {path}: {reason}"
        ) from None
    _check_runnable(path, text, source)
    return text


def _check_runnable(path: Path, text: str, source: str) -> None:
    """Raises StudyError if a script can run programs, pgtrial runs as root, and another account could replace the
    file."""
    if (path.suffix == ".lua" or _SHELL.search(text)) and (why := refusal_to_run(path)) is not None:
        raise StudyError(f"{source}: {marks.key('load', 'workload')}: the script can run programs: {why}")


@dataclass(frozen=True)
class FoundPack:
    """A pack, with the files of its folder."""

    name: str
    mix: str | None
    """The mix of the pack (a set of its scripts with weights) that the study names; None if the study names no mix,
    which means the first one."""
    files: dict[str, str]
    """The text of each file, by its name in the folder."""
    pack: Pack

    @property
    def path(self) -> str:
        """The name of the pack, followed by the name of its mix if it has mixes (sets of scripts with weights), such as
        `queue` or `kv/A`. The mix is named even if it is the pack's first one."""
        mix = self.mix or next(iter(self.pack.by_mix))
        return self.name if mix is None else f"{self.name}/{mix}"


def bundled_packs() -> list[str]:
    """Returns the names of the packs that come with pgtrial."""
    return sorted(folder.name for folder in _PACKS.iterdir() if (folder / MANIFEST).is_file())


def described_packs() -> dict[str, Pack]:
    """Returns the packs that come with pgtrial, by their names."""
    return {name: _read_pack(_PACKS / name, name, None, name).pack for name in bundled_packs()}


def find_pack(workload: str, folder: Path, source: str) -> FoundPack | None:
    """Returns the pack that a workload names: `pack:NAME` for one that comes with pgtrial, or else a path relative to
    `folder`; None if the workload is a script.

    Raises StudyError if there is no such pack, with a message that begins with `source`, or if the pack is invalid.
    """
    if workload.startswith(BUNDLED):
        name, _, mix = workload.removeprefix(BUNDLED).partition("/")
        if name not in bundled_packs():
            hint = nearest(name, bundled_packs(), "pgtrial comes with")
            raise StudyError(
                f"{source}: no pack called {quoted(name)} comes with pgtrial; {hint}. A pack of your own is named by "
                "the path of its folder, ./my-pack"
            )
        return _read_pack(_PACKS / name, name, mix or None, source)
    path = folder / workload
    if path.is_dir():
        return _read_pack(path, path.resolve().name, None, source)
    if path.suffix not in (".sql", ".lua") and not path.exists() and (path.parent / MANIFEST).is_file():
        return _read_pack(path.parent, path.parent.resolve().name, path.name, source)
    return None


def _read_pack(folder: Traversable, name: str, mix: str | None, source: str) -> FoundPack:
    check_name(name, source)
    texts = texts_of(folder, KEPT, "pack", name, source)
    if MANIFEST not in texts:
        raise StudyError(f"{source}: {folder} is a folder without a {MANIFEST}; name a script, or the folder of a pack")
    return FoundPack(name, mix, texts, read_pack(name, texts))
