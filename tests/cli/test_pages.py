"""The commands of README and tutorials run as they stand there, with shorter trials and servers of the tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from tests.conftest import require_engine, require_server

pytestmark = [pytest.mark.server, pytest.mark.timeout(1800)]
"""The tour takes a minute on an idle machine, and several on one that runs all tests at once: the limit is for what
hangs, seconds.
"""


ROOT = Path(__file__).parents[2]
LENGTHS = "--warmup 300ms --duration 2s"
"""The lengths of trials. A trial in which no transaction ends fails, and with it the page, and a machine that has much
else to do may stand still for a second.
"""
SHORTER = (
    (r"--budget 30min", f"--blocks 1 {LENGTHS}"),
    (r"--clients [\d,]+", "--clients 1"),
    (r"--more 1h", "--more 1"),
    (r'budget = "\w+"', "blocks = 1"),
    (r"scale +=.*", "scale = 1"),
    (r"clients +=.*", 'clients = 1\nwarmup = "300ms"'),
    (r'duration = "\d+s"', 'duration = "2s"'),
    # undecided after one block, as said beside it
    (r"(pgtrial verdict [^#\n]*[^#\s])", r"\1 || [ $? = 2 ]"),
)
"""Pairs of a pattern in the commands of a page and its replacement, which makes the command run for a shorter time."""

AT_A_RATE = {r"--workload (select-only|tpcb-like)": r"--workload \1 --rate 100"}
"""The replacement that adds a rate to the commands of pages with many trials. Loads at full speed would take all
processors; the other pages keep them.
"""


ELSEWHERE = {
    "make demo": "tests/distribution/test_installed.py runs the demo",
    "make test": "these are the tests",
    "pgtrial selftest": "tests/cli/test_selftest.py",
}
"""The commands that the tests of pages leave out: their first words, and the test that runs them instead."""


def lines_of(page: str) -> list[str]:
    """Returns the lines of a page's shell blocks, in their order."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def command_of(line: str) -> str:
    """Returns the program that a command line calls, with its subcommand."""
    words = line.split()
    return " ".join(words[: 2 if words and words[0] in ("pgtrial", "make", "sb") else 1])


def script_of(page: str, servers: dict[str, str]) -> str:
    """Returns a page's commands as a shell script that runs for a shorter time and uses these servers. The replacements
    must leave the program and subcommand of each line as they are.
    """
    kept = []
    in_file = False
    for line in lines_of(page):
        if command_of(line) in ELSEWHERE:
            continue
        run = line
        for pattern, shorter in (*SHORTER, *servers.items()):
            run = re.sub(pattern, shorter, run)
        if not in_file:
            assert command_of(run) == command_of(line), f"{page} has {line!r}, and its test runs {run!r}"
        in_file = line.endswith("<<'END'") or (in_file and line != "END")
        kept.append(run)
    return "set -e\nshopt -s expand_aliases\n" + "\n".join(kept)


INSTALLED = Path(sys.executable).parent
"""The folder of the installed `pgtrial`. The shortest page runs it; the others run a `pgtrial` that forks its labs."""


def run_page(
    page: str, folder: Path, servers: dict[str, str], first: str = "", programs: Path = INSTALLED
) -> subprocess.CompletedProcess[str]:
    require_engine()
    require_server(18)
    environment = {**os.environ, "PATH": os.pathsep.join([str(programs), str(INSTALLED), os.environ["PATH"]])}
    script = first + script_of(page, servers)
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def shops(clusters):
    """Yields replacements for the addresses of the page's two servers: two databases on one server."""
    cluster = clusters(18)
    with cluster.target.connect_as_user() as session:
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


def test_the_examples_of_the_readme(tmp_path, workspace, shops, commands):
    (tmp_path / "orders.sql").write_text("SELECT count(*) FROM pgbench_accounts WHERE aid < 100;\n")
    (tmp_path / "shop.sql").write_text(
        "CREATE TABLE orders AS SELECT i AS customer, i AS total FROM generate_series(1, 100) AS i;\n"
    )
    done = run_page("README.md", tmp_path, {**AT_A_RATE, **shops}, programs=commands.folder)
    assert done.returncode == 0, done.stderr
    assert "old" in done.stdout
    assert "exists" in done.stdout
    assert "indexed" in done.stdout
    assert len(list((tmp_path / "results").iterdir())) == 4


