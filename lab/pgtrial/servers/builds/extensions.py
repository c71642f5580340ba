"""Builds extensions from source and installs them into a copy of a server's installation. The installation itself is
not changed.

A copy works like the original if programs, libraries and shared files have the same paths relative to each other:
PostgreSQL finds its files relative to its program (src/port/path.c).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgtrial.model.study.sources import GitSource, Source
from pgtrial.servers.builds.commands import Commands, compiler_version, make_program
from pgtrial.servers.builds.kept import BuildError, BuildRecord, Made, Order, record_beside
from pgtrial.servers.builds.layouts import copy_layouts, digests_of_layouts
from pgtrial.servers.installations import ServerBinaries
from pgtrial.servers.installed_code import digest_of_code
from pgtrial.servers.trees import open_to_all
from pgtrial.store.sources import described, export

_WRITTEN = ("bindir", "sharedir", "pkglibdir")
_READ = ("libdir", "includedir", "includedir-server", "pkgincludedir", "pgxs")
_OF_THE_SERVER = re.compile(r"-W(?!.,).*|-fprofile-.*")
"""Matches compiler flags that are valid only for the build of the server itself: warnings that another compiler may not
know, and options that use the server's profile (PGO)."""

_SYSTEM = (Path("/"), Path("/usr"), Path("/usr/local"))


@dataclass(frozen=True)
class _Recipe:
    """Everything on which a copy of a server with extensions depends. Its digest is part of the build's name."""

    server: ServerBinaries
    sources: Sequence[Source]
    compiler: str | None
    """The C compiler; None: the compiler with which the server was built."""

    @property
    def label(self) -> str:
        return f"{' and '.join(source.short for source in self.sources)} for PostgreSQL {self.server.version}"

    @property
    def digest(self) -> str:
        texts = [source.text for source in self.sources]
        version = compiler_version(self.compiler) if self.compiler is not None else None
        code = [digest_of_code(self.server.bin.parent), *digests_of_layouts(self.server)]
        parts = [*code, self.server.version, texts, self.compiler, version]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def extension_order(
    server: ServerBinaries, sources: Sequence[Source], compiler: str | None, report: Callable[[str], None]
) -> Order:
    """Returns the order for a copy of a server's installation with these extensions. `Builds.ensure` finds this build
    on the machine, or makes it. Raises BuildError."""
    recipe = _Recipe(server, sources, compiler)
    first = sources[0]
    origin = first.repository if isinstance(first, GitSource) else first.directory

    def make(home: Path, log: Path, earlier: BuildRecord | None) -> Made:
        del earlier  # extensions are small, so no progress is estimated from an earlier build
        return _make(recipe, home, log, report)

    return Order(f"pg{server.version}-with-{recipe.digest}", recipe.label, origin, make)


def _make(recipe: _Recipe, home: Path, log: Path, report: Callable[[str], None]) -> Made:
    report(f"building {recipe.label}")
    programs = _copied(recipe.server, home / "install")
    copy_layouts(recipe.server, programs)
    config = programs / "pg_config"
    controls = Path(_asked(config, "sharedir")) / "extension"
    before = _controls(controls)
    commands = Commands(recipe.label, log, report)
    for number, source in enumerate(recipe.sources):
        folder = home / "work" / str(number)
        export(source, folder, report)
        _build(recipe, source, commands, folder, config)
    shutil.rmtree(home / "work")
    open_to_all(home / "install")
    of_server = record_beside(recipe.server.bin)
    facts = {
        **(of_server.facts if of_server is not None else {}),
        "extension_sources": [source.text for source in recipe.sources],
        "extension_subjects": [described(source) for source in recipe.sources],
    }
    return Made(str(programs.relative_to(home)), facts, sorted(_controls(controls) - before), commands.steps)


