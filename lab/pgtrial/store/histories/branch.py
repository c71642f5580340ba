"""Histories on a branch of git. They are read without a checkout, and added to by commits that touch no work tree or
index."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgtrial.model.errors import StoreError, StudyError
from pgtrial.model.records.history import Entry
from pgtrial.model.study.sources import GitSource, is_commit
from pgtrial.store import git
from pgtrial.store.histories.lines import SUFFIX, Joined, joined, read_lines

_TRIES = 20
_PAUSE_S = 0.05
"""The most tries to make a commit while other writers move the branch, and the pause between two tries, seconds."""


@dataclass(frozen=True)
class _File:
    """An entry of a tree in git."""

    kind: str
    """The mode and the type of the entry, as git writes them."""
    id: str

    @property
    def is_text(self) -> bool:
        """True if the entry is a file, and no link or folder."""
        return self.kind.startswith("100")


class HistoryBranch:
    """A branch with a file for each history in its root. Other files on the branch are kept."""

    def __init__(self, source: GitSource) -> None:
        self._where = source.text
        self.repository = Path(source.repository).expanduser()
        self._branch = source.ref
        if source.is_remote:
            raise StudyError(
                f"{self._where} is not on this machine; fetch its branch into a repository here, and name that one"
            )

    def file(self, name: str) -> str:
        """Returns the place of a history for messages."""
        return f"{self._where}:{name}{SUFFIX}"

    def names(self) -> list[str]:
        """Returns the names of all histories, sorted. Raises StudyError if there is no such branch."""
        files = self._files(self._tip_to_read())
        return sorted(name.removesuffix(SUFFIX) for name in files if _is_history(name))

    def read(self, name: str) -> bytes:
        """Returns the text of a history. Raises StoreError."""
        return self._text(self._files(self._tip_to_read()), name)

    def add(self, name: str, entries: Sequence[Entry]) -> Joined:
        """Adds entries to a history by a commit. If the branch is missing, its first commit has no parent.

        The commit is made again if another writer has moved the branch meanwhile. Raises StoreError and StudyError.
        """
        self._check_writable()
        words = ""
        for _ in range(_TRIES):
            tip = git.commit_named(self.repository, f"refs/heads/{self._branch}")
            files = self._files(tip) if tip is not None else {}
            self._check_is_of_histories(files)
            known = self._text(files, name) if f"{name}{SUFFIX}" in files else b""
            result = joined(read_lines(known, self.file(name)), entries)
            if not result.changes:
                return result
            subject = f"{name}: {', '.join(entry.commit[:10] for entry in entries)}"
            commit = self._commit(tip, {**files, f"{name}{SUFFIX}": self._file(result.text)}, subject)
            # the old value as a condition: a commit of another writer is never lost
            arguments = ("-m", "pgtrial history add", f"refs/heads/{self._branch}", commit, tip or "0" * len(commit))
            done = git.run(self.repository, "update-ref", *arguments)
            if done.returncode == 0:
                return result
            words = git.words_of(done.stderr)
            time.sleep(_PAUSE_S)
        raise StoreError(f"{self._where}: nothing was added, since the branch could not be moved ({words}); try again")

    # ---- reading

    def _tip_to_read(self) -> str:
        """Returns the commit of the branch, or of the branch as it was fetched from another repository:
        `origin/BRANCH`."""
        self._check_names()
        for namespace in ("heads", "remotes"):
            if (tip := git.commit_named(self.repository, f"refs/{namespace}/{self._branch}")) is not None:
                return tip
        raise StudyError(f"{self._where}: the repository has no branch {self._branch!r}; {self._cure()}")

    def _cure(self) -> str:
        """Returns the command with which the user makes the missing branch, as a clause of a message."""
        if (remote := self._remote_that_has_it()) is not None:
            return f"{remote} has it: run git fetch {remote} {self._branch}:{self._branch}"
        return f"`pgtrial history add BUNDLE --in {self._where}` begins one"

    def _remote_that_has_it(self) -> str | None:
        pattern = f"refs/remotes/*/{self._branch}"
        listed = git.output(self.repository, self._where, "for-each-ref", "--format=%(refname)", pattern)
        remotes = [line.split("/")[2] for line in listed.splitlines()]
        return remotes[0] if remotes else None

    def _files(self, commit: str) -> dict[str, _File]:
        """Returns the entries in the root of a commit, by name. A name that is not UTF-8 has lone surrogates."""
        listed = git.content(self.repository, self._where, "ls-tree", "-z", commit)
        rows = [row.partition("\t") for row in listed.decode(errors="surrogateescape").split("\0") if row]
        return {name: _File(*entry.rsplit(" ", 1)) for entry, _, name in rows}

    def _text(self, files: Mapping[str, _File], name: str) -> bytes:
        file = files.get(f"{name}{SUFFIX}")
        if file is None or not file.is_text:
            raise StoreError(f"{self.file(name)} is not a file; correct the branch")
        return git.content(self.repository, self._where, "cat-file", "blob", file.id)

    # ---- writing

    def _file(self, text: bytes) -> _File:
        return _File("100644 blob", self._made("hash-object", "-w", "--stdin", data=text))

    def _commit(self, tip: str | None, files: Mapping[str, _File], subject: str) -> str:
        """Makes a commit of these files, and returns its id."""
        rows = "".join(f"{file.kind} {file.id}\t{name}\0" for name, file in files.items())
        tree = self._made("mktree", "-z", data=rows.encode(errors="surrogateescape"))
        parent = ("-p", tip) if tip is not None else ()
        return self._made("commit-tree", tree, *parent, data=f"{subject}\n".encode(errors="replace"))

    def _made(self, *arguments: str, data: bytes) -> str:
        return git.content(self.repository, self._where, *arguments, data=data).decode().strip()

    def _check_names(self) -> None:
        if not self.repository.is_dir():
            raise StudyError(
                f"{self._where}: there is no directory {self.repository}; name one that is a repository of git"
            )
        git.output(self.repository, self._where, "rev-parse", "--git-dir")
        named = git.run(self.repository, "check-ref-format", "--branch", self._branch)
        if named.stdout.strip() != self._branch or is_commit(self._branch):
            raise StudyError(f"{self._where}: {self._branch!r} is no name of a branch; write git:PATH@BRANCH")

    def _check_writable(self) -> None:
        """Raises StudyError if no commit of an entry can be made."""
        self._check_names()
        listed = git.output(self.repository, self._where, "worktree", "list", "--porcelain")
        if f"branch refs/heads/{self._branch}" in listed.splitlines():
            raise StudyError(
                f"{self._where}: the branch is checked out, and its files would not follow; name a branch that is not"
            )
        if (
            git.commit_named(self.repository, f"refs/heads/{self._branch}") is None
            and self._remote_that_has_it() is not None
        ):
            raise StudyError(f"{self._where}: the repository has no branch {self._branch!r}; {self._cure()}")
        for role in ("AUTHOR", "COMMITTER"):
            if git.run(self.repository, "var", f"GIT_{role}_IDENT").returncode != 0:
                raise StudyError(
                    f"{self._where}: git has no name and e-mail address for a commit; set user.name and user.email "
                    "with git config"
                )

    def _check_is_of_histories(self, files: Mapping[str, _File]) -> None:
        """Raises StudyError for a branch that has other contents, such as the source of a project."""
        if files and not any(map(_is_history, files)):
            raise StudyError(
                f"{self._where}: the branch has other files and no history; name a new one, which pgtrial begins"
            )


def _is_history(name: str) -> bool:
    return name.endswith(SUFFIX) and not name.startswith(".")