def test_before_an_upgrade(tmp_path, workspace, commands):
    require_server(17)
    fewer = {r"generate_series\(1, 100000\)": "generate_series(1, 1000)"}
    done = run_page("docs/tutorials/upgrade.md", tmp_path, fewer, programs=commands.folder)
    assert done.returncode == 0, done.stderr
    assert "the verdict follows from the 2 trials" in done.stdout


def test_your_own_query(tmp_path, workspace, commands):
    fewer = {
        r"generate_series\(1, 200000\)": "generate_series(1, 6000)",
        r"--budget 3min": f"--blocks 1 {LENGTHS}",
        r'^clients = 1\nwarmup = "300ms"$': "",  # every study of this page gets them with its data
        r'data = "shop.sql"': 'data = "shop.sql"\nclients = 1\nwarmup = "300ms"\nduration = "2s"',
    }
    done = run_page("docs/tutorials/own-query.md", tmp_path, fewer, programs=commands.folder)
    assert done.returncode == 0, done.stderr
    assert "query.sql on shop.sql" in done.stdout
    assert "the load ran once on every arm without an error" in done.stdout


def test_two_settings_on_your_own_server(tmp_path, clusters, workspace, commands):
    cluster = clusters(18)
    servers = {
        r"export .*": f"export PGHOST={cluster.socket_directory} PGPORT={cluster.port} PGUSER=postgres PGDATABASE=own",
        r"createdb bench": "createdb own",
        r"dbname=bench": "dbname=own",
    }
    programs = f"export PATH=$PATH:{cluster.server.bin}\n"
    with cluster.target.connect_as_user() as session:
        session.autocommit = True
        try:
            done = run_page("docs/tutorials/own-server.md", tmp_path, servers, programs, commands.folder)
        finally:
            session.execute("DROP DATABASE IF EXISTS own WITH (FORCE)")
    assert done.returncode == 0, done.stderr
    assert "64MB" in done.stdout


def test_which_of_these_settings(tmp_path, workspace, commands):
    fewer = {
        r"generate_series\(1, 200000\)": "generate_series(1, 6000)",
        r"--budget (6|10)min": f"--blocks 1 {LENGTHS}",
    }
    done = run_page("docs/tutorials/settings.md", tmp_path, fewer, programs=commands.folder)
    assert done.returncode == 0, done.stderr
    assert "random_page_cost=1.1 against default" in done.stdout
    assert "work_mem=32MB,hash_mem_multiplier=4 against default" in done.stdout


def test_a_gate_for_my_project(tmp_path, workspace, commands):
    shorter = {
        r"generate_series\(1, 200000\)": "generate_series(1, 20000)",
        r'warmup = "300ms"': 'warmup = "300ms"\nduration = "2s"',
        r"blocks = 1": 'budget = "55s"',  # some six blocks: a gate takes their number from its time alone
    }
    done = run_page("docs/tutorials/gate.md", tmp_path, shorter, programs=commands.folder)
    assert done.returncode == 0, done.stderr
    slow, good = re.findall(r"^gate: (.*)", done.stdout, re.MULTILINE)
    assert slow.startswith("fail: head takes ")
    assert "exit status 1" in done.stdout
    assert not good.startswith("fail: head takes ")


def test_which_service(tmp_path):
    # `pgtrial plan` connects to nothing
    done = run_page("docs/tutorials/service.md", tmp_path, {r"blocks = 1$": "blocks = 32"})
    assert done.returncode == 0, done.stderr
    assert "4 of each arm" in done.stdout


