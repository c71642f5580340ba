"""Keeps histories on a branch of git. They are read without a checkout, and are changed by commits that do not touch
the work tree or the index."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgtrial.model.errors import StoreError, StudyError
from pgtrial.model.quoting import quoted
from pgtrial.model.records.history import Entry
from pgtrial.model.study.sources import GitSource, is_commit
from pgtrial.store import git
from pgtrial.store.histories.lines import SUFFIX, Joined, joined, read_lines

_TRIES = 20
_PAUSE_S = 0.05
"""_TRIES is the largest number of attempts to add a commit while other writers move the branch, and _PAUSE_S the pause
between two attempts, in seconds."""


@dataclass(frozen=True)
class _File:
    """A file or folder in the root directory of a commit (an entry of git's tree object)."""

    kind: str
    """The mode and the type of the entry, as git writes them."""
    id: str

    @property
    def is_text(self) -> bool:
        """True if this is a regular file, and not a link or a folder."""
        return self.kind.startswith("100")


class HistoryBranch:
    """A branch of git whose root has a file for each history. Other files on the branch are kept."""

    def __init__(self, source: GitSource) -> None:
        self._where = source.text
        self.repository = Path(source.repository).expanduser()
        self._branch = source.ref
        if source.is_remote:
            raise StudyError(
                f"{self._where} is not on this machine; fetch its branch into a repository on this machine, and name "
                "that repository"
            )

    def file(self, name: str) -> str:
        """Returns the name of a history's file in messages."""
        return f"{self._where}:{name}{SUFFIX}"

    def names(self) -> list[str]:
        """Returns the sorted names of all histories on the branch. Raises StudyError if the branch does not exist."""
        files = self._files(self._tip_to_read())
        return sorted(name.removesuffix(SUFFIX) for name in files if _is_history(name))

    def read(self, name: str) -> bytes:
        """Returns the content of a history's file. Raises StoreError if the branch has no such history, and StudyError
        if the branch does not exist."""
        return self._text(self._files(self._tip_to_read()), name)

    def add(self, name: str, entries: Sequence[Entry]) -> Joined:
        """Adds entries to a history by a commit on the branch. If the branch does not exist, it is created with this
        commit.

        If another writer has moved the branch meanwhile, the commit is made again. Raises StoreError if the history is
        damaged or git could not update the branch, and StudyError if pgtrial cannot make a commit for the branch.
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
            # update-ref checks the old value, so that a commit of another writer is never lost
            arguments = ("-m", "pgtrial history add", f"refs/heads/{self._branch}", commit, tip or "0" * len(commit))
            done = git.run(self.repository, "update-ref", *arguments)
            if done.returncode == 0:
                return result
            words = git.words_of(done.stderr)
            time.sleep(_PAUSE_S)
        raise StoreError(
            f"{self._where}: pgtrial added nothing, because git could not update the branch ({words}); try again"
        )

    # ---- reading

    def _tip_to_read(self) -> str:
        """Returns the commit from which histories are read: the newest one of the branch. If there is no local branch
        of this name, returns the newest commit of the remote-tracking branch of this name, such as `origin/BRANCH`."""
        self._check_names()
        for namespace in ("heads", "remotes"):
            if (tip := git.commit_named(self.repository, f"refs/{namespace}/{self._branch}")) is not None:
                return tip
        raise StudyError(f"{self._where}: the repository has no branch {quoted(self._branch)}; {self._cure()}")

    def _cure(self) -> str:
        """Returns the command that creates the missing branch, as the last clause of a message."""
        if (remote := self._remote_that_has_it()) is not None:
            return f"{remote} has it: run git fetch {remote} {self._branch}:{self._branch}"
        return f"`pgtrial history add BUNDLE --in {self._where}` creates it"

    def _remote_that_has_it(self) -> str | None:
        pattern = f"refs/remotes/*/{self._branch}"
        listed = git.output(self.repository, self._where, "for-each-ref", "--format=%(refname)", pattern)
        remotes = [line.split("/")[2] for line in listed.splitlines()]
        return remotes[0] if remotes else None

    def _files(self, commit: str) -> dict[str, _File]:
        """Returns the entries in the root directory of a commit, by name. Names that are not UTF-8 contain surrogate
        escapes."""
        listed = git.content(self.repository, self._where, "ls-tree", "-z", commit)
        rows = [row.partition("\t") for row in listed.decode(errors="surrogateescape").split("\0") if row]
        return {name: _File(*entry.rsplit(" ", 1)) for entry, _, name in rows}

    def _text(self, files: Mapping[str, _File], name: str) -> bytes:
        file = files.get(f"{name}{SUFFIX}")
        if file is None or not file.is_text:
            raise StoreError(f"{self.file(name)} is not a regular file; correct the branch")
        return git.content(self.repository, self._where, "cat-file", "blob", file.id)

    # ---- writing

    def _file(self, text: bytes) -> _File:
        return _File("100644 blob", self._made("hash-object", "-w", "--stdin", data=text))

    def _commit(self, tip: str | None, files: Mapping[str, _File], subject: str) -> str:
        """Makes a commit with these files and the parent `tip`, and returns its id."""
        rows = "".join(f"{file.kind} {file.id}\t{name}\0" for name, file in files.items())
        tree = self._made("mktree", "-z", data=rows.encode(errors="surrogateescape"))
        parent = ("-p", tip) if tip is not None else ()
        return self._made("commit-tree", tree, *parent, data=f"{subject}\n".encode(errors="replace"))

    def _made(self, *arguments: str, data: bytes) -> str:
        return git.content(self.repository, self._where, *arguments, data=data).decode().strip()

    def _check_names(self) -> None:
        if not self.repository.is_dir():
            raise StudyError(
                f"{self._where}: there is no directory {self.repository}; name a directory that is a git repository"
            )
        git.output(self.repository, self._where, "rev-parse", "--git-dir")
        named = git.run(self.repository, "check-ref-format", "--branch", self._branch)
        if named.stdout.strip() != self._branch or is_commit(self._branch):
            raise StudyError(
                f"{self._where}: {quoted(self._branch)} is not a valid name of a branch; write git:PATH@BRANCH"
            )

    def _check_writable(self) -> None:
        """Raises StudyError if pgtrial cannot add a commit to the branch."""
        self._check_names()
        listed = git.output(self.repository, self._where, "worktree", "list", "--porcelain")
        if f"branch refs/heads/{self._branch}" in listed.splitlines():
            raise StudyError(
                f"{self._where}: the branch is checked out, and a new commit would not change its files in the work "
                "tree; name a branch that is not checked out"
            )
        if (
            git.commit_named(self.repository, f"refs/heads/{self._branch}") is None
            and self._remote_that_has_it() is not None
        ):
            raise StudyError(f"{self._where}: the repository has no branch {quoted(self._branch)}; {self._cure()}")
        for role in ("AUTHOR", "COMMITTER"):
            if git.run(self.repository, "var", f"GIT_{role}_IDENT").returncode != 0:
                raise StudyError(
                    f"{self._where}: git has no name and e-mail address for a commit; set user.name and user.email "
                    "with git config"
                )

    def _check_is_of_histories(self, files: Mapping[str, _File]) -> None:
        """Raises StudyError if the branch has files but no history, since it is then probably a branch with the source
        code of a project."""
        if files and not any(map(_is_history, files)):
            raise StudyError(
                f"{self._where}: the branch has files but no history; name a branch that does not exist yet, which "
                "pgtrial will create"
            )


def _is_history(name: str) -> bool:
    return name.endswith(SUFFIX) and not name.startswith(".")
