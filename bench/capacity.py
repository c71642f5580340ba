"""Capacities against a known truth: `python -m bench.capacity simulated|null-server`; figures in bench/capacity.json.

How many intervals contain the truth, how many equal arms get a verdict, and how many arms with 10% less are found:
`simulated` by simulated probes, `null-server` by real ones of the engine at a null server with the same queue. Not part
of `make bench`: it takes hours.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from statistics import median

import numpy as np

from bench.figures import read_figures, write_figures
from bench.queues import Floats, Queue
from pgtrial.conduct.trial.outcome import Outcome
from pgtrial.conduct.trial.probes import Search
from pgtrial.loads.engine import EngineRun, load_command
from pgtrial.loads.process import begun, lines_of
from pgtrial.loads.target import Target
from pgtrial.model.records import Record
from pgtrial.model.records.capacity import CapacityLoad
from pgtrial.statistics import p8
from pgtrial.statistics.capacity import Promise, Reading, capacity, next_rate
from pgtrial.statistics.describe import median_interval
from pgtrial.statistics.rules import planned

_FIGURES = Path(__file__).with_name("capacity.json")
_BLOCKS = 11
_WITH_SLOWER = 20
"""The number of studies by real probes that have the slower arm."""
_MARGIN = 0.01
_SHARE = 0.01
_GRACE_S = 60.0
_PROMISE = Promise(slower=_SHARE, failed=0.001)


class Case(Record):
    """A queue and the limit of its p99."""

    name: str
    servers: int
    mean_s: float
    sigma: float
    limit_s: float
    slower: float = 0.9
    """The speed of the servers of the slower arm, as a share."""

    @property
    def queue(self) -> Queue:
        """The queue that the case simulates."""
        return Queue(self.servers, self.mean_s, self.sigma)


CASES = (
    Case(name="one server, varying", servers=1, mean_s=0.001, sigma=0.8, limit_s=0.02),
    Case(name="one server, constant", servers=1, mean_s=0.001, sigma=0.0, limit_s=0.006),
    Case(name="four servers, varying", servers=4, mean_s=0.004, sigma=0.5, limit_s=0.03),
    Case(name="sixteen servers, varying", servers=16, mean_s=0.016, sigma=0.5, limit_s=0.052, slower=0.9375),
)


class Figures(Record):
    """The results of the studies of one case."""

    created: str
    by: str
    case: str
    truth: float
    """The true capacity, transactions per second."""
    blocks: int
    studies: int
    transactions: int
    """The number of transactions of a probe at the capacity."""
    covered: int
    """The number of intervals of the capacity that contain the truth."""
    bias: float
    """The mean of the logarithms of found capacity / truth."""
    spread: float
    """The standard deviation of the logarithms in one study."""
    equal_studies: int | None = None
    """The number of studies with equal arms; None: all studies."""
    equal_called: int | None = None
    """The number of studies of equal arms with a verdict."""
    slower_studies: int | None = None
    """The number of studies with an arm that has 10% less capacity; None: all studies."""
    slower_found: int | None = None
    """The number of studies that found an arm with 10% less."""
    two_arms_s: float | None = None
    """The median wall time of a study of the two arms that differ, with real probes, seconds."""


Probed = Callable[[float], Reading]


def _search(start: float, probed: Probed) -> float:
    readings: list[Reading] = []
    while (rate := next_rate(start, readings, _PROMISE)) is not None:
        readings.append(probed(rate))
    return capacity(readings, _PROMISE) or 0.0


def simulated(case: Case, studies: int, transactions: int, seed: int) -> Figures:
    """Simulates studies of three arms: two equal ones, and one with 10% less."""
    truth = case.queue.capacity(_SHARE, case.limit_s, seed)
    slower = Queue(case.servers, case.mean_s / case.slower, case.sigma)
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
    readings = planned(len(logs), 1).readings(logs.tolist(), p8.ratio_limits(_MARGIN))
    return next((reading.verdict for reading in readings if reading.verdict != "undecided"), "undecided")


def _figures(by: str, case: Case, truth: float, transactions: int, found: np.ndarray) -> dict[str, object]:
    """Returns the fields of `Figures` that follow from the capacities found, an array of studies by blocks."""
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


@dataclass(frozen=True)
class AtNullServer:
    """Studies of two equal arms by real probes; the first ones also have a slower arm."""

    case: Case
    blocks: int
    probe_s: int
    seed: int

    def figures(self, studies: int, lanes: int) -> Figures:
        """Runs the studies, `lanes` of them at the same time, and returns their results."""
        with ThreadPoolExecutor(lanes) as pool:
            searched = list(pool.map(self._study, range(studies)))
        equal = [_word(np.log(capacities[:, 1] / capacities[:, 0])) for capacities, _ in searched]
        slower = [_word(np.log(capacities[:, 2] / capacities[:, 0])) for capacities, _ in searched[:_WITH_SLOWER]]
        arms = np.array([capacities[:, arm] for capacities, _ in searched for arm in (0, 1)])
        return Figures(
            **_figures("null server", self.case, self._truth, round(self.probe_s * self._truth), arms),
            equal_studies=len(equal),
            equal_called=sum(word in ("better", "worse") for word in equal),
            slower_studies=len(slower),
            slower_found=slower.count("worse"),
            two_arms_s=round(2 * self.blocks * median([search_s for _, search_s in searched]), 1),
        )

    @cached_property
    def _truth(self) -> float:
        return self.case.queue.capacity(_SHARE, self.case.limit_s, self.seed)

    def _study(self, study: int) -> tuple[Floats, float]:
        """Capacities by block and arm, and the mean seconds of a search."""
        random = np.random.default_rng((self.seed, study))
        slower = self.case.model_copy(update={"mean_s": self.case.mean_s / self.case.slower})
        arms = [self.case, self.case, slower] if study < _WITH_SLOWER else [self.case, self.case]
        capacities = np.empty((self.blocks, len(arms)))
        start = self._truth * math.exp(random.normal(0, 0.3))
        began = time.monotonic()
        for block in range(self.blocks):
            for arm in random.permutation(len(arms)):
                capacities[block, arm] = self._search(arms[arm], start, random)
            start = median(capacities[: block + 1].ravel().tolist())
            shares = ", ".join(f"{100 * value / self._truth:.1f}%" for value in capacities[block])
            print(f"study {study + 1}, block {block + 1}: {shares} of the truth", flush=True)
        return capacities, (time.monotonic() - began) / capacities.size

    def _search(self, arm: Case, start: float, random: np.random.Generator) -> float:
        search = Search(CapacityLoad(percentile="p99", limit_s=arm.limit_s, failures=_PROMISE.failed), start)
        with _null_server(arm, int(random.integers(2**31))) as target:
            while (rate := search.next_rate) is not None:
                search.add(self._probe(target, rate, int(random.integers(2**31))), rate)
        return search.capacity or 0.0

    def _probe(self, target: Target, rate: float, seed: int) -> Outcome:
        options = ["-n", "-S", "-M", "prepared", "-c", "64", "-j", "1", "-T", str(self.probe_s), "-R", f"{rate:.10g}"]
        options += ["--warmup", f"{max(0.5, 10 * self.case.limit_s):g}", "--random-seed", str(seed)]
        outcome = Outcome()
        with EngineRun(load_command("pgbench", options, target.environment()), target.environment()) as run:
            for event in run.events(time.monotonic() + self.probe_s + _GRACE_S):
                outcome.add(event)
            run.finish()
        return outcome


@contextmanager
def _null_server(case: Case, seed: int) -> Iterator[Target]:
    with tempfile.TemporaryDirectory(prefix="pgtrial-") as directory:
        options = ["--socket-dir", directory, "--delay", case.queue.delay, "--servers", str(case.servers)]
        with begun(["null-server", *options, "--seed", str(seed)], {}, stderr=subprocess.DEVNULL) as server:
            next(iter(lines_of(server.stdout)))
            try:
                yield Target(directory, 5432, "somebody", "anything")
            finally:
                server.terminate()


def main() -> None:
    """Measures the figures that the arguments ask for and adds them to those in the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("by", choices=["simulated", "null-server"])
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--blocks", type=int, default=_BLOCKS, help="of a study at the null server")
    parser.add_argument("--seconds", type=int, default=10, help="of a probe at the null server")
    parser.add_argument("--transactions", type=int, default=10_000, help="of a simulated probe")
    parser.add_argument("--case", type=int, choices=range(len(CASES)), help="default: all")
    parser.add_argument("--lanes", type=int, default=1, help="studies at the same time at the null server")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for case in CASES if given.case is None else [CASES[given.case]]:
        figures = (
            simulated(case, given.studies, given.transactions, given.seed)
            if given.by == "simulated"
            else AtNullServer(case, given.blocks, given.seconds, given.seed).figures(given.studies, given.lanes)
        )
        write_figures(_FIGURES, [*read_figures(_FIGURES, Figures), figures])
        print(figures.model_dump_json(exclude_none=True))


if __name__ == "__main__":
    main()
