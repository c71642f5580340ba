"""Builds a PostgreSQL server from source, with meson or with configure and make."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgtrial.files.trust import paths_in, refusal_to_run
from pgtrial.model.quoting import quoted
from pgtrial.model.study.patches import Patch
from pgtrial.model.study.servers import MadeHere
from pgtrial.model.study.sources import GitSource, Source, source_of
from pgtrial.servers.builds.commands import Commands, compiler_version, jobs, make_program
from pgtrial.servers.builds.kept import BuildError, BuildRecord, Made, Order
from pgtrial.servers.builds.layouts import OBJECTS, SOURCE, make_layouts
from pgtrial.servers.builds.training import Profile
from pgtrial.servers.installations import resolve
from pgtrial.servers.run_directory import RunDirectory
from pgtrial.servers.trees import open_to_all
from pgtrial.store.git import apply_patch
from pgtrial.store.sources import described, export

_INSTALLATION = "install"
_OUTSIDE = ("doc", "src/test", "src/tutorial", "src/tools", "src/interfaces/ecpg/test", "src/backend/port/win32")
"""The folders of PostgreSQL's source that a build does not compile."""


@dataclass(frozen=True)
class _Recipe:
    """Everything on which the build of a server depends. Its digest is part of the build's name."""

    source: Source
    patches: tuple[Patch, ...]
    """The patches of the source, in the order in which they are applied."""
    options: tuple[str, ...]
    compiler: str
    version: str
    """The compiler's version, as the compiler prints it."""
    lto: bool
    pgo: bool
    meson: bool
    """True if meson and ninja are installed."""
    layouts: int
    """The number of layouts: how many more times the server's program is linked, each time with its object files in
    another order. With 0, it is linked once."""

    @property
    def label(self) -> str:
        """The name of the source with its patches, for the progress and for messages."""
        titles = " and ".join(patch.title for patch in self.patches)
        return f"{self.source.short} with {titles}" if titles else self.source.short

    @property
    def clang(self) -> bool:
        return "clang" in self.version

    @property
    def digest(self) -> str:
        parts: list[Any] = [self.source.text, self.options, self.compiler, self.version, self.lto, self.meson]
        if self.layouts:
            parts.append(self.layouts)
        if self.pgo:
            parts.append("pgo")
        parts += [patch.text for patch in self.patches]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]


def server_order(setup: MadeHere, run_directory: RunDirectory, report: Callable[[str], None]) -> Order:
    """Returns the order for a server that is built from source. `Builds.ensure` finds this build on the machine, or
    makes it. If the build uses a profile (PGO), its training load runs in `run_directory`.

    Raises BuildError if the compiler is not installed.
    """
    for path in paths_in(setup.build or ()):
        if (why := refusal_to_run(path)) is not None:
            raise BuildError(f"build: {why}")
    compiler = setup.compiler or "cc"
    recipe = _Recipe(
        source_of(setup.postgres),
        tuple(map(Patch, setup.patches or ())),
        tuple(setup.build or ()),
        compiler,
        compiler_version(compiler),
        bool(setup.lto),
        bool(setup.pgo),
        meson=shutil.which("meson") is not None and shutil.which("ninja") is not None,
        layouts=setup.layouts or 0,
    )
    source = recipe.source
    named = source.ref[:10] if isinstance(source, GitSource) else source.digest[:10]
    origin = source.repository if isinstance(source, GitSource) else source.directory

    def make(home: Path, log: Path, earlier: BuildRecord | None) -> Made:
        return _make(recipe, run_directory, home, log, report, earlier=earlier)

    return Order(f"pg-{named}-{recipe.digest}", recipe.label, origin, make)


