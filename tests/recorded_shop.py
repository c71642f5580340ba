"""A small shop whose sessions are recorded from the log of a real server: the capture of tests, and of @replay-demo.

`python -m tests.recorded_shop` writes that capture anew.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import psycopg

from pgtrial.loads.process import engine_path
from pgtrial.loads.target import Target
from pgtrial.servers.cluster import Cluster, create_cluster
from pgtrial.servers.installations import resolve
from pgtrial.servers.workspace import Workspace

SHOP = Path(str(files("pgtrial.store") / "captures" / "shop"))
"""The directory of the bundled capture and its data."""

DATA = SHOP / "data.sql"

PREFIX = "%m [%p] %q%u@%d/%a "
LOGGING = {
    "log_min_duration_statement": "0",
    "log_line_prefix": PREFIX,
    "log_connections": "on",
    "log_disconnections": "on",
    "fsync": "off",
}
"""Settings of a server that is recorded."""

_CUSTOMERS, _ITEMS = 2000, 500

HISTORY = "SELECT id, item, amount FROM orders WHERE customer = $1 ORDER BY id DESC LIMIT 10"
"""The statement that needs the index orders_customer, as its template is written."""

Session = psycopg.Connection[tuple[object, ...]]


def browse(session: Session, draw: random.Random, own: int, of: int) -> None:
    """Look at an item."""
    session.execute("SELECT name, price FROM item WHERE id = %s", (draw.randint(1, _ITEMS),))


def history(session: Session, draw: random.Random, own: int, of: int) -> None:
    """Reads the latest orders of a customer. No other session makes orders for this customer, so that the result is the
    same in every replay.
    """
    session.execute(HISTORY.replace("$1", "%s"), (_customer(draw, own, of),))


def order(session: Session, draw: random.Random, own: int, of: int) -> None:
    """Order an item, in a transaction."""
    customer, item = _customer(draw, own, of), draw.randint(1, _ITEMS)
    with session.transaction():
        (price,) = session.execute("SELECT price FROM item WHERE id = %s", (item,)).fetchone() or (0,)
        session.execute("UPDATE customer SET spent = spent + %s WHERE id = %s", (price, customer))
        session.execute("INSERT INTO orders (customer, item, amount) VALUES (%s, %s, %s)", (customer, item, 1))


def sales(session: Session, draw: random.Random, own: int, of: int) -> None:
    """Sum up what was sold of an item, with the value in the text of the statement."""
    text = f"SELECT count(*), sum(amount) FROM orders WHERE item = {draw.randint(1, _ITEMS)}"
    session.execute(text.encode(), prepare=False)


def _customer(draw: random.Random, own: int, of: int) -> int:
    """Returns a customer for whom no other session orders."""
    return draw.randrange(_CUSTOMERS // of) * of + own + 1


Action = Callable[[Session, random.Random, int, int], None]

_CUSTOMER: list[Action] = [browse] * 4 + [order] * 2 + [sales]
_DESK: list[Action] = [history]
"""The actions of every third session, the help desk's. They are sessions of their own so that no other statement waits
behind the help desk's slow statement.
"""


@contextmanager
def recorded(cluster: Cluster, log: Path, capture: Path, prefix: str = PREFIX) -> Iterator[Target]:
    """Yields a server that logs, with the shop's data. At the end the log of its sessions is made into a capture."""
    with cluster.target.connect_as_user() as connection:
        connection.execute(DATA.read_bytes())
    before = log.stat().st_size
    yield cluster.target
    cluster.stop()
    command = [engine_path(), "capture", "-q", "--prefix", prefix, "-o", capture, "-"]
    subprocess.run(command, check=True, capture_output=True, input=log.read_bytes()[before:])


def serve_customers(target: Target, sessions: int, rounds: int, pause_s: float = 0.0) -> None:
    """Runs `sessions` sessions, at the same time if there are pauses; each does `rounds` actions, with a mean pause
    between two of them.
    """

    def serve(own: int) -> None:
        draw = random.Random(own)
        actions = _DESK if own % 3 == 2 else _CUSTOMER
        # without the lab's own settings of a session, which would be recorded as well
        address = f"host={target.host} port={target.port} user={target.user} dbname={target.dbname}"
        with psycopg.connect(address, autocommit=True, application_name="shop", prepare_threshold=0) as session:
            for _ in range(rounds):
                draw.choice(actions)(session, draw, own, sessions)
                if pause_s:
                    time.sleep(draw.expovariate(1 / pause_s))

    threads = [threading.Thread(target=serve, args=(own,)) for own in range(sessions)]
    for thread in threads:
        thread.start()
        if not pause_s:
            thread.join()
    for thread in threads:
        thread.join()


def main() -> None:
    """Writes the bundled capture again: six sessions, 4 seconds."""
    capture = SHOP / "capture"
    shutil.rmtree(capture, ignore_errors=True)
    with Workspace() as workspace:
        server = workspace.reachable(resolve("18"))
        data, log = workspace.directory("shop"), workspace.directory("shop").with_suffix(".log")
        create_cluster(workspace, server, data)
        cluster = Cluster(workspace, server, data, workspace.socket_directory(), LOGGING)
        cluster.start(log)
        with recorded(cluster, log, capture) as target:
            serve_customers(target, sessions=6, rounds=200, pause_s=0.018)
    print(f"{capture}: {sum(path.stat().st_size for path in capture.iterdir()):,} bytes")


if __name__ == "__main__":
    main()
