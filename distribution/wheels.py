"""A platform's wheel: the lab, the engine, manual pages and completions; checked against its tags and its size."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from distribution.running import DistributionError, run
from distribution.targets import Target

LARGEST = 15_000_000
"""The largest size of a wheel, bytes."""

_CONFIRMED = re.compile(r'platform\s+tag:\s+"((?:many|musl)linux)_(\d+)_(\d+)_(\w+)"')


def make_wheel(lab: Path, engine: Path, shared: Mapping[str, bytes], target: Target, work: Path) -> Path:
    """Pack the wheel of a platform, below `work`.

    `shared` are files below the `share` directory of an environment, by their paths. Raises DistributionError if the
    wheel does not keep what its tags promise, or is too large.
    """
    shutil.rmtree(work, ignore_errors=True)
    unpacked, packed = work / "unpacked", work / "packed"
    packed.mkdir(parents=True)
    packer = [sys.executable, "-m", "wheel"]
    run([*packer, "unpack", "--dest", unpacked, lab])
    (root,) = unpacked.iterdir()
    data = root / f"{root.name}.data"
    scripts = data / "scripts"
    scripts.mkdir(parents=True)
    shutil.copy(engine, scripts / "pgtrial-engine")
    for place, content in shared.items():
        file = data / "data" / "share" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    about = root / f"{root.name}.dist-info" / "WHEEL"
    kept = [line for line in about.read_text().splitlines() if line and not line.startswith(("Tag:", "Root-Is-"))]
    tags = [f"Tag: py3-none-{tag}" for tag in target.tags]
    about.write_text("\n".join([*kept, "Root-Is-Purelib: false", *tags, ""]))
    run([*packer, "pack", "--dest-dir", packed, root])
    (wheel,) = packed.iterdir()
    check_size(wheel)
    if target.triple:
        check_tag(wheel, target.tags[0])
    return wheel


def check_size(wheel: Path) -> None:
    """Raises DistributionError if the wheel is larger than promised."""
    size = wheel.stat().st_size
    if size > LARGEST:
        raise DistributionError(f"{wheel.name} has {size / 1e6:.1f} MB, and {LARGEST / 1e6:.0f} MB are promised")


def check_tag(wheel: Path, promised: str) -> None:
    """Raises DistributionError unless auditwheel confirms the promised platform tag, or one of older systems."""
    said = run([sys.executable, "-m", "auditwheel", "show", wheel])
    confirmed = _CONFIRMED.search(" ".join(said.split()))
    wanted = _CONFIRMED.search(f'platform tag: "{promised}"')
    if wanted is None:
        raise DistributionError(f"{promised} is not a tag that auditwheel knows")
    if confirmed is None or (confirmed[1], confirmed[4]) != (wanted[1], wanted[4]) or _age(confirmed) > _age(wanted):
        raise DistributionError(f"{wheel.name} does not keep what its tag {promised} promises; auditwheel: {said}")


def _age(tag: re.Match[str]) -> tuple[int, int]:
    return int(tag[2]), int(tag[3])
