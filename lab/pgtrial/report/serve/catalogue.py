"""Finds the studies that the pages show. It reads a short summary of each study at once, and the data of a study only
when a page needs them.

Each study has a key that is derived from its path. Requests name studies only by their keys, so that they reach only
studies that were found below the given paths.
"""

from __future__ import annotations

import hashlib
import stat
import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError

from pgtrial.files.reading import read_bytes
from pgtrial.model.errors import PgtrialError, StoreError
from pgtrial.model.records.claims import Claim
from pgtrial.model.records.results import StudyResult
from pgtrial.model.units import plural, slug
from pgtrial.report.brief import brief
from pgtrial.report.data import StudyData, read_data
from pgtrial.report.html import strip
from pgtrial.store.bundle import SUFFIX, is_bundle, open_study
from pgtrial.store.directory import STUDIES, StudyDirectory
from pgtrial.store.files import check_listed, values_of
from pgtrial.store.running import is_running

RUNNING, UNFINISHED, UNREADABLE = "running", "unfinished", "unreadable"
"""The words in place of a verdict for studies that have no stored verdict."""
MEASURED = "measured"
"""The word in place of a verdict for a study with a single arm, which compares nothing."""

WORDS = ("better", "worse", "equivalent", "undecided", "withheld", MEASURED, RUNNING, UNFINISHED, UNREADABLE)
"""The words by which the list of studies can be filtered."""

_STUDY = "study.toml"
_PARTS = ("plan.json", "trials")
"""If a directory has no study file but one of these entries, it is the directory of a study that was not completely
written."""

_STAMPED = (_STUDY, "plan.json", "verdict.json", "facts", "facts/audit.json", "trials")
_NAME = "name study directories, bundles, or folders that hold them"

_KEPT = 6
"""The number of studies whose data are kept in memory."""


@dataclass(frozen=True)
class Bar:
    """An interval that a page draws."""

    interval: str
    positions: dict[str, float]
    """The positions in the drawing by their names, as `strip` returns them."""


@dataclass(frozen=True)
class Glance:
    """The summary of a study in the list of studies."""

    key: str
    path: Path
    question: str
    arms: list[str]
    created: str
    """The time at which the study was created, in UTC and ISO 8601; empty if it is unknown."""
    words: list[str]
    """The verdict of each comparison, or one of MEASURED, RUNNING, UNFINISHED and UNREADABLE."""
    sentences: list[str]
    """The headline of each comparison, or one sentence about the state of the study or the error."""
    bars: list[Bar | None] = field(default_factory=list)
    """The interval of each comparison. It is None if the interval has no bounds or if the verdict is withheld (not
    given)."""
    identity: str = ""
    """The identity of the study, a text by which histories refer to it; empty if it is unknown."""

    @property
    def is_bundle(self) -> bool:
        """True if the study is a bundle, a study that was packed into a single file."""
        return self.path.is_file()

    @property
    def verdicts(self) -> list[tuple[str, str, Bar | None]]:
        """The verdict word, the headline (without this word at its beginning) and the interval of each comparison."""
        rows = zip(self.words, self.sentences, self.bars or [None] * len(self.words), strict=True)
        return [(word, sentence.removeprefix(f"{word.capitalize()} "), bar) for word, sentence, bar in rows]

    def unreadable(self, why: str) -> Glance:
        """Returns the same study, marked as unreadable for the reason `why`."""
        return replace(self, words=[UNREADABLE], sentences=[why], bars=[])

    @property
    def name(self) -> str:
        """The name of the study directory or of the bundle."""
        return self.path.name.removesuffix(SUFFIX)


@dataclass(frozen=True)
class Query:
    """The conditions by which the list of studies is filtered. An empty condition matches all studies."""

    question: str = ""
    arm: str = ""
    since: date | None = None
    until: date | None = None
    verdict: str = ""

    def fits(self, study: Glance) -> bool:
        """True if a study matches all conditions. A study whose date is unknown matches no condition on dates."""
        day = study.created[:10]
        return (
            self.question.casefold() in f"{study.question} {study.name}".casefold()
            and any(self.arm.casefold() in arm.casefold() for arm in study.arms or [""])
            and (self.since is None or day >= self.since.isoformat())
            and (self.until is None or "" < day <= self.until.isoformat())
            and (not self.verdict or self.verdict in study.words)
        )


