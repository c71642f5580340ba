"""Computes the digest of an installation, which tells different builds of one version apart."""

from __future__ import annotations

import hashlib
from pathlib import Path


def digest_of_code(prefix: Path) -> str:
    """Returns the SHA-256 of all programs and libraries: builds of one version may differ in any of them."""
    digest = hashlib.sha256()
    for path in sorted(path for part in ("bin", "lib") for path in (prefix / part).rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(prefix)} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
