"""Tests that every run of the corpus has the same output, exit status and rows with sysbench and with the engine."""

from __future__ import annotations

import itertools
import queue
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pgtrial.servers.cluster import Cluster
from tests.engine.corpora import Database
from tests.engine.recordings import HINT, Key, Recordings, digest_of_inputs, digest_of_program, plain
from tests.engine.sysbench.conftest import Databases
from tests.engine.sysbench.differences import INSTEAD
from tests.engine.sysbench.runs import Case, all_cases, perform
from tests.engine.sysbench.sides import SYSBENCH, Side, original, ours

CASES = list(all_cases())
AT_ONCE = 6
"""Runs under way: most of them wait, or are over at once."""
MOST_ASKED = 6
"""The greatest number of times that the original runs a case of limited time. A race of its threads decides what its
report shows and whether it prints one at the end. Our engine runs once, and its output must equal one of the
original's.
"""

Pair = tuple[Any, Any]


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest,
    recordings: Recordings,
    server: Cluster,
    new_databases: Databases,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[Case], Pair]]:
    """Yields a function that returns the original's and our outcome of a case. Several cases run at once, each on two
    databases that no other case uses.
    """
    pairs = [[(target, target.connect_as_user()) for target in new_databases()] for _ in range(AT_ONCE)]
    free: queue.SimpleQueue[list[Database]] = queue.SimpleQueue()
    for pair in pairs:
        free.put(pair)
    directory = tmp_path_factory.mktemp("corpus")
    numbers = itertools.count()

    def left(case: Case, side: Side, database: Database) -> Any:
        outcome = perform(case, side, database, _made(directory / f"{case.name}-{next(numbers)}"))
        return plain(
            {"unsaid": [words for words in case.words if words not in outcome.said], "transcript": outcome.transcript}
        )

    def both(case: Case) -> Pair:
        key = Key(digest_of_program(SYSBENCH), server.server.version, digest_of_inputs(perform, case.content))
        first, second = pair = free.get()
        try:
            file = f"sysbench/corpus/{case.file}"
            most = MOST_ASKED if case.details.get("timed") else 1
            theirs = recordings.answer(file, case.name, key, lambda: left(case, original(), first), most)
            mine = left(case, ours(), second)
            for _ in range(most - 1 if SYSBENCH.exists() else 0):
                if mine["transcript"] != theirs["transcript"]:
                    theirs = left(case, original(), first)
            return theirs, mine
        finally:
            free.put(pair)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        chosen = [item.callspec.params["case"] for item in request.session.items if _is_run(item)]
        under_way: dict[str, Future[Pair]] = {case.name: pool.submit(both, case) for case in chosen}
        yield lambda case: under_way[case.name].result()
        pool.shutdown(cancel_futures=True)
    for _, connection in itertools.chain(*pairs):
        connection.close()


def _is_run(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and item.function is test_a_run_is_the_same


def _made(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


@pytest.mark.server
@pytest.mark.like_pgbench
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_run_is_the_same(outcomes, case: Case):
    theirs, mine = outcomes(case)
    print(HINT)
    assert theirs["unsaid"] == []
    assert mine["transcript"] == theirs["transcript"]


def test_the_corpus_is_large_and_each_of_its_runs_has_a_name_of_its_own():
    assert len({case.name for case in CASES}) == len(CASES) > 700


def test_each_known_difference_is_met():
    lines = [line for case in CASES for line in case.lines]
    for instead in INSTEAD:
        assert any(re.search(instead.line, line) for line in lines), instead.line
