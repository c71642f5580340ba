"""The histories that the pages show. They are in the given folders, or in branches of Git repositories that are named
as `git:PATH@BRANCH`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pgtrial.model.errors import PgtrialError
from pgtrial.model.study.sources import is_source
from pgtrial.report.history import Change, Series, series_of
from pgtrial.report.serve.catalogue import is_study, key_of
from pgtrial.store.histories.lines import read_lines
from pgtrial.store.histories.stores import HistoryStore, store_of

_KEPT = 64
"""The number of histories whose changes are kept in memory."""


@dataclass(frozen=True)
class History:
    """A history in the list of histories and on its own page."""

    key: str
    name: str
    file: str
    series: list[Series]
    trouble: str = ""
    """The reason why the history cannot be read, as one sentence; empty if it can be read."""

    @property
    def commits(self) -> int:
        """The number of commits, over all machines."""
        return sum(len(of.entries) for of in self.series)

    @property
    def latest(self) -> Change | None:
        """The latest change of speed in any of the series of commits; None if there is no change."""
        changes = [change for of in self.series for change in of.changes]
        return max(changes, key=lambda change: change.at, default=None)

    @property
    def content(self) -> list[dict[str, Any]]:
        """Returns the content of the history's page, in the form in which `pgtrial history show --json` prints it."""
        return [{"history": self.name, **of.model_dump(mode="json")} for of in self.series]


def is_branch(path: Path) -> bool:
    """True if a path that the user gave to `pgtrial serve` names a branch of a Git repository."""
    return is_source(str(path))


class Histories:
    """The histories at some paths. They are read again for each request, and the changes are computed again only if a
    file has changed."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._series = lru_cache(_KEPT)(lambda text, file: series_of(read_lines(text, file)))

    def check_branches(self) -> None:
        """Raises StudyError for a branch that cannot be read."""
        for path in filter(is_branch, self._paths):
            store_of(str(path)).names()

    def all(self) -> list[History]:
        """Returns all histories, including histories and branches that cannot be read."""
        return [history for path in self._paths for history in self._at(path)]

    def history(self, key: str) -> History | None:
        """Returns the history with this key, or None."""
        return next((history for history in self.all() if history.key == key), None)

    def _at(self, path: Path) -> Iterator[History]:
        if not is_branch(path) and (not path.is_dir() or is_study(path)):
            return
        try:
            store = store_of(str(path))
            names = store.names()
        except PgtrialError as error:
            yield History(key_of(path.name, str(path)), str(path), str(path), [], str(error))
            return
        for name in names:
            yield self._read(store, name)

    def _read(self, store: HistoryStore, name: str) -> History:
        file = store.file(name)
        key = key_of(name, file)
        try:
            return History(key, name, file, self._series(store.read(name), file))
        except PgtrialError as error:
            return History(key, name, file, [], str(error))