class Catalogue:
    """The studies at some paths. A path is a study directory, a bundle, or a folder that contains studies."""

    def __init__(self, paths: Sequence[Path]):
        self._paths = [path.absolute() for path in paths]
        self._glanced = lru_cache(maxsize=None)(_glance)
        self._read = lru_cache(_KEPT)(_read)
        self._glancing = threading.Lock()
        """A lock that lets only one list of studies be made at a time. Making a list reads no trials."""
        self._reading = threading.Lock()
        """A lock that lets only one study be read at a time, since the machine may be measuring. Making a list does not
        wait for it."""
        self._by_key: dict[str, Path] = {}

    def studies(self) -> list[Glance]:
        """Returns all studies, the newest first, including studies that cannot be read."""
        with self._glancing:
            glances = [self._glance(path) for path in self._found()]
        return sorted(glances, key=lambda study: (study.created, study.name), reverse=True)

    def study(self, key: str) -> Glance | None:
        """Returns the study with this key, or None."""
        with self._glancing:
            if key not in self._by_key:
                self._found()
            path = self._by_key.get(key)
            return self._glance(path) if path is not None else None

    def data(self, study: Glance) -> StudyData:
        """Returns the files of a study and the result that is computed from its trials. Raises StoreError."""
        with self._reading:
            return self._read(study.path, _stamp(study.path))

    def _found(self) -> list[Path]:
        paths = [path for given in self._paths for path in ([given] if is_study(given) else _inside(given))]
        self._by_key |= {key_of(path.name, str(path)): path for path in paths}
        return list(dict.fromkeys(paths))

    def _glance(self, path: Path) -> Glance:
        known = self._glanced(path, _stamp(path))
        # a pgtrial process that starts or ends changes no file of the study, so this is checked each time
        if known.words != [UNREADABLE] and is_running(path):
            return replace(known, words=[RUNNING], sentences=[" ".join(known.sentences)], bars=[])
        return known


def check_paths(paths: Sequence[Path]) -> None:
    """Raises StoreError for a path that is neither a study nor a folder."""
    for path in paths:
        try:
            status = path.stat()
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror or error}; {_NAME}") from error
        if stat.S_ISDIR(status.st_mode):
            check_listed(path)
        elif not is_bundle(path):
            raise StoreError(f"{path} is neither a folder nor a bundle; {_NAME}")


def key_of(name: str, path: str) -> str:
    """Returns a readable key, which is different for each path."""
    return f"{slug(name)}-{hashlib.sha256(path.encode(errors='surrogateescape')).hexdigest()[:10]}"


def is_study(path: Path, ending: str = "") -> bool:
    """True if the path is a study directory, even an unreadable or unfinished one, or a bundle whose name has this
    ending."""
    try:
        if path.is_file():
            return path.name.endswith(ending)
        return any((path / name).exists() for name in (_STUDY, *_PARTS))
    except OSError:
        return True


def _inside(folder: Path) -> list[Path]:
    """Returns the studies in a folder, and those of gates in it that have several. The result is empty if there is no
    such folder."""
    paths: list[Path] = []
    for path in _entries(folder):
        if is_study(path, SUFFIX):
            paths.append(path)
        elif (path / STUDIES).is_file():
            paths += (inner for inner in _entries(path) if is_study(inner, SUFFIX))
    return paths


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        return []


def _stamp(path: Path) -> Hashable:
    """Returns a value that is different after a change of the study's files. Only those files count from which the
    summary or the result is computed."""
    return tuple(_time(path / name) for name in _STAMPED) if path.is_dir() else _time(path)


def _time(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _glance(path: Path, stamp: Hashable) -> Glance:
    """Returns the summary of a study for the list. `stamp` changes with the study's files, so that a cached summary is
    not used after the files have changed."""
    try:
        with open_study(path, head=True) as study, values_of(path):
            return _seen(path, study)
    except (PgtrialError, OSError) as error:
        why = _unreadable(path, error) if isinstance(error, OSError) else str(error)
        return Glance(
            key_of(path.name, str(path)),
            path,
            question="",
            arms=[],
            created="",
            words=[UNREADABLE],
            sentences=[why],
        )


def _unreadable(path: Path, error: OSError) -> str:
    return f"{path} cannot be read: {error.strerror or error}"


def _seen(path: Path, study: StudyDirectory) -> Glance:
    plan = study.plan
    stored = _stored_trials(path) if path.is_dir() else None
    result = _stored_result(study)
    # the verdict of a bundle needs no check here, since it was checked when the bundle was made
    bars: list[Bar | None] = []
    if result is not None and stored in (None, result.trials_stored) and result.trials_planned == len(plan.wanted):
        words: list[str] = [claim.verdict for claim in result.primary] or [MEASURED]
        sentences = [headline.text for headline in brief(result, plan).headlines]
        bars = [_bar(claim, plan.margin) for claim in result.primary]
    else:
        words = [UNFINISHED]
        sentences = [f"No verdict yet: {stored or 0} of {plural(len(plan.due), 'trial')} are stored."]
    question, key = study.spec.study.question, key_of(path.name, str(path))
    return Glance(key, path, question, plan.arms, plan.created, words, sentences, bars, plan.identity)


def _bar(claim: Claim, margin: float) -> Bar | None:
    positions = strip(claim, margin) if claim.verdict != "withheld" else None
    return Bar(claim.difference.text(), positions) if claim.difference is not None and positions is not None else None


def _stored_trials(path: Path) -> int:
    return sum(not folder.name.startswith(".") for folder in (path / "trials").iterdir())


def _stored_result(study: StudyDirectory) -> StudyResult | None:
    try:
        return StudyResult.model_validate_json(read_bytes(study.path / "verdict.json"))
    except (OSError, ValidationError):
        return None


def _read(path: Path, stamp: Hashable) -> StudyData:
    """Returns the data of a study. `stamp` changes with the study's files, so that cached data are not used after the
    files have changed."""
    try:
        with open_study(path) as study, values_of(path):
            return read_data(study)
    except OSError as error:
        raise StoreError(_unreadable(path, error)) from error
