"""Reads git repositories: the commit that a ref names, its files, and the commits between two commits.

Repositories that pgtrial fetched from a URL are kept in the state directory.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgtrial.model.errors import StudyError
from pgtrial.model.quoting import quoted
from pgtrial.model.study.sources import GitSource, is_commit
from pgtrial.store import git
from pgtrial.store.state import is_own, own_directory, state_root


@dataclass(frozen=True)
class Commit:
    """A commit of a repository."""

    id: str
    parents: tuple[str, ...]
    subject: str

    @property
    def short(self) -> str:
        """The first ten digits of the commit's id."""
        return self.id[:10]


def fixed(source: GitSource) -> GitSource:
    """Returns a source in which the ref (a branch, a tag or a commit) is replaced by the commit that it currently
    names. Raises StudyError if the repository cannot be read or has no such ref."""
    if source.is_fixed:
        return source
    if source.is_remote:
        return source.at(_remote_commit(source))
    return source.at(_commit(Path(source.repository), source))


def local_of(source: GitSource, report: Callable[[str], None] = lambda text: None) -> Path:
    """Returns the path of a repository on this machine that has the commit of a fixed source (one that names a commit,
    and not a branch or tag). A repository at a URL is fetched first.

    Raises StudyError if the repository cannot be fetched or lacks the commit.
    """
    if not source.is_remote:
        repository = Path(source.repository)
        _commit(repository, source)
        return repository
    kept = _fetched() / f"{hashlib.sha256(source.repository.encode()).hexdigest()[:16]}.git"
    if not kept.is_dir():
        own_directory(kept.parent)
        git.output(kept.parent, source.text, "init", "--quiet", "--bare", "--template=", "--", str(kept))
    if git.run(kept, "cat-file", "-e", f"{source.ref}^{{commit}}").returncode != 0:
        report(f"fetching {source.repository}")
        refs = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        git.output(kept, source.text, "fetch", "--quiet", "--prune", "--no-tags", "--", source.repository, *refs)
    _commit(kept, source)
    return kept


def remove_fetched() -> Path | None:
    """Removes the repositories that were fetched from URLs. Returns the directory that contained them, or None if there
    was none."""
    if not is_own(fetched := _fetched()):
        return None
    shutil.rmtree(fetched, ignore_errors=True)
    return fetched


def _fetched() -> Path:
    return state_root() / "sources"


def export(repository: Path, commit: str, directory: Path) -> None:
    """Writes all files of a commit, as they are in the commit, into a new directory. Raises StudyError if git fails."""
    directory.mkdir(parents=True)
    unpack = ["tar", "-x", "-f", "-", "--no-same-owner", "--no-same-permissions", "-C", str(directory)]
    with (
        _as_committed(repository, commit) as aside,
        subprocess.Popen(
            git.command(aside, "archive", "--format=tar", commit),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=git.environment(),
        ) as archive,
        subprocess.Popen(unpack, stdin=archive.stdout, stderr=subprocess.PIPE, text=True) as tar,
    ):
        _, words = tar.communicate()
    if archive.returncode != 0 or tar.returncode != 0:
        cure = "check it with git fsck, and complete a partial clone with git fetch --refetch --no-filter"
        reason = words.strip().splitlines()[-1] if words.strip() else cure
        raise StudyError(f"git cannot write the files of commit {commit[:10]} of {repository}: {reason}")


@contextmanager
def _as_committed(repository: Path, commit: str) -> Iterator[Path]:
    """Yields a temporary repository with the commit, whose archives leave out no file and change none. Without it, git
    would leave out the files that `.gitattributes` marks by `export-ignore`, such as a project's own benchmarks."""
    with git.without_settings_of(repository, commit) as aside:
        (aside / "info").mkdir(exist_ok=True)
        (aside / "info" / "attributes").write_text("* -export-ignore -export-subst\n")
        yield aside


def commit_of(repository: Path, ref: str) -> Commit:
    """Returns the commit that a ref of a repository names. Raises StudyError if the repository cannot be read or has no
    such ref."""
    source = GitSource(str(repository), ref)
    commit = _commit(repository, source)
    return _parsed(git.output(repository, source.text, "log", "-1", "--no-show-signature", _FORMAT, commit))[0]


