"""Commands of git.

Git runs no hook and no command that a repository or a URL names, asks for no password, and fetches by https, http, ssh,
git and file alone. What converts contents by filters of the repository's configuration takes `without_settings_of`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from pgtrial.model.errors import StudyError

_SAFE = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "protocol.ext.allow=never", "gc.auto=0")
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file",
    "GIT_OPTIONAL_LOCKS": "0",
    # a partial clone would fetch what it lacks, by commands of its own configuration
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
}
_ROLE_OF_THE_CALLER = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")
"""Variables that a hook of git has, under which git would read another repository than the one that is named."""

FOREIGN = "dubious ownership"
"""Git's words for a repository of another account."""


@contextmanager
def without_settings_of(repository: Path, commit: str) -> Iterator[Path]:
    """Yields a bare repository for a moment that has the objects of another one, this commit as its HEAD, and none of
    the other's settings: filters that `.gitattributes` names and its own configuration defines are no commands there.

    Raises StudyError.
    """
    where = str(repository)
    objects = output(repository, where, "rev-parse", "--path-format=absolute", "--git-path", "objects").removesuffix(
        "\n"
    )
    kind = output(repository, where, "rev-parse", "--show-object-format").strip()
    with TemporaryDirectory(prefix="pgtrial-") as folder:
        aside = Path(folder)
        output(None, where, "init", "--quiet", "--bare", "--template=", f"--object-format={kind}", "--", folder)
        (aside / "objects" / "info").mkdir(parents=True, exist_ok=True)
        (aside / "objects" / "info" / "alternates").write_text(f"{objects}\n")
        (aside / "HEAD").write_text(f"{commit}\n")
        yield aside


def run(repository: Path | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of git, whatever its exit status. Raises StudyError if there is no git."""
    done = _run(repository, arguments, b"")
    return subprocess.CompletedProcess(done.args, done.returncode, _text(done.stdout), _text(done.stderr))


def output(repository: Path | None, where: str, *arguments: str) -> str:
    """What a command of git prints. Raises StudyError in git's words, which begins with `where`."""
    return _text(content(repository, where, *arguments))


def content(repository: Path | None, where: str, *arguments: str, data: bytes = b"") -> bytes:
    """The bytes that a command of git prints, with `data` on its standard input. Raises StudyError as `output`."""
    done = _run(repository, arguments, data)
    if done.returncode != 0:
        raise refused(where, _text(done.stderr))
    return done.stdout


def words_of(stderr: str) -> str:
    """The first complaint of git."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    words = next((line for line in lines if line.startswith(("fatal:", "error:"))), "git fails").rstrip(".")
    return words.partition(": ")[2] or words


def refused(where: str, stderr: str) -> StudyError:
    """The sentence for what git refuses."""
    words = words_of(stderr)
    cure = "; name a repository of git" if words.startswith("not a git repository") else ""
    if FOREIGN in words:
        cure = "; if you trust it, run git config --global --add safe.directory with its path"
    return StudyError(f"{where}: {words}{cure}")


def command(repository: Path | None, *arguments: str) -> list[str]:
    """The command line."""
    settings = [part for setting in _SAFE for part in ("-c", setting)]
    where = [] if repository is None else ["-C", str(repository)]
    return ["git", *settings, *where, *arguments]


def environment() -> dict[str, str]:
    """The environment of all commands."""
    kept = {name: value for name, value in os.environ.items() if name not in _ROLE_OF_THE_CALLER}
    return {"GIT_SSH_COMMAND": "ssh -o BatchMode=yes", **kept, **_ENVIRONMENT}


def _run(repository: Path | None, arguments: tuple[str, ...], data: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            command(repository, *arguments), input=data, capture_output=True, check=False, env=environment()
        )
    except FileNotFoundError:
        raise StudyError("git is not installed here, and a repository is named; install git") from None


def _text(printed: bytes) -> str:
    return printed.decode(errors="replace")