def _make(
    recipe: _Recipe,
    run_directory: RunDirectory,
    home: Path,
    log: Path,
    report: Callable[[str], None],
    *,
    earlier: BuildRecord | None,
) -> Made:
    work, prefix = home / "work", home / _INSTALLATION
    source = work / SOURCE
    report(f"building {recipe.label}: fetching its source files")
    work.mkdir()
    export(recipe.source, source, report)
    for patch in recipe.patches:
        apply_patch(source, f"the patch {quoted(patch.title)} does not apply to {recipe.source.short}", patch.text)
    by_meson = _by_meson(recipe, source)
    system = (_Meson if by_meson else _Make)(recipe, source, prefix)
    expected = earlier.steps if earlier is not None else _compiled_files(source)
    report(f"building {recipe.label} by {'meson' if by_meson else 'configure and make'}")
    system.configure(Commands(recipe.label, log, report))
    flags: Sequence[str] = ()
    if recipe.pgo:
        work.chmod(0o755)  # the trained server, which runs as the servers' account, writes its counters below it
        profile = Profile(work / "profile", clang=recipe.clang)
        profile.check()
        counting = Commands(f"{recipe.label} with counters", log, report, expected)
        # GCC's counters call exit(). The makefile of libpq fails if libpq calls exit(), except in builds for coverage
        system.install(counting, profile.counting, for_coverage=not recipe.clang)
        _check_installed(recipe, prefix)
        open_to_all(prefix)
        profile.collect(
            resolve(str(prefix / "bin")), run_directory, log, lambda what: report(f"{recipe.label}: {what}")
        )
        flags = profile.using
    commands = Commands(recipe.label, log, report, expected)
    system.install(commands, flags)
    _check_installed(recipe, prefix)
    if recipe.layouts:
        report(f"building {recipe.label}: linking {recipe.layouts} layouts")
        make_layouts(recipe.layouts, commands, work, prefix, by_meson=by_meson)
    open_to_all(prefix)
    shutil.rmtree(work)
    facts = {
        "source": recipe.source.text,
        "source_subject": described(recipe.source),
        "build_system": "meson" if by_meson else "configure",
        "build_options": list(recipe.options),
        "compiler": recipe.version,
        "lto": recipe.lto,
        **({"patches": [patch.label for patch in recipe.patches]} if recipe.patches else {}),
        **({"pgo": True} if recipe.pgo else {}),
        **({"layouts": recipe.layouts} if recipe.layouts else {}),
    }
    return Made(f"{_INSTALLATION}/bin", facts, [], commands.steps)


def _check_installed(recipe: _Recipe, prefix: Path) -> None:
    """Raises BuildError if the build has not installed a server."""
    if not (prefix / "bin" / "postgres").is_file():
        raise BuildError(f"{recipe.label} was built but has no bin/postgres; name the source of PostgreSQL")


def _by_meson(recipe: _Recipe, source: Path) -> bool:
    """True if the source is to be built with meson, false if with configure and make. The form of the build options
    decides: options of meson begin with `-D`. Without options, meson is used if the source and the machine have it.
    Raises BuildError if the chosen system is missing."""
    of_meson = [option for option in recipe.options if option.startswith("-D")]
    of_configure = [option for option in recipe.options if not option.startswith("-D")]
    if of_meson and of_configure:
        raise BuildError(
            f"build has an option of meson ({of_meson[0]}) and one of configure ({of_configure[0]}); write options of "
            "only one of them"
        )
    has_meson, has_configure = (source / "meson.build").is_file(), (source / "configure").is_file()
    if not has_meson and not has_configure:
        raise BuildError(f"{recipe.label} has neither meson.build nor configure; name the source of PostgreSQL")
    if of_meson and not has_meson:
        raise BuildError(
            f"{recipe.label} has no meson.build (PostgreSQL has one since version 16); write options of configure"
        )
    if has_meson and (of_meson or not has_configure) and not recipe.meson:
        raise BuildError(
            f"{recipe.label} must be built with meson, but meson or ninja is not installed; install both (pip "
            "install meson ninja), or write options of configure"
        )
    return has_meson and recipe.meson and not of_configure