def commits_between(repository: Path, good: str, bad: str, *, first_parent: bool = False) -> list[Commit]:
    """Returns the commits that can be reached from `bad` but not from `good`, the oldest first, parents before
    children.

    With `first_parent`, only the first parent of a merge is followed, so that a merge counts as one commit. Raises
    StudyError if git fails.
    """
    options = ["--first-parent"] if first_parent else []
    listed = git.output(
        repository,
        f"git:{repository}@{bad}",
        *("log", "--topo-order", "--reverse", "--no-show-signature", _FORMAT, *options, f"{good}..{bad}"),
    )
    return _parsed(listed)


def is_ancestor(repository: Path, commit: str, of: str) -> bool:
    """True if `commit` is an ancestor of the commit `of`."""
    return git.run(repository, "merge-base", "--is-ancestor", commit, of).returncode == 0


_FORMAT = "--format=%H%x00%P%x00%s"


def _parsed(listed: str) -> list[Commit]:
    rows = (line.split("\0") for line in listed.splitlines() if line)
    return [Commit(commit, tuple(parents.split()), subject) for commit, parents, subject in rows]


def listed_files(directory: Path) -> list[str] | None:
    """Returns the files below a directory of a work tree that git tracks, or that are new and not ignored; None if the
    directory is not in a work tree.

    Raises StudyError if git rejects the repository because another account owns it.
    """
    done = git.run(directory, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
    if git.FOREIGN in done.stderr:
        raise git.refused(f"source:{directory}", done.stderr)
    return [name for name in done.stdout.split("\0") if name] if done.returncode == 0 else None


def state_of(directory: Path) -> str:
    """Returns the state of a work tree as a phrase, `at 1a2b3c4d5e, changed files: 3`; empty if the directory is not in
    a work tree."""
    commit = git.commit_named(directory, "HEAD")
    if commit is None:
        return ""
    with _work_tree(directory, commit) as of_tree:
        listed = git.run(directory, *of_tree, "status", "--porcelain", "--ignore-submodules=all", "--", ".")
    changed = len(listed.stdout.splitlines())
    return f"at {commit[:10]}, " + (f"changed files: {changed}" if changed else "unchanged")


def digest_of_tracked(directory: Path) -> str | None:
    """Returns a digest of the files below a directory that git tracks, as they are now; None if there are none, or if
    git is not installed. Raises StudyError if git fails."""
    commit = git.commit_named(directory, "HEAD") if shutil.which("git") else None
    if commit is None or (tree := git.run(directory, "rev-parse", "--quiet", "--verify", "HEAD:./")).returncode != 0:
        return None
    options = ("--no-ext-diff", "--no-textconv", "--no-color", "--full-index", "--ignore-submodules=all")
    with _work_tree(directory, commit) as of_tree:
        changes = git.content(directory, str(directory), *of_tree, "diff", *options, "HEAD", "--", ".")
    return hashlib.sha256(tree.stdout.encode() + changes).hexdigest()


@contextmanager
def _work_tree(directory: Path, commit: str) -> Iterator[tuple[str, ...]]:
    """Yields options of git with which its commands compare the work tree around a directory with a commit, and apply
    no settings of the repository. Raises StudyError if git fails."""
    where = ("rev-parse", "--path-format=absolute")
    top = git.output(directory, str(directory), *where, "--show-toplevel").removesuffix("\n")
    index = git.output(directory, str(directory), *where, "--git-path", "index").removesuffix("\n")
    with git.without_settings_of(directory, commit) as aside:
        shutil.copyfile(index, aside / "index")
        yield (f"--git-dir={aside}", f"--work-tree={top}")


def _remote_commit(source: GitSource) -> str:
    names = {f"refs/heads/{source.ref}": 2, f"refs/tags/{source.ref}": 1, f"refs/tags/{source.ref}^{{}}": 0}
    names[source.ref] = 3
    listed = git.output(None, source.text, "ls-remote", "--quiet", "--", source.repository, *names)
    rows = [line.split("\t") for line in listed.splitlines()]
    matching = sorted((names[name], commit) for commit, name in rows if name in names)
    if not matching:
        raise StudyError(
            f"{source.text}: the repository has no branch or tag {quoted(source.ref)}; correct it, or give all 40 "
            "digits of a commit"
        )
    return matching[0][1]


def _commit(repository: Path, source: GitSource) -> str:
    if not repository.is_dir():
        raise StudyError(
            f"{source.text}: there is no directory {repository}; name a directory that is a git repository"
        )
    git.output(repository, source.text, "rev-parse", "--git-dir")
    commit = git.commit_named(repository, source.ref)
    if commit is None or not is_commit(commit):
        raise StudyError(
            f"{source.text}: the repository has no commit {quoted(source.ref)}; `git -C {repository} log --all "
            "--oneline` lists its commits"
        )
    return commit
