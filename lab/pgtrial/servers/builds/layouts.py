"""Makes layouts of a server: its program is linked several times from the same object files in different orders, so
that the code has different addresses.

A layout is a directory with the same structure as the installation. It has its own program, such as
`layouts/3/bin/postgres`, and symbolic links to all other files. The structure is needed because PostgreSQL finds its
files relative to the path of its program (src/port/path.c).
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
"""The names of two folders of a build: the folder with the source, in which configure and make build, and the folder in
which meson builds."""

_LAYOUTS = "layouts"
_PROGRAM = Path("src/backend/postgres")


@dataclass(frozen=True)
class _Link:
    """The command that links the server's program, and the directory in which this command runs."""

    words: Sequence[str]
    directory: Path

    def shuffled(self, layout: int) -> list[str]:
        """Returns the link command with its object files in the random order of a layout. The layout's number is the
        seed, so that the order is the same on every machine."""
        objects = [word for word in self.words if word.endswith(".o")]
        Random(layout).shuffle(objects)
        drawn = iter(objects)
        return [next(drawn) if word.endswith(".o") else word for word in self.words]


def make_layouts(count: int, commands: Commands, work: Path, prefix: Path, *, by_meson: bool) -> None:
    """Makes the layouts 1 to `count` of the server that is installed below `prefix`. Raises BuildError."""
    link = _by_meson(commands, work / OBJECTS) if by_meson else _by_make(commands, work / SOURCE)
    installed = prefix / "bin" / "postgres"
    as_built = installed.rename(work / "postgres")
    for layout in range(1, count + 1):
        commands.run(link.shuffled(layout), link.directory)
        if (
            by_meson
        ):  # a plain copy does not suffice: meson changes the library paths (RPATH) when it installs a program
            commands.run(["meson", "install", "--no-rebuild", "--quiet", "--only-changed"], work / OBJECTS)
        else:
            shutil.copy(work / SOURCE / _PROGRAM, installed)
        installed.rename(_directory(prefix, layout) / "postgres")
    shutil.move(as_built, installed)
    if len({_digest(program) for program in (installed, *_programs(prefix))}) == 1:
        raise BuildError(
            "all layouts of the program are identical, because the linker orders the code by itself; leave layouts out"
        )


def in_layout(server: ServerBinaries, layout: int | None) -> ServerBinaries:
    """Returns the server with its bin directory replaced by that of a layout. With None, returns the server with the
    program as it was built."""
    return server if layout is None else replace(server, bin=server.bin.parent / _LAYOUTS / str(layout) / "bin")


def copy_layouts(server: ServerBinaries, programs: Path) -> None:
    """Copies the layouts of a server to a copy of its installation, whose bin directory is `programs`."""
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
            f"layouts need the command that links {_PROGRAM}, but the build does not print this command; leave layouts "
            "out"
        )
    return _Link(words, directory)


def _directory(prefix: Path, layout: int) -> Path:
    """Makes the bin directory of a layout and returns it. It has symbolic links to everything in the installation
    except the server's program."""
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
