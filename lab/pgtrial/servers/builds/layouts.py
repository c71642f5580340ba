"""Layouts of a server: its program linked from the same objects in other orders, so that its code has other addresses.

A layout is a directory like the installation, `layouts/3/bin/postgres` with links to all else: PostgreSQL finds its
files by the path of its program, whose directory has to end as it was configured (src/port/path.c).
"""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from pgtrial.servers.builds.commands import Commands, make_program
from pgtrial.servers.builds.kept import BuildError
from pgtrial.servers.installations import ServerBinaries

SOURCE, OBJECTS = "source", "objects"
"""Folders of a build: the source, in which configure and make build, and the objects, in which meson builds."""

_LAYOUTS = "layouts"
_PROGRAM = Path("src/backend/postgres")


@dataclass(frozen=True)
class _Link:
    """The command that links the server's program, and the directory in which it runs."""

    words: Sequence[str]
    directory: Path

    def shuffled(self, layout: int) -> list[str]:
        """Returns the link command with its object files shuffled into the order of a layout. A layout's number gives
        the same order on every machine."""
        objects = [word for word in self.words if word.endswith(".o")]
        Random(layout).shuffle(objects)
        drawn = iter(objects)
        return [next(drawn) if word.endswith(".o") else word for word in self.words]


def make_layouts(count: int, commands: Commands, work: Path, prefix: Path, *, by_meson: bool) -> None:
    """Links the program of a build, which is installed below `prefix`, in layouts 1 to `count`. Raises BuildError."""
    link = _by_meson(commands, work / OBJECTS) if by_meson else _by_make(commands, work / SOURCE)
    installed = prefix / "bin" / "postgres"
    as_built = installed.rename(work / "postgres")
    for layout in range(1, count + 1):
        commands.run(link.shuffled(layout), link.directory)
        if by_meson:  # meson changes the paths of libraries in programs that it installs
            commands.run(["meson", "install", "--no-rebuild", "--quiet", "--only-changed"], work / OBJECTS)
        else:
            shutil.copy(work / SOURCE / _PROGRAM, installed)
        installed.rename(_directory(prefix, layout) / "postgres")
    shutil.move(as_built, installed)
    if len({_digest(program) for program in (installed, *_programs(prefix))}) == 1:
        raise BuildError("all layouts are the same program, for the linker orders it by itself; leave layouts out")


def in_layout(server: ServerBinaries, layout: int | None) -> ServerBinaries:
    """Returns the server whose program has this layout; None: the program as it was built."""
    return server if layout is None else replace(server, bin=server.bin.parent / _LAYOUTS / str(layout) / "bin")


def copy_layouts(server: ServerBinaries, programs: Path) -> None:
    """Copies the layouts of a server to its copy, whose bin directory is `programs`."""
    layouts = server.bin.parent / _LAYOUTS
    if layouts.is_dir():
        shutil.copytree(layouts, programs.parent / _LAYOUTS, symlinks=True)


def digests_of_layouts(server: ServerBinaries) -> list[str]:
    """Returns the digests of a server's programs in all layouts; empty if it has no layouts."""
    return list(map(_digest, _programs(server.bin.parent)))


def _by_make(commands: Commands, source: Path) -> _Link:
    (source / _PROGRAM).unlink(missing_ok=True)
    directory = (source / _PROGRAM).parent
    printed = commands.asked([make_program(), "-n", _PROGRAM.name], directory).splitlines()
    lines = [line for line in printed if line.endswith(f" -o {_PROGRAM.name}")]
    return _link(lines[-1] if lines else "", directory)


def _by_meson(commands: Commands, objects: Path) -> _Link:
    steps = json.loads(commands.asked(["ninja", "-t", "compdb", "-x"], objects) or "[]")
    texts = [step["command"] for step in steps if step["output"] == str(_PROGRAM)]
    return _link(texts[-1] if texts else "", objects)


def _link(text: str, directory: Path) -> _Link:
    words = shlex.split(text)
    if sum(word.endswith(".o") for word in words) < 2:
        raise BuildError(
            f"layouts need the command that links {_PROGRAM}, which the build does not show; leave them out"
        )
    return _Link(words, directory)


def _directory(prefix: Path, layout: int) -> Path:
    """Makes the bin directory of a layout, with links to all that the installation has beside its program, and returns
    it."""
    home = prefix / _LAYOUTS / str(layout)
    programs = home / "bin"
    programs.mkdir(parents=True)
    for path in prefix.iterdir():
        if path.name not in ("bin", _LAYOUTS):
            (home / path.name).symlink_to(Path("../..") / path.name)
    for path in (prefix / "bin").iterdir():
        if path.name != _PROGRAM.name:
            (programs / path.name).symlink_to(Path("../../../bin") / path.name)
    return programs


def _programs(prefix: Path) -> list[Path]:
    return sorted((prefix / _LAYOUTS).glob("*/bin/postgres"))


def _digest(program: Path) -> str:
    return hashlib.sha256(program.read_bytes()).hexdigest()