SHORT_STUDIES = {
    "app-tasks": """
[profiles.short.load.tasks]
tasks = 10
rows  = 1000
pool  = 2
[profiles.short.arms]
17 = { postgres = "17" }
18 = { postgres = "18" }
[profiles.short.verdict]
blocks = 1
""",
    "os-comparison": """
[profiles.short.load]
scale    = 1
clients  = 1
threads  = 1
rate     = 100
warmup   = "300ms"
duration = "2s"
[profiles.short.server.settings]
shared_buffers = "64MB"
[profiles.short.arms]
17 = { postgres = "17" }
18 = { postgres = "18" }
[profiles.short.verdict]
blocks = 1
""",
    "queue": """
[profiles.short.load]
scale    = 1
clients  = 1
warmup   = "300ms"
duration = "2s"
[profiles.short.server.settings]
shared_buffers = "64MB"
[profiles.short.verdict]
blocks = 1
""",
    "replay-demo": """
[profiles.short.load.replay]
speed           = "as-fast-as-possible"
max_connections = 1
sample          = "10%"
[profiles.short.verdict]
blocks = 1
""",
}
"""Profiles of bundled studies, by name, with which a study takes seconds."""


def test_every_tutorial_has_a_test():
    tests = Path(__file__).read_text()
    for page in (ROOT / "docs" / "tutorials").glob("*.md"):
        assert f'run_page("docs/tutorials/{page.name}"' in tests


def test_what_the_tests_of_pages_leave_out_is_in_the_pages():
    pages = ["README.md", "docs/tour.md"]
    commands = {command_of(line) for page in pages for line in lines_of(page)}
    assert ELSEWHERE.keys() <= commands


def test_the_tour(tmp_path, clusters, fresh_state, shops, commands):
    (tmp_path / "orders.sql").write_text("SELECT count(*) FROM pgbench_accounts WHERE aid < 100;\n")
    for name, changes in SHORT_STUDIES.items():
        bundled = resources.files("pgtrial.store") / "studies" / f"{name}.toml"
        (tmp_path / f"{name}.toml").write_text(bundled.read_text() + changes)
    cluster = clusters(18)
    socket = f"--pgsql-host={cluster.socket_directory} --pgsql-port={cluster.port} --pgsql-user=postgres"
    shorter = {
        r"(compare .*tpcb-like --clients \d+)": rf"\1 --scale 1 --blocks 1 {LENGTHS}",
        r"--rate 200 --duration 20s": f"--rate 200 --scale 1 --blocks 1 {LENGTHS}",
        r"(compare jit=off .*)": r"\1 --scale 1 --clients 1 --blocks 1 --warmup 1s --duration 2s",
        r"(compare 'old.*)": rf"\1 --rate 100 --scale 1 --blocks 1 {LENGTHS}",
        r'duration = "2s"': 'duration = "2s"\nrate = 100',
        r"pgtrial run @([\w-]+).*": r"pgtrial run \1.toml --profile short",
        r"-i -s 10": "-i -s 1",
        r"-c (8|16)": "-c 1",
        r"--warehouses 10": "--warehouses 1",
        r"-T \d+": "-T 1",
        r"--warmup (5|10) ": "--warmup 0.3 ",
        r"--threads=\d+": "--threads=1",
        r"--time=\d+": "--time=1",
        r"--table-size=\d+": "--table-size=1000",
        r"--pgsql-user=me": socket,
        r"--tasks 1000 --pool 20 --rows 20000": "--tasks 10 --pool 2 --rows 1000",
    }
    reached = f"export PGHOST={cluster.socket_directory} PGPORT={cluster.port} PGUSER=postgres\n"
    # its cleanup asks all servers on which studies have made something, and those of other tests are gone
    reached += f"export PGTRIAL_STATE={fresh_state}\n"
    with cluster.target.connect_as_user() as session:
        session.autocommit = True
        session.execute("CREATE DATABASE mydb")
        try:
            done = run_page("docs/tour.md", tmp_path, {**shorter, **AT_A_RATE, **shops}, reached, commands.folder)
        finally:
            session.execute("DROP DATABASE mydb WITH (FORCE)")
    assert done.returncode == 0, done.stderr
    assert "the verdict follows from the" in done.stdout
    assert (tmp_path / "study.tar.xz").stat().st_size > 1000
