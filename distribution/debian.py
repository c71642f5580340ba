"""The Debian package, made by dpkg-deb: the engine, manual pages, completions, and the wheel.

The lab's libraries are newer than Debian's: `pgtrial` installs the wheel in a virtual environment at its first call.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Mapping
from pathlib import Path

from distribution.engine import ROOT
from distribution.running import run
from distribution.targets import Target
from pgtrial import __version__

_LAUNCHER = Path(__file__).with_name("pgtrial.sh")
_CONTROL = """\
Package: pgtrial
Version: {version}
Architecture: {architecture}
Maintainer: The pgtrial developers <nobody@pgtrial.invalid>
Installed-Size: {kilobytes}
Depends: libc6 (>= {glibc}), python3 (>= 3.11), python3-venv
Section: database
Priority: optional
Description: compare PostgreSQL set-ups by fair trials
 pgtrial runs the same load on two or more set-ups of PostgreSQL, in random
 order, and reports which one is faster, by how much, and how sure that is.
 pgtrial-engine is its load engine, which works as pgbench and as sysbench.
"""


def make_deb(target: Target, engine: Path, wheel: Path, shared: Mapping[str, bytes], work: Path) -> Path:
    """Pack the Debian package of a platform, beside its wheel. `shared` are files below /usr/share, by their paths."""
    shutil.rmtree(work, ignore_errors=True)
    _copy(engine, work / "usr/bin/pgtrial-engine", 0o755)
    _copy(wheel, work / "usr/lib/pgtrial" / wheel.name, 0o644)
    launcher = _LAUNCHER.read_text().replace("@WHEEL@", wheel.name).replace("@VERSION@", __version__)
    _write(work / "usr/bin/pgtrial", launcher.encode(), 0o755)
    changes = {"doc/pgtrial/changelog": (ROOT / "CHANGELOG.md").read_bytes()}
    for place, content in {**shared, **changes}.items():
        packed = place.startswith(("man/", "doc/"))  # Debian has these compressed, without a time in them
        name = f"{place}.gz" if packed else place
        _write(work / "usr/share" / name, gzip.compress(content, mtime=0) if packed else content, 0o644)
    _copy(ROOT / "LICENSE", work / "usr/share/doc/pgtrial/copyright", 0o644)
    size = sum(file.stat().st_size for file in work.rglob("*") if file.is_file())
    control = _CONTROL.format(
        version=__version__, architecture=target.debian, kilobytes=size // 1024, glibc=target.glibc
    )
    _write(work / "DEBIAN/control", control.encode(), 0o644)
    package = wheel.parent / f"pgtrial_{__version__}_{target.debian}.deb"
    run(["dpkg-deb", "--build", "--root-owner-group", "-Zxz", work, package])
    return package


def _copy(source: Path, place: Path, mode: int) -> None:
    _write(place, source.read_bytes(), mode)


def _write(place: Path, content: bytes, mode: int) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    place.chmod(mode)
