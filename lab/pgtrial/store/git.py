"""Runs commands of git.

git is run so that it executes no hook and no command that a repository or a URL names, asks for no password, and
fetches only by https, http, ssh, git and file. An exception are filters, which a repository's configuration can define
and which run commands on the contents of files: a git command that applies them must run in the repository of
`without_settings_of`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pgtrial.model.errors import StudyError
from pgtrial.store.temporary import temporary_folder

_SAFE = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "protocol.ext.allow=never", "gc.auto=0")
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file",
    "GIT_OPTIONAL_LOCKS": "0",
    # otherwise a partial clone would fetch missing objects, with commands from its own configuration
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
}
_ROLE_OF_THE_CALLER = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")
"""Environment variables that git sets for hooks. They are removed, since git would use them in place of the repository
that pgtrial names."""

FOREIGN = "dubious ownership"
"""Words by which pgtrial recognises git's message that a repository belongs to another account."""


@contextmanager
def without_settings_of(repository: Path, commit: str) -> Iterator[Path]:
    """Yields a temporary bare repository that has the objects of `repository` and this commit as its HEAD, but none of
    the settings of `repository`. Filters that `.gitattributes` names run no command in this repository, unless the
    user's own settings of git define one for them.

    Raises StudyError if git fails.
    """
    where = str(repository)
    objects = output(repository, where, "rev-parse", "--path-format=absolute", "--git-path", "objects").removesuffix(
        "\n"
    )
    kind = output(repository, where, "rev-parse", "--show-object-format").strip()
    with temporary_folder() as aside:
        output(None, where, "init", "--quiet", "--bare", "--template=", f"--object-format={kind}", "--", str(aside))
        (aside / "objects" / "info").mkdir(parents=True, exist_ok=True)
        (aside / "objects" / "info" / "alternates").write_text(f"{objects}\n")
        (aside / "HEAD").write_text(f"{commit}\n")
        yield aside


def run(repository: Path | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a command of git, and returns its result, even if it failed. Raises StudyError if git is not installed."""
    done = _run(repository, arguments, b"")
    return subprocess.CompletedProcess(done.args, done.returncode, _text(done.stdout), _text(done.stderr))


def output(repository: Path | None, where: str, *arguments: str) -> str:
    """Runs a command of git, and returns the text that it prints. If it fails, raises StudyError, whose message begins
    with `where` and has git's own words."""
    return _text(content(repository, where, *arguments))


def content(repository: Path | None, where: str, *arguments: str, data: bytes = b"") -> bytes:
    """Runs a command of git with `data` on its standard input, and returns the bytes that it prints. If it fails,
    raises StudyError, whose message begins with `where`."""
    done = _run(repository, arguments, data)
    if done.returncode != 0:
        raise refused(where, _text(done.stderr))
    return done.stdout


def apply_patch(directory: Path, where: str, patch: str) -> None:
    """Applies a patch to the files of a directory. Files outside of it are never changed. If the patch does not apply,
    raises StudyError, whose message begins with `where`, and changes nothing."""
    # if the directory lay in a work tree, git would leave out all files that the patch names by other paths
    alone = {"GIT_CEILING_DIRECTORIES": str(directory.resolve().parent)}
    done = _run(directory, ("apply", "--whitespace=nowarn", "-"), patch.encode(), alone)
    if done.returncode != 0:
        raise StudyError(f"{where}: {words_of(_text(done.stderr))}; make the patch again for this commit")


def commit_named(repository: Path, ref: str) -> str | None:
    """Returns the full id of the commit that a ref names; None if the repository has no such commit."""
    done = run(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    return done.stdout.strip() if done.returncode == 0 else None


def words_of(stderr: str) -> str:
    """Returns the first error message in git's standard error, without a prefix such as `fatal:`."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    words = next((line for line in lines if line.startswith(("fatal:", "error:"))), "git fails").rstrip(".")
    return words.partition(": ")[2] or words


def refused(where: str, stderr: str) -> StudyError:
    """Returns the error for a failed command of git, with a remedy if one is known."""
    words = words_of(stderr)
    cure = "; name a directory that is a git repository" if words.startswith("not a git repository") else ""
    if FOREIGN in words:
        cure = "; if you trust the repository, run git config --global --add safe.directory with its path"
    return StudyError(f"{where}: {words}{cure}")


def command(repository: Path | None, *arguments: str) -> list[str]:
    """Returns the command line for git, with settings that make it safe on untrusted repositories."""
    settings = [part for setting in _SAFE for part in ("-c", setting)]
    where = [] if repository is None else ["-C", str(repository)]
    return ["git", *settings, *where, *arguments]


def environment() -> dict[str, str]:
    """Returns the environment variables with which all commands of git run."""
    kept = {name: value for name, value in os.environ.items() if name not in _ROLE_OF_THE_CALLER}
    return {"GIT_SSH_COMMAND": "ssh -o BatchMode=yes", **kept, **_ENVIRONMENT}


def _run(
    repository: Path | None, arguments: tuple[str, ...], data: bytes, extra: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            command(repository, *arguments),
            input=data,
            capture_output=True,
            check=False,
            env={**environment(), **(extra or {})},
        )
    except FileNotFoundError:
        raise StudyError("git is needed to read a repository, and is not installed; install git") from None


def _text(printed: bytes) -> str:
    return printed.decode(errors="replace")
