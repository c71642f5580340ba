"""A server from source, by meson or by configure and make."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgtrial.machines.machine import LOCAL
from pgtrial.model.study.servers import MadeHere
from pgtrial.model.study.sources import GitSource, Source, source_of
from pgtrial.servers.builds.commands import Commands, compiler_version, jobs, make_program
from pgtrial.servers.builds.kept import BuildError, BuildRecord, Made, Order
from pgtrial.servers.builds.layouts import OBJECTS, SOURCE, make_layouts
from pgtrial.store.sources import described, export

_INSTALLATION = "install"
_OUTSIDE = ("doc", "src/test", "src/tutorial", "src/tools", "src/interfaces/ecpg/test", "src/backend/port/win32")
"""Folders of PostgreSQL's source that a build does not compile."""


@dataclass(frozen=True)
class _Recipe:
    """What a build of a server depends on."""

    source: Source
    options: tuple[str, ...]
    compiler: str
    version: str
    """Of the compiler, in its words."""
    lto: bool
    meson: bool
    """Whether meson and ninja are installed."""
    layouts: int
    """How many layouts it has beside the one of its own; 0: none."""

    @property
    def digest(self) -> str:
        parts: list[Any] = [self.source.text, self.options, self.compiler, self.version, self.lto, self.meson]
        if self.layouts:
            parts.append(self.layouts)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]


def server_order(setup: MadeHere, say: Callable[[str], None]) -> Order:
    """The build that a server from source is. Raises BuildError where there is no such compiler."""
    compiler = setup.compiler or "cc"
    recipe = _Recipe(
        source_of(setup.postgres),
        tuple(setup.build or ()),
        compiler,
        compiler_version(compiler),
        bool(setup.lto),
        meson=shutil.which("meson") is not None and shutil.which("ninja") is not None,
        layouts=setup.layouts or 0,
    )
    source = recipe.source
    named = source.ref[:10] if isinstance(source, GitSource) else source.digest[:10]
    origin = source.repository if isinstance(source, GitSource) else source.directory

    def make(home: Path, log: Path, earlier: BuildRecord | None) -> Made:
        return _make(recipe, home, log, say, earlier)

    return Order(f"pg-{named}-{recipe.digest}", source.short, origin, make)


def _make(recipe: _Recipe, home: Path, log: Path, say: Callable[[str], None], earlier: BuildRecord | None) -> Made:
    work, prefix = home / "work", home / _INSTALLATION
    source = work / SOURCE
    say(f"building {recipe.source.short}: taking its files")
    work.mkdir()
    export(recipe.source, source, say)
    by_meson = _by_meson(recipe, source)
    expected = earlier.steps if earlier is not None else _compiled_files(source)
    commands = Commands(recipe.source.short, log, say, expected)
    say(f"building {recipe.source.short} by {'meson' if by_meson else 'configure and make'}")
    (_run_meson if by_meson else _run_make)(recipe, commands, source, prefix)
    if not (prefix / "bin" / "postgres").is_file():
        raise BuildError(f"{recipe.source.short} was built and has no bin/postgres; name the source of PostgreSQL")
    if recipe.layouts:
        say(f"building {recipe.source.short}: linking {recipe.layouts} layouts")
        make_layouts(recipe.layouts, commands, work, prefix, by_meson=by_meson)
    shutil.rmtree(work)
    LOCAL.tool(["chmod", "-R", "u+rwX,go+rX,go-w", prefix])
    facts = {
        "source": recipe.source.text,
        "source_subject": described(recipe.source),
        "build_system": "meson" if by_meson else "configure",
        "build_options": list(recipe.options),
        "compiler": recipe.version,
        "lto": recipe.lto,
        **({"layouts": recipe.layouts} if recipe.layouts else {}),
    }
    return Made(f"{_INSTALLATION}/bin", facts, [], commands.steps)


def _by_meson(recipe: _Recipe, source: Path) -> bool:
    """Which of the two builds a source: the kind of its options decides, then what the source and the machine have."""
    of_meson = [option for option in recipe.options if option.startswith("-D")]
    of_configure = [option for option in recipe.options if not option.startswith("-D")]
    if of_meson and of_configure:
        raise BuildError(
            f"build has options of meson ({of_meson[0]}) and of configure ({of_configure[0]}); write those of one"
        )
    has_meson, has_configure = (source / "meson.build").is_file(), (source / "configure").is_file()
    if not has_meson and not has_configure:
        raise BuildError(f"{recipe.source.short} has neither meson.build nor configure; name the source of PostgreSQL")
    if of_meson and not has_meson:
        raise BuildError(
            f"{recipe.source.short} has no meson.build (PostgreSQL 16 has one first); write options of configure"
        )
    if has_meson and (of_meson or not has_configure) and not recipe.meson:
        raise BuildError(
            f"{recipe.source.short} is to be built by meson, and meson or ninja is not installed; install both (pip "
            "install meson ninja), or write options of configure"
        )
    return has_meson and recipe.meson and not of_configure


def _run_meson(recipe: _Recipe, commands: Commands, source: Path, prefix: Path) -> None:
    objects = source.with_name(OBJECTS)
    options = [f"--prefix={prefix}", *(["-Db_lto=true"] if recipe.lto else []), *recipe.options]
    commands.run(["meson", "setup", *options, objects, source], source, {"CC": recipe.compiler})
    commands.run(["ninja", jobs(), "-C", objects], source)
    commands.run(["meson", "install", "--no-rebuild", "--quiet", "-C", objects], source)


def _run_make(recipe: _Recipe, commands: Commands, source: Path, prefix: Path) -> None:
    make = make_program()
    options = [f"--prefix={prefix}", f"CC={recipe.compiler}", *_with_lto(recipe)]
    commands.run(["./configure", *options], source)
    folders = [source, *([source / "contrib"] if (source / "contrib" / "Makefile").is_file() else [])]
    for folder in folders:
        commands.run([make, jobs()], folder)
    for folder in folders:
        commands.run([make, "install"], folder)


def _with_lto(recipe: _Recipe) -> Sequence[str]:
    """The options of configure, with those of LTO: archives need the compiler's own ar."""
    if not recipe.lto:
        return recipe.options
    clang = "clang" in recipe.version
    given = [option for option in recipe.options if option.startswith("CFLAGS=")]
    flags = given[-1].removeprefix("CFLAGS=") if given else "-O2"
    archiver = "llvm-ar" if clang else re.sub(r"(gcc|cc)(?=(-\d+)?$)", "gcc-ar", recipe.compiler)
    if shutil.which(archiver) is None:
        raise BuildError(f"lto needs {archiver}, which is not installed; install it, or leave lto out")
    kept = [option for option in recipe.options if option not in given]
    return [*kept, f"CFLAGS={flags} {'-flto=thin' if clang else '-flto=auto'}", f"AR={archiver}"]


def _compiled_files(source: Path) -> int:
    """About how many files a build of PostgreSQL compiles; used until a build of the same source has counted them."""
    outside = tuple(str(source / folder) for folder in _OUTSIDE)
    return sum(not str(path).startswith(outside) for path in source.rglob("*.c"))