@dataclass(frozen=True)
class _Meson:
    """The steps of a build with meson and ninja."""

    recipe: _Recipe
    source: Path
    prefix: Path

    @property
    def _objects(self) -> Path:
        return self.source.with_name(OBJECTS)

    def configure(self, commands: Commands) -> None:
        recipe = self.recipe
        options = [f"--prefix={self.prefix}", *(["-Db_lto=true"] if recipe.lto else []), *recipe.options]
        commands.run(["meson", "setup", *options, self._objects, self.source], self.source, {"CC": recipe.compiler})

    def install(self, commands: Commands, flags: Sequence[str], *, for_coverage: bool = False) -> None:
        """Compiles everything again with these flags in addition to the study's own, links with them, and installs."""
        if flags:
            with_flags = [
                f"-D{name}={' '.join([_value(self.recipe.options, f'-D{name}='), *flags]).strip()}"
                for name in ("c_args", "c_link_args")
            ]
            coverage = f"-Db_coverage={str(for_coverage).lower()}"
            commands.run(["meson", "configure", *with_flags, coverage, self._objects], self.source)
        commands.run(["ninja", jobs(), "-C", self._objects], self.source)
        commands.run(["meson", "install", "--no-rebuild", "--quiet", "-C", self._objects], self.source)


@dataclass(frozen=True)
class _Make:
    """The steps of a build with configure and make."""

    recipe: _Recipe
    source: Path
    prefix: Path

    def configure(self, commands: Commands) -> None:
        options = [f"--prefix={self.prefix}", f"CC={self.recipe.compiler}", *_with_lto(self.recipe)]
        commands.run(["./configure", *options], self.source)

    def install(self, commands: Commands, flags: Sequence[str], *, for_coverage: bool = False) -> None:
        """Compiles everything again with these flags in addition to the study's own, links with them, and installs."""
        make = [make_program(), *(["enable_coverage=yes"] if for_coverage else [])]
        contrib = self.source / "contrib"
        folders = [self.source, *([contrib] if (contrib / "Makefile").is_file() else [])]
        # PostgreSQL's makefiles use COPT for compiling and linking, and do not pass it on to the builds of extensions
        extra = {"COPT": " ".join(flags)} if flags else {}
        if flags:  # make compares only the times of files, and would not notice that the flags have changed
            commands.run([make_program(), "clean"], self.source)
        for folder in folders:
            commands.run([*make, jobs()], folder, extra)
        for folder in folders:
            commands.run([*make, "install"], folder, extra)


def _with_lto(recipe: _Recipe) -> Sequence[str]:
    """Returns the options of configure. With `lto` (link-time optimization), they include its compiler flag and the
    compiler's own ar, which archives of such object files need. Raises BuildError if this ar is not installed."""
    if not recipe.lto:
        return recipe.options
    clang = recipe.clang
    flags = _value(recipe.options, "CFLAGS=") or "-O2"
    archiver = "llvm-ar" if clang else re.sub(r"(gcc|cc)(?=(-\d+)?$)", "gcc-ar", recipe.compiler)
    if shutil.which(archiver) is None:
        raise BuildError(f"lto needs {archiver}, which is not installed; install it, or leave lto out")
    kept = [option for option in recipe.options if not option.startswith("CFLAGS=")]
    return [*kept, f"CFLAGS={flags} {'-flto=thin' if clang else '-flto=auto'}", f"AR={archiver}"]


def _value(options: Sequence[str], name: str) -> str:
    """Returns the value of the last option that begins with `name`; empty if no option does."""
    return next((option.removeprefix(name) for option in reversed(options) if option.startswith(name)), "")


def _compiled_files(source: Path) -> int:
    """Estimates how many files a build of PostgreSQL compiles. The estimate serves for the progress of the first build
    of a source; later builds use the count of an earlier one."""
    outside = tuple(str(source / folder) for folder in _OUTSIDE)
    return sum(not str(path).startswith(outside) for path in source.rglob("*.c"))