def _build(recipe: _Recipe, source: Source, commands: Commands, folder: Path, config: Path) -> None:
    if any((folder / name).is_file() for name in ("Makefile", "GNUmakefile", "makefile")):
        options = [
            f"PG_CONFIG={config}",
            *([f"CC={recipe.compiler}"] if recipe.compiler is not None else []),
            *_of_this_machine(config),
        ]
        commands.run([make_program(), *options], folder)
        commands.run([make_program(), *options, "install"], folder)
    elif (folder / "Cargo.toml").is_file():
        if shutil.which("cargo-pgrx") is None:
            raise BuildError(
                f"{source.short} has to be built with pgrx, which is not installed; run cargo install cargo-pgrx"
            )
        # cargo pgrx needs a config.toml; it is written here, since `cargo pgrx init`, which would write it, also makes
        # clusters, and that fails as root
        home = folder.with_name(f"{folder.name}-pgrx")
        home.mkdir()
        (home / "config.toml").write_text(f"[configs]\npg{recipe.server.major} = {json.dumps(str(config))}\n")
        install = ["cargo", "pgrx", "install", "--release", "--pg-config", str(config)]
        commands.run(install, folder, {"PGRX_HOME": str(home)})
    else:
        raise BuildError(
            f"{source.short} has neither a Makefile (PGXS) nor a Cargo.toml (pgrx); name the source of an extension"
        )


def _of_this_machine(config: Path) -> list[str]:
    """Returns options of make for extensions of a server that was built on another machine. They leave out flags that
    only the server's own compiler may know, and LLVM bitcode if the server's clang is not installed on this machine."""
    made = Path(_asked(config, "pgxs")).parent.parent / "Makefile.global"
    text = made.read_text(errors="replace") if made.is_file() else ""
    options = []
    for name in ("CFLAGS", "CXXFLAGS"):
        if (flags := re.search(rf"^{name}\s*=(.*)", text, re.MULTILINE)) is not None:
            kept = [flag for flag in flags[1].split() if not _OF_THE_SERVER.fullmatch(flag)]
            options.append(f"{name}={' '.join(kept)}")
    clang = re.search(r"^CLANG\s*=\s*(\S+)", text, re.MULTILINE)
    return [*options, *([] if clang is not None and shutil.which(clang[1]) else ["with_llvm=no"])]


def _copied(server: ServerBinaries, root: Path) -> Path:
    """Copies an installation, and returns the bin directory of the copy. Raises BuildError if it cannot be copied."""
    config = server.bin / "pg_config"
    needs = f"extensions are built for PostgreSQL {server.version} in {server.bin}"
    if not config.is_file():
        raise BuildError(
            f"{needs}, which has no pg_config; install the server's development files, or name a server from source"
        )
    written = [Path(_asked(config, name)) for name in _WRITTEN]
    read = [Path(_asked(config, name)) for name in _READ]
    pgxs, headers = read[-1], read[2]
    if not pgxs.is_file() or not (headers / "postgres.h").is_file():
        major = server.major
        raise BuildError(
            f"{needs}, which has no {'PGXS' if not pgxs.is_file() else 'headers'}; install postgresql-server-dev-"
            f"{major} (postgresql{major}-devel), or name another server, such as a source or the wheel of 18"
        )
    common = Path(os.path.commonpath(written))
    # programs of a Python wheel look for their libraries in a directory beside the package
    package = common.parent
    beside = package.with_name(f"{package.name}.libs")
    directory = root / package.name / common.name if beside.is_dir() else root
    wanted = [*written, *(path if path.is_dir() else path.parent.parent for path in read)]
    within = sorted({path for path in wanted if path.is_relative_to(common) and path not in _SYSTEM})
    chosen = [path for path in within if not any(path != other and path.is_relative_to(other) for other in within)]
    system = common in _SYSTEM
    for path in chosen:
        if system and not any(path.is_relative_to(part) or part.is_relative_to(path) for part in (*written, headers)):
            continue  # libraries of the whole system need no copy, since the copied programs find the originals
        shutil.copytree(path, directory / path.relative_to(common), symlinks=True, dirs_exist_ok=True)
    if beside.is_dir():
        shutil.copytree(beside, root / beside.name, symlinks=True)
    programs = directory / server.bin.relative_to(common)
    for name in ("bindir", "sharedir", "pkglibdir"):
        if not Path(_asked(programs / "pg_config", name)).is_relative_to(root.resolve()):
            raise BuildError(
                f"{needs}, and a copy of this installation still uses the original {name}; name a server from source"
            )
    return programs


def _asked(config: Path, name: str) -> str:
    done = subprocess.run([config, f"--{name}"], capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise BuildError(f"{config} --{name} fails: {' '.join(done.stderr.split())}; name another server")
    return done.stdout.strip()


def _controls(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.control")}
