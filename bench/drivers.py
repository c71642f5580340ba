"""Two versions of psycopg and a slower copy, as client programs, for campaigns of gates."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

_PROGRAM = Path(__file__).parents[1] / "docs" / "clients" / "bench.py"
_VERSIONS = {"old": "3.1.20", "same": "3.1.20", "slower": "3.1.20", "new": "3.2.13"}
_SLOW = "    def fetchone(self) -> Optional[Row]:\n"


class Drivers:
    """Environments `old`, `same` and `slower` with one version of psycopg, and `new` with the next.

    `slower` runs an empty loop for each row that it fetches.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self, rounds: int) -> None:
        """Installs the environments that are missing."""
        self.path.mkdir(parents=True, exist_ok=True)
        shutil.copy(_PROGRAM, self.path / "bench.py")
        for name, version in _VERSIONS.items():
            if not (self.path / name).exists():
                subprocess.run([sys.executable, "-m", "venv", self.path / name], check=True)
                pip = [str(self.path / name / "bin" / "pip"), "install", "--quiet"]
                subprocess.run([*pip, f"psycopg[binary]=={version}"], check=True)
        (file,) = (self.path / "slower").glob("lib/*/site-packages/psycopg/cursor.py")
        (original,) = (self.path / "old").glob("lib/*/site-packages/psycopg/cursor.py")
        before, method, after = original.read_text().partition(_SLOW)
        if not method:
            raise SystemExit(f"psycopg {_VERSIONS['slower']} has another fetchone")
        file.write_text(f"{before}{method}        for _ in range({rounds}):\n            pass\n{after}")

    def command(self, name: str) -> str:
        """Returns an arm with the client of an environment."""
        return f"command={self.path / name}/bin/python {self.path}/bench.py"
