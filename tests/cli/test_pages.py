"""The commands of README and tutorials run as they stand there, with shorter trials and servers of the tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pgtrial.cli import COMMANDS
from tests.conftest import require_engine, require_server

ROOT = Path(__file__).parents[2]
SHORTER = (
    (r"--budget 30min", "--blocks 1 --warmup 300ms --duration 1s"),
    (r"--clients [\d,]+", "--clients 2"),
    (r"--more 1h", "--blocks 1"),
    (r'budget = "\w+"', "blocks = 1\ncanary = false"),
    (r"scale +=.*", "scale = 1"),
    (r"clients +=.*", 'clients = 2\nwarmup = "300ms"'),
    (r'duration = "\d+s"', 'duration = "1s"'),
    # undecided after one block, as said beside it
    (r"(pgtrial verdict [^#\n]*[^#\s])", r"\1 || [ $? = 2 ]"),
)
"""Patterns, and what stands in their place."""


def blocks_of(page: str) -> list[str]:
    """The commands of a page in their order, without `make demo` and `make test`."""
    found = re.findall(r"```sh\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    return [block for block in found if not block.startswith("make demo")]


def script_of(page: str, servers: dict[str, str]) -> str:
    text = "\n".join(blocks_of(page))
    for pattern, shorter in (*SHORTER, *servers.items()):
        text = re.sub(pattern, shorter, text)
    kept = [line for line in text.splitlines() if not line.startswith("export PATH")]
    return "set -e\n" + "\n".join(kept)


def run_page(page: str, folder: Path, servers: dict[str, str]) -> subprocess.CompletedProcess[str]:
    require_engine()
    require_server(18)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    script = script_of(page, servers)
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture
def shops(clusters):
    """Two databases `shop` on one server, in place of two servers."""
    cluster = clusters(18)
    with cluster.target.connect() as session:
        session.autocommit = True
        for name in ("shop1", "shop2"):
            session.execute(f"CREATE DATABASE {name}")
        yield {
            rf"host=db{number} dbname=shop": f"host={cluster.socket_directory} port={cluster.port} user=postgres "
            f"dbname=shop{number}"
            for number in (1, 2)
        }
        for name in ("shop1", "shop2"):
            session.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_the_examples_of_the_readme(tmp_path, workspace, shops):
    (tmp_path / "orders.sql").write_text("SELECT count(*) FROM pgbench_accounts WHERE aid < 100;\n")
    done = run_page("README.md", tmp_path, shops)
    assert done.returncode == 0, done.stderr
    assert "old" in done.stdout
    (bundle,) = (tmp_path / "results").glob("wal-*.tar.xz")
    assert bundle.stat().st_size > 1000


def test_before_an_upgrade(tmp_path, workspace):
    require_server(17)
    done = run_page(
        "docs/tutorials/upgrade.md", tmp_path, {r"generate_series\(1, 100000\)": "generate_series(1, 1000)"}
    )
    assert done.returncode == 0, done.stderr
    assert "the verdict follows from the 2 trials" in done.stdout


def test_two_settings_on_your_own_server(tmp_path, clusters, workspace):
    cluster = clusters(18)
    servers = {
        r"export .*": f"export PGHOST={cluster.socket_directory} PGPORT={cluster.port} PGUSER=postgres PGDATABASE=own",
        r"createdb bench": ":",
        r"dbname=bench": "dbname=own",
    }
    with cluster.target.connect() as session:
        session.autocommit = True
        session.execute("CREATE DATABASE own")
        try:
            done = run_page("docs/tutorials/own-server.md", tmp_path, servers)
        finally:
            session.execute("DROP DATABASE own WITH (FORCE)")
    assert done.returncode == 0, done.stderr
    assert "64MB" in done.stdout


def test_every_command_of_the_tour_is_known():
    text = "\n".join(blocks_of("docs/tour.md"))
    lines = [line for line in text.splitlines() if line.startswith("pgtrial ")]
    assert len(lines) > 15
    commands = {line.split()[1] for line in lines}
    assert commands <= set(COMMANDS)
