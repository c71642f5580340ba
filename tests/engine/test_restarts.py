"""A server that dies in mid-run, and perhaps comes back: the original and ours say the same of it."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import psycopg
import pytest

from pgtrial.servers.cluster import Cluster
from pgtrial.servers.workspace import Workspace
from tests.conftest import running_clusters
from tests.engine.events import done_of, events_of, of_kind
from tests.engine.programs import Ended, Program, ended, settled

pytestmark = pytest.mark.server


START_TIMEOUT_S = 120.0
# The client stays in the shell between two statements, or between two transactions, until the test lets it go.
WAIT = r"\shell set -- :client_id ; touch waiting.$1; until test -e go.$1; do sleep 0.01; done"
IN_A_TRANSACTION = f"""
\\set turn :turn + 1
BEGIN;
SELECT 1;
\\if :turn = 2
{WAIT}
\\endif
SELECT 2;
END;
"""
BETWEEN_TRANSACTIONS = f"SELECT 1;\n{WAIT}\n"


@pytest.fixture(scope="module")
def _mortal(workspace: Workspace) -> Iterator[Cluster]:
    with running_clusters(workspace, {}) as running:
        yield running(18)


@pytest.fixture
def mortal(_mortal: Cluster) -> Cluster:
    """Returns a cluster that only these tests use. If the test before left it stopped or broken, it is started
    again.
    """
    try:
        _mortal.target.connect_as_user().close()
    except psycopg.OperationalError:
        _mortal.stop(immediate=True)
        _mortal.start(_mortal.data_directory.with_suffix(".log"))
    return _mortal


def run_over_a_death(
    program: Program, cluster: Cluster, directory: Path, args: list[str], *, immediate: bool, reborn: bool
) -> Ended:
    """Run on a server that is stopped, and perhaps started again, while the clients wait in the shell."""
    for left in [*directory.glob("waiting.*"), *directory.glob("go.*")]:
        left.unlink()
    clients = int(args[args.index("-c") + 1]) if "-c" in args else 1
    with program.start(cluster.target, args, directory=directory) as process:
        deadline = time.monotonic() + START_TIMEOUT_S
        while len(list(directory.glob("waiting.*"))) < clients:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        cluster.stop(immediate=immediate)
        if reborn:
            cluster.start(cluster.data_directory.with_suffix(".log"))
        let_go(program, process, directory, clients)
        done = ended(process)
    if not reborn:
        cluster.start(cluster.data_directory.with_suffix(".log"))
    # whether the server's farewell arrives before the end of the connection is a race
    warning = "WARNING:  terminating connection due to immediate shutdown command\n"
    return replace(done, stderr="".join(sorted(done.stderr.replace(warning, "").splitlines(keepends=True))))


def let_go(program: Program, process: subprocess.Popen[str], directory: Path, clients: int) -> None:
    """Let all clients go on.

    The original's threads write a line in pieces, and those of another may come in between. Each has one client here,
    and the next goes on when that of the one before, whose client was given up, has ended.
    """
    one_by_one = program.name == "original"
    for client in reversed(range(clients)):
        (directory / f"go.{client}").touch()
        deadline = time.monotonic() + START_TIMEOUT_S
        while one_by_one and client > 0 and psutil.Process(process.pid).num_threads() > client:
            assert time.monotonic() < deadline
            time.sleep(0.01)


# A session that begins anew has prepared nothing; the original says more where it is preparing (see the documentation).
@pytest.mark.like_pgbench
@pytest.mark.parametrize(
    ("line", "mode"),
    [
        *(
            (line, mode)
            for line in ("", "-c 2 -j 2", "-r -l --log-prefix=log", "--max-tries=3 --verbose-errors")
            for mode in ("simple", "extended", "prepared")
        ),
        ("-C", "simple"),
        ("-C", "extended"),
    ],
)
def test_a_server_that_dies_in_a_transaction_is_told_alike(both, mortal, tmp_path, line, mode):
    (tmp_path / "script.sql").write_text(IN_A_TRANSACTION)
    args = ["-n", "-t", "3", "-D", "turn=0", "-f", "script.sql", "-M", mode, *line.split()]
    theirs, mine = both(
        lambda program: settled(run_over_a_death(program, mortal, tmp_path, args, immediate=True, reborn=True))
    )
    assert mine == theirs
    assert mine["status"] == 2
    assert "actually processed: 2/6" in mine["stdout"] or "actually processed: 1/3" in mine["stdout"]


@pytest.mark.like_pgbench
@pytest.mark.parametrize("immediate", [True, False])
@pytest.mark.parametrize("reborn", [True, False])
def test_a_client_that_connects_anew_survives_a_restart_between_transactions(both, mortal, tmp_path, immediate, reborn):
    (tmp_path / "script.sql").write_text(BETWEEN_TRANSACTIONS)
    args = ["-n", "-t", "3", "-C", "-f", "script.sql"]
    theirs, mine = both(
        lambda program: settled(run_over_a_death(program, mortal, tmp_path, args, immediate=immediate, reborn=reborn))
    )
    assert mine == theirs
    assert mine["status"] == (0 if reborn else 2)
    assert f"actually processed: {3 if reborn else 1}/3" in mine["stdout"]


@pytest.mark.like_pgbench
def test_a_client_that_stays_connected_does_not_survive_a_restart(both, mortal, tmp_path):
    (tmp_path / "script.sql").write_text(BETWEEN_TRANSACTIONS)
    args = ["-n", "-t", "3", "-f", "script.sql"]
    theirs, mine = both(
        lambda program: [
            settled(run_over_a_death(program, mortal, tmp_path, args, immediate=immediate, reborn=True))
            for immediate in (True, False)
        ]
    )
    assert mine == theirs
    for done in mine:
        assert done["status"] == 2
        assert "actually processed: 1/3" in done["stdout"]


def test_a_death_leaves_the_counts_by_sqlstate_in_the_events(peers, mortal, tmp_path):
    (tmp_path / "script.sql").write_text(IN_A_TRANSACTION)
    args = ["-n", "-T", "400", "-c", "3", "-j", "3", "-D", "turn=0", "-f", "script.sql", "--events", "events"]
    done = run_over_a_death(peers[1], mortal, tmp_path, args, immediate=False, reborn=False)
    assert done.status == 2
    events = events_of((tmp_path / "events").read_text())
    end = done_of(events)
    # the server said farewell before it went
    assert Counter(error["sqlstate"] for error in of_kind(events, "error")) == {"57P01": 3}
    assert (end["clients_aborted"], end["measure"]["failures"]) == (3, {"57P01": 3})
    # what was done before is told all the same
    assert end["measure"]["transactions"] == 3
    assert "number of transactions actually processed: 3\n" in done.stdout


@pytest.mark.parametrize("mode", ["simple", "prepared"])
def test_a_client_that_waits_for_its_server_loses_the_transaction_and_goes_on(peers, mortal, tmp_path, mode):
    (tmp_path / "script.sql").write_text(IN_A_TRANSACTION)
    options = [
        "-t",
        "4",
        "-c",
        "3",
        "-j",
        "3",
        "-D",
        "turn=0",
        "-M",
        mode,
        "--wait-for-server",
        "120",
        "--events",
        "events",
    ]
    args = ["-n", "-f", "script.sql", *options]
    done = run_over_a_death(peers[1], mortal, tmp_path, args, immediate=False, reborn=True)
    assert done.status == 0
    end = done_of(events_of((tmp_path / "events").read_text()))
    assert (end["clients_aborted"], end["measure"]["failures"]) == (0, {"57P01": 3})
    assert end["measure"]["transactions"] == 9
    assert "waits for the server: " in done.stderr


def test_a_client_that_has_waited_long_enough_is_given_up(peers, mortal, tmp_path):
    (tmp_path / "script.sql").write_text(IN_A_TRANSACTION)
    args = ["-n", "-t", "3", "-c", "2", "-j", "2", "-D", "turn=0", "-f", "script.sql"]
    args += ["--wait-for-server=0.5", "--events=events"]
    done = run_over_a_death(peers[1], mortal, tmp_path, args, immediate=False, reborn=False)
    assert done.status == 2
    end = done_of(events_of((tmp_path / "events").read_text()))
    assert end["clients_aborted"] == 2
    # the transaction that was lost, and the one that never began
    assert end["measure"]["failures"] == {"57P01": 2, "08001": 2}
    assert end["measure"]["transactions"] == 2


def test_a_run_ends_on_time_while_its_clients_wait_for_the_server(peers, mortal, tmp_path):
    (tmp_path / "script.sql").write_text(IN_A_TRANSACTION)
    # each client loses its first transaction: however late that is, it begins within the time
    args = ["-n", "-T", "4", "-c", "2", "-j", "2", "-D", "turn=1", "-f", "script.sql"]
    args += ["--wait-for-server=60", "--events=events", "--time-after-connecting"]
    done = run_over_a_death(peers[1], mortal, tmp_path, args, immediate=False, reborn=False)
    assert done.status == 0
    end = done_of(events_of((tmp_path / "events").read_text()))
    assert (end["clients_aborted"], end["measure"]["duration_s"]) == (0, 4)
    parts = (end["measure"], end["drain"])
    assert sum((Counter(part["failures"]) for part in parts), Counter()) == {"57P01": 2}
    assert [part["transactions"] for part in parts] == [0, 0]
