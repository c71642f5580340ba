"""Loaded tables of order entry, and copies of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from pgtrial.loads.target import Target
from pgtrial.servers.cluster import Cluster
from tests.conftest import require_engine
from tests.engine.order_entry.looks import WAREHOUSES
from tests.engine.programs import Program
from tests.engine.sessions import wait_until_left


@pytest.fixture(scope="session")
def order_entry() -> Program:
    """Returns the front end for order entry."""
    return Program("order-entry", (str(require_engine()), "order-entry"))


@pytest.fixture(scope="session")
def _loaded(order_entry: Program, clusters: Callable[[int], Cluster]) -> Iterator[dict[int, Target]]:
    """Yields loaded databases by their number of warehouses. Tests copy them and never change them."""
    server = replace(clusters(18).target, dbname="postgres")
    made = {}
    for warehouses in (1, WAREHOUSES):
        made[warehouses] = replace(server, dbname=f"orders{warehouses}")
        with server.connect_as_user() as connection:
            connection.execute(f"CREATE DATABASE orders{warehouses}")
        done = order_entry.run(made[warehouses], "load", "-w", str(warehouses), "-j", "3")
        assert (done.status, done.stdout) == (0, ""), done.stderr
        counted = "1 warehouse" if warehouses == 1 else f"{warehouses} warehouses"
        assert re.search(rf"{counted} loaded in \d+\.\d\d s\n$", done.stderr)
        wait_until_left(made[warehouses])
    yield made
    for target in made.values():
        with server.connect_as_user() as connection:
            connection.execute(f"DROP DATABASE {target.dbname} WITH (FORCE)")


@pytest.fixture
def copy(_loaded: dict[int, Target]) -> Iterator[Callable[..., Target]]:
    """Yields a function that returns a freshly loaded database of one test's own: `copy()`, or `copy(1)` for one
    warehouse.
    """
    server = replace(_loaded[1], dbname="postgres")
    numbers = itertools.count()
    copies: list[str] = []

    def make(warehouses: int = WAREHOUSES) -> Target:
        copies.append(f"order_copy{next(numbers)}")
        with server.connect_as_user() as connection:
            connection.execute(f"CREATE DATABASE {copies[-1]} TEMPLATE orders{warehouses} STRATEGY file_copy")
        return replace(server, dbname=copies[-1])

    yield make
    for name in copies:
        with server.connect_as_user() as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
