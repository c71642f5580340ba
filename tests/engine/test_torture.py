"""Many clients that get in one another's way: what is told of them agrees with the server's own books."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from pgtrial.loads.target import Target
from pgtrial.servers.workspace import Workspace
from tests.conftest import running_clusters
from tests.engine.events import assert_consistent, done_of, run_with_events
from tests.engine.sessions import wait_until_left

pytestmark = pytest.mark.server


CLIENTS = 64
TRIES = 100
SERIALIZABLE = "-c default_transaction_isolation=serializable"


@pytest.fixture(scope="module")
def roomy(workspace: Workspace) -> Iterator[Target]:
    """Yields a server that can store the conflicts of serializable transactions while one of them is stopped.

    Each transaction that commits meanwhile stores one conflict with each other client. The server's room for them grows
    with max_connections. With the default of a hundred connections a busy machine would use it up, and the server would
    end a client with an error.
    """
    with running_clusters(workspace, {"autovacuum": "off", "max_connections": "2000"}) as running:
        yield running(18).target


def server_counts(target: Target) -> tuple[int, int]:
    """Transactions that the server committed and rolled back in the database, once all backends have left and told."""
    wait_until_left(target)
    with target.connect_as_user() as connection:
        commits, rollbacks = connection.execute(
            "SELECT xact_commit, xact_rollback FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
    return commits, rollbacks


def sums(target: Target) -> dict[str, int]:
    """Rows and sum of the history, and the sums of the balances that it should explain."""
    with target.connect_as_user() as connection:
        row = connection.execute(
            "SELECT (SELECT count(*) FROM pgbench_history), (SELECT sum(delta) FROM pgbench_history),"
            " (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM pgbench_tellers),"
            " (SELECT sum(bbalance) FROM pgbench_branches)"
        ).fetchone()
    return dict(zip(("rows", "history", "accounts", "tellers", "branches"), row, strict=True))


def number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found, text
    return int(found[1])


@pytest.mark.parametrize(
    "line",
    [
        f"-t 4 -j 2 --max-tries={TRIES}",
        f"-t 4 -j 2 --max-tries={TRIES} -M prepared",
        f"-T 1 -j 2 --max-tries={TRIES} -M extended",
        "-T 1 -j 1 --max-tries=3 -M prepared",
        "-t 3 -j 2 --max-tries=0 -L 60000 -C",
    ],
)
def test_serializable_clients_on_one_branch_leave_what_is_told(peers, roomy, tmp_path, line):
    target = roomy
    peers[0].load(target, "-s", "1")
    commits, rollbacks = server_counts(target)
    args = ("-n", "-c", str(CLIENTS), *line.split(), "--failures-detailed", "-r")
    done, events = run_with_events(peers[1], target, tmp_path / "events", *args, PGOPTIONS=SERIALIZABLE)
    assert done.status == 0, done.stderr
    commits, rollbacks = (
        after - before for after, before in zip(server_counts(target), (commits, rollbacks), strict=True)
    )

    transactions = number(r"transactions actually processed: (\d+)", done.stdout)
    failed = number(r"number of failed transactions: (\d+)", done.stdout)
    retried = number(r"number of transactions retried: (\d+)", done.stdout)
    retries = number(r"total number of retries: (\d+)", done.stdout)
    assert retries >= retried > 0
    assert failed == number(r"serialization failures: (\d+)", done.stdout) + number(
        r"deadlock failures: (\d+)", done.stdout
    )
    # Every try that failed was rolled back, and no other. When the time is over a transaction that fails is neither
    # tried again nor counted, with all its tries.
    if line.startswith("-t"):
        assert rollbacks == retries + failed
    else:
        assert retries + failed <= rollbacks <= retries + failed + CLIENTS * TRIES
    # a session's start commits as well, a BEGIN that is prepared apart too, and so do a few questions before the run
    sessions = transactions + failed if "-C" in line else CLIENTS
    assert transactions <= commits <= transactions + 2 * sessions + 20
    left = sums(target)
    assert left["rows"] == transactions
    assert left["history"] == left["accounts"] == left["tellers"] == left["branches"]
    if line.startswith("-t"):
        assert transactions + failed == CLIENTS * int(line.split()[1])

    assert_consistent(events)
    end = done_of(events)
    assert end["measure"]["transactions"] + end["drain"]["transactions"] == transactions
    assert sum(end["measure"]["failures"].values()) + sum(end["drain"]["failures"].values()) == failed
    if line.startswith("-t"):
        assert (end["measure"]["retried"], end["measure"]["retries"]) == (retried, retries)
