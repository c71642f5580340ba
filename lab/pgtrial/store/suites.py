"""Finds the files of suites (sets of queries, each of which is timed): of the suites that come with pgtrial, and of the
user's own in folders."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from pgtrial.model import marks
from pgtrial.model.errors import StudyError
from pgtrial.model.quoting import quoted
from pgtrial.model.records.suite import QUERY_ENDING
from pgtrial.model.study.load_section import LoadSection
from pgtrial.model.study.servers import Given
from pgtrial.model.study.spec import StudySpec
from pgtrial.model.study.suites import (
    MOST_QUERIES,
    SUITE,
    SUITE_FILE,
    Suite,
    check_suite_name,
    queries_of,
    read_suite,
)
from pgtrial.model.units import nearest
from pgtrial.store.files import texts_of

_SUITES = files("pgtrial") / "suites"
"""The folder of the suites that come with pgtrial. Each suite is a folder in it with a file suite.toml."""

_KEPT = (QUERY_ENDING, SUITE_FILE)

_SCALE = 1
"""The default scale of the data that the engine makes for a suite."""


@dataclass(frozen=True)
class FoundSuite:
    """A suite, with the files of its folder."""

    name: str
    files: dict[str, str]
    """The text of each file, by its name in the folder."""
    suite: Suite

    @property
    def scripts(self) -> dict[str, str]:
        """The texts of the suite's files, by the paths that the copies of these files have in a study directory."""
        return {f"{self.name}/{file}": text for file, text in self.files.items()}

    @property
    def queries(self) -> list[str]:
        """The names of the suite's queries, which are the names of their files without the ending."""
        return queries_of(self.name, self.scripts)


def bundled_suites() -> list[str]:
    """Returns the names of the suites that come with pgtrial."""
    if not _SUITES.is_dir():
        return []
    return sorted(folder.name for folder in _SUITES.iterdir() if (folder / SUITE_FILE).is_file())


def described_suites() -> dict[str, Suite]:
    """Returns the suites that come with pgtrial, by their names."""
    return {name: _read(_SUITES / name, name, name).suite for name in bundled_suites()}


def find_suite(workload: str, folder: Path, source: str) -> FoundSuite:
    """Returns the suite that a workload names: `suite:NAME` for one that comes with pgtrial, or else a path relative to
    `folder`.

    Raises StudyError, whose message begins with `source`, if there is no such suite or it is invalid.
    """
    named = workload.removeprefix(SUITE)
    if named in bundled_suites():
        return _read(_SUITES / named, named, source)
    path = folder / named
    if not named or not path.exists():
        names = bundled_suites()
        hint = nearest(named, names, "the suites of pgtrial are") if names else "no suite comes with pgtrial"
        raise StudyError(
            f"{source}: {workload} is neither a folder of queries (*{QUERY_ENDING}) nor a suite of pgtrial; {hint}"
        )
    if not path.is_dir():
        raise StudyError(f"{source}: {workload} is a file; a suite is a folder with a file for each query")
    return _read(path, path.resolve().name, source)


def with_suite_files(load: LoadSection, found: FoundSuite, source: str) -> LoadSection:
    """Returns the load with the values that the suite's files determine: the number of queries, the time limit and the
    scale. Raises StudyError if keys of the load contradict the files."""
    _check(load, found, source)
    update = {"queries": len(found.queries), "limit": load.suite.limit or found.suite.limit}
    scale = {"scale": [_SCALE]} if found.suite.data is not None and not load.scale_is_set else {}
    return load.model_copy(update={"suite": load.suite.model_copy(update=update), **scale})


def check_suite_servers(spec: StudySpec, source: str) -> None:
    """Raises StudyError if the study asks for something that cannot be done on its servers, such as a restart of a
    server of the user."""
    if not spec.load.suite.drops_caches:
        return
    for arm in spec.arms:
        if isinstance(spec.resolved(arm), Given):
            raise StudyError(
                f"{source}: {marks.at_arm(arm)}{marks.key('load.suite', 'cache', spec.load.suite.cache)} needs a "
                "restart of the server before each query, and pgtrial does not restart a server of yours; write "
                f"{marks.short_key('load.suite', 'cache', 'warm')}, or let pgtrial start a server"
            )


def _check(load: LoadSection, found: FoundSuite, source: str) -> None:
    queries = found.queries
    if not queries:
        raise StudyError(f"{source}: the suite {found.name} has no queries; write at least one file *{QUERY_ENDING}")
    if len(queries) > MOST_QUERIES:
        raise StudyError(
            f"{source}: the suite {found.name} has {len(queries):,} queries; at most {MOST_QUERIES} are allowed"
        )
    for name in load.suite.unchecked:
        if name not in queries:
            hint = nearest(name, queries, "there are")
            raise StudyError(
                f"{source}: {marks.key('load.suite', 'unchecked')}: there is no query {quoted(name)} in {found.name}; "
                f"{hint}"
            )
    if found.suite.data is not None and load.data:
        raise StudyError(
            f"{source}: {marks.key('load', 'data')}: the suite {found.name} has data of its own ({found.suite.data}); "
            f"remove {marks.short_key('load', 'data')}"
        )
    if found.suite.data is None and load.scale != LoadSection.model_fields["scale"].default:
        raise StudyError(
            f"{source}: {marks.key('load', 'scale')} has no effect for the suite {found.name}, whose data pgtrial does "
            "not make; remove it"
        )


def _read(folder: Traversable, name: str, source: str) -> FoundSuite:
    check_suite_name(name, source)
    texts = texts_of(folder, _KEPT, "suite", name, source)
    for file_name in texts:
        check_suite_name(file_name, source)
    try:
        return FoundSuite(name, texts, read_suite(name, texts.get(SUITE_FILE, "")))
    except StudyError as error:
        raise StudyError(f"{source}: {error}") from None
