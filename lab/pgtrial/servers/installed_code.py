"""Computes a digest of an installation's code, by which different builds of the same version can be distinguished."""

from __future__ import annotations

import hashlib
from pathlib import Path


def digest_of_code(prefix: Path) -> str:
    """Returns the SHA-256 of all programs and libraries below an installation's root directory, since builds of one
    version may differ in any of these files."""
    digest = hashlib.sha256()
    for path in sorted(path for part in ("bin", "lib") for path in (prefix / part).rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(prefix)} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
