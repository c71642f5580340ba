"""Finds out where histories are kept: in a directory, or on a branch of git (`git:PATH@BRANCH`)."""

from __future__ import annotations

from pathlib import Path

from pgtrial.model.errors import StudyError
from pgtrial.model.records.history import Entry
from pgtrial.model.study.sources import GitSource, is_source, source_of
from pgtrial.store.histories.branch import HistoryBranch
from pgtrial.store.histories.directory import HistoryDirectory
from pgtrial.store.histories.lines import read_lines

HISTORY = "history"
"""The default directory for histories."""

HistoryStore = HistoryDirectory | HistoryBranch


def store_of(text: str) -> HistoryStore:
    """Returns the directory or branch with histories that a text of the user names. Raises StudyError if the text names
    neither."""
    if not is_source(text):
        return HistoryDirectory(Path(text))
    try:
        source = source_of(text)
    except ValueError as error:
        raise StudyError(f"{text} {error}") from None
    if not isinstance(source, GitSource):
        raise StudyError(f"{text} cannot contain histories; write the path of a directory, or git:PATH@BRANCH")
    return HistoryBranch(source)


def read_history(store: HistoryStore, name: str) -> list[Entry]:
    """Returns the entries of a history, the earliest first. Raises StoreError if the history is missing or damaged, and
    StudyError if its branch does not exist."""
    return read_lines(store.read(name), store.file(name))
