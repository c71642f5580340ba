"""Capacities against a known truth: `python -m bench.capacity simulated|null-server`; figures in bench/capacity.json.

`simulated` searches the capacities of simulated queues: how many intervals contain the truth, how many equal arms get
a verdict, and how many arms with 10% less are found. `null-server` does the first with real probes of the engine at a
null server with the same queue. Not part of `make bench`: it takes hours.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import numpy as np

from bench.queues import Queue
from pgtrial.conduct.outcome import Outcome
from pgtrial.conduct.probes import Search
from pgtrial.loads.engine import EngineRun, load_command
from pgtrial.loads.process import begun, lines_of
from pgtrial.loads.target import Target
from pgtrial.model.records import Record
from pgtrial.model.records.capacity import CapacityLoad
from pgtrial.statistics import p8
from pgtrial.statistics.capacity import Promise, Reading, capacity, next_rate
from pgtrial.statistics.describe import median_interval

_FIGURES = Path(__file__).with_name("capacity.json")
_SLOWER = 0.9
_BLOCKS = 11
_MARGIN = 0.01
_SHARE = 0.01
_PROMISE = Promise(slower=_SHARE, failed=0.001)


class Case(Record):
    """A queue and the limit of its p99."""

    name: str
    servers: int
    mean_s: float
    sigma: float
    limit_s: float

    @property
    def queue(self) -> Queue:
        """As it is simulated."""
        return Queue(self.servers, self.mean_s, self.sigma)


CASES = (
    Case(name="one server, varying", servers=1, mean_s=0.001, sigma=0.8, limit_s=0.02),
    Case(name="one server, constant", servers=1, mean_s=0.001, sigma=0.0, limit_s=0.006),
    Case(name="four servers, varying", servers=4, mean_s=0.004, sigma=0.5, limit_s=0.03),
)


class Figures(Record):
    """What studies of one case found."""

    created: str
    by: str
    case: str
    truth: float
    """Transactions per second."""
    blocks: int
    studies: int
    transactions: int
    """Of a probe at the capacity."""
    covered: int
    """Intervals of the capacity that contain the truth."""
    bias: float
    """Mean of the logarithms of found capacity / truth."""
    spread: float
    """Standard deviation of the logarithms in one study."""
    equal_called: int | None = None
    """Studies of equal arms with a verdict."""
    slower_found: int | None = None
    """Studies that found an arm with 10% less."""


Probed = Callable[[float], Reading]


def _search(start: float, probed: Probed) -> float:
    readings: list[Reading] = []
    while (rate := next_rate(start, readings, _PROMISE)) is not None:
        readings.append(probed(rate))
    return capacity(readings, _PROMISE) or 0.0


def simulated(case: Case, studies: int, transactions: int, seed: int) -> Figures:
    """Studies of three arms: two alike, and one with 10% less."""
    truth = case.queue.capacity(_SHARE, case.limit_s, seed)
    slower = Queue(case.servers, case.mean_s / _SLOWER, case.sigma)
    arms = [case.queue, case.queue, slower]
    probe_s = transactions / truth
    found = np.empty((studies, _BLOCKS, len(arms)))
    for study in range(studies):
        random = np.random.default_rng((seed, study))
        start = truth * math.exp(random.normal(0, 0.3))
        for block in range(_BLOCKS):
            for place, arm in enumerate(arms):

                def probed(rate: float, arm: Queue = arm, random: np.random.Generator = random) -> Reading:
                    return arm.probe(random, rate, case.limit_s, probe_s)

                found[study, block, place] = _search(start, probed)
            start = median(found[study, : block + 1].ravel().tolist())
    words = [[_word(np.log(blocks[:, other] / blocks[:, 0])) for other in (1, 2)] for blocks in found]
    return Figures(
        **_figures("simulation", case, truth, transactions, found[:, :, 0]),
        equal_called=sum(equal in ("better", "worse") for equal, _ in words),
        slower_found=sum(word == "worse" for _, word in words),
    )


def _word(logs: np.ndarray) -> str:
    readings = p8.decide(logs.tolist(), _MARGIN, claims=1, planned=p8.looks(len(logs), 1)).readings
    decided = [reading.verdict for reading in readings if reading.verdict != "undecided"]
    return decided[0] if decided else "undecided"


def _figures(by: str, case: Case, truth: float, transactions: int, found: np.ndarray) -> dict[str, object]:
    """Of capacities by study and block."""
    bounds = [median_interval(sorted(blocks)) for blocks in found.tolist()]
    logs = np.log(found / truth)
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "by": by,
        "case": case.name,
        "truth": round(truth, 1),
        "blocks": found.shape[1],
        "studies": found.shape[0],
        "transactions": transactions,
        "covered": sum(low is not None and high is not None and low <= truth <= high for low, high in bounds),
        "bias": round(float(logs.mean()), 4),
        "spread": round(float(logs.std(axis=1).mean()), 4),
    }


def at_null_server(case: Case, studies: int, blocks: int, probe_s: int, seed: int) -> Figures:
    """Studies of one arm, by real probes."""
    truth = case.queue.capacity(_SHARE, case.limit_s, seed)
    asked = CapacityLoad(percentile="p99", limit_s=case.limit_s, failures=_PROMISE.failed)
    random = np.random.default_rng(seed)
    found = np.empty((studies, blocks))
    for study in range(studies):
        start = truth * math.exp(random.normal(0, 0.3))
        for block in range(blocks):
            with _null_server(case, int(random.integers(2**31))) as target:
                search = Search(asked, start)
                while (rate := search.next_rate) is not None:
                    search.add(_run(target, rate, probe_s, int(random.integers(2**31)), case), rate)
            found[study, block] = search.capacity or 0.0
            start = median(found[study, : block + 1].tolist())
            print(f"study {study + 1}, block {block + 1}: {found[study, block]:.1f}/s, truth {truth:.1f}/s", flush=True)
    return Figures(**_figures("null server", case, truth, round(probe_s * truth), found))


def _run(target: Target, rate: float, probe_s: int, seed: int, case: Case) -> Outcome:
    options = ["-n", "-S", "-M", "prepared", "-c", "32", "-j", "1", "-T", str(probe_s), "-R", f"{rate:.10g}"]
    options += ["--warmup", f"{max(0.5, 10 * case.limit_s):g}", "--random-seed", str(seed)]
    outcome = Outcome()
    with EngineRun(load_command("pgbench", options, target.environment()), target.environment()) as run:
        for event in run.events(math.inf):
            outcome.add(event)
        run.finish()
    return outcome


@contextmanager
def _null_server(case: Case, seed: int) -> Iterator[Target]:
    with tempfile.TemporaryDirectory(prefix="pgtrial-") as directory:
        options = ["--socket-dir", directory, "--delay", case.queue.delay, "--servers", str(case.servers)]
        with begun(["null-server", *options, "--seed", str(seed)], {}, stderr=subprocess.DEVNULL) as server:
            next(iter(lines_of(server.stdout)))
            yield Target(directory, 5432, "somebody", "anything")
            server.terminate()


def main() -> None:
    """Take figures and add them to those that are there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("by", choices=["simulated", "null-server"])
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--blocks", type=int, default=_BLOCKS, help="of a study at the null server")
    parser.add_argument("--seconds", type=int, default=10, help="of a probe at the null server")
    parser.add_argument("--transactions", type=int, default=10_000, help="of a simulated probe")
    parser.add_argument("--case", type=int, choices=range(len(CASES)), help="default: all")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for case in CASES if given.case is None else [CASES[given.case]]:
        figures = (
            simulated(case, given.studies, given.transactions, given.seed)
            if given.by == "simulated"
            else at_null_server(case, given.studies, given.blocks, given.seconds, given.seed)
        )
        known = json.loads(_FIGURES.read_text()) if _FIGURES.exists() else []
        lines = ",\n".join(json.dumps(one) for one in [*known, figures.model_dump(exclude_none=True)])
        _FIGURES.write_text(f"[\n{lines}\n]\n")
        print(figures.model_dump_json(exclude_none=True))


if __name__ == "__main__":
    main()
