"""`python -m bench.percentiles`: studies with percentiles at a rate on real servers; figures in bench/percentiles.json.

Two arms that are alike, in trials of 2 s, and two of which one server stands still for 50 ms each 5 s, in trials of
10 s: each of them has two such stalls. The first metric is p99, the second p50. Runs what is missing. Not part of `make
bench`: it takes an hour.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil
from tests.processes import stalling

from bench.figures import read_figures, write_figures
from pgtrial.conduct.progress import ProgressEvent, TrialBegins, TrialEnds
from pgtrial.conduct.run_study import run_study
from pgtrial.conduct.study_directory import plan_now
from pgtrial.model.records import Record
from pgtrial.model.records.claims import Estimate, Word
from pgtrial.report.data import read_data
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study

_FIGURES = Path(__file__).with_name("percentiles.json")
_STALL_S, _EACH_S = 0.05, 5.0
_EQUAL, _STALLED = "equal", "stalled"
_DURATION = {_EQUAL: "2s", _STALLED: "10s"}


class Study(Record):
    """The result of one study."""

    created: str
    kind: str
    rate: float
    """The rate of the load, transactions per second."""
    blocks: int
    verdicts: dict[str, Word]
    """The verdicts on p99 and p50."""
    differences: dict[str, list[float | None]]
    """The estimate and the bounds of the difference in each metric, as shares; empty: there is no estimate."""


def table() -> Iterator[str]:
    """Yields the lines of the Markdown table of the studies' results."""
    yield "| second arm | studies | p99 called worse, better | p50 called worse, better |"
    yield "|---|---|---|---|"
    for kind in (_EQUAL, _STALLED):
        studies = [study for study in read_figures(_FIGURES, Study) if study.kind == kind]
        counts = [Counter(study.verdicts[metric] for study in studies) for metric in ("p99", "p50")]
        cells = [f"{count['worse']}, {count['better']}" for count in counts]
        yield f"| {kind} | {len(studies)} | {' | '.join(cells)} |"


def _run(kind: str, rate: float) -> Study:
    spec = build_study(
        {
            "study": {"name": "percentiles", "question": "Which percentiles differ?"},
            "load": {
                "workload": "select-only",
                "scale": 10,
                "rate": rate,
                "interleave": "off",
                "warmup": "1s",
                "duration": _DURATION[kind],
            },
            "arms": {"as it is": {}, "the other": {"settings": {"bgwriter_delay": "201ms"}}},
            "verdict": {"blocks": 8, "metrics": ["p99", "p50"], "allow_busy_client": True},
        },
        "bench.percentiles",
        Path.cwd(),
    )
    with (
        tempfile.TemporaryDirectory(prefix="pgtrial-campaign-") as folder,
        stalling(_server_processes, _STALL_S, _EACH_S) as stalls,
    ):
        study = StudyDirectory.create(Path(folder) / "study", spec, plan_now(spec))

        def listen(event: ProgressEvent) -> None:
            match event:
                case TrialBegins(trial=planned) if kind == _STALLED and planned.arm == "the other":
                    stalls.set()
                case TrialEnds():
                    stalls.clear()

        run_study(study, listen, spec=spec)
        result = read_data(study).result
    claims = {claim.metric: claim for claim in result.metrics}
    return Study(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        kind=kind,
        rate=rate,
        blocks=claims["p99"].blocks,
        verdicts={name: claim.verdict for name, claim in claims.items()},
        differences={name: _bounds(claim.difference) for name, claim in claims.items()},
    )


def _bounds(difference: Estimate | None) -> list[float | None]:
    bounds = (difference.value, difference.low, difference.high) if difference else ()
    return [None if bound is None else round(bound, 4) for bound in bounds]


def _server_processes() -> list[psutil.Process]:
    """Returns the processes of servers below this process, without the first one of each server."""
    with suppress(psutil.Error):
        below = psutil.Process().children(recursive=True)
        return [process for process in below if process.name() == "postgres" and _is_postgres(process.parent())]
    return []


def _is_postgres(process: psutil.Process | None) -> bool:
    return process is not None and process.name() == "postgres"


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--equal", type=int, default=40, help="studies of equal arms in all")
    parser.add_argument("--stalled", type=int, default=5, help="studies with stalls in all")
    parser.add_argument("--rate", type=float, default=8000, help="transactions per second")
    given = parser.parse_args()
    known = read_figures(_FIGURES, Study)
    for kind, number in ((_STALLED, given.stalled), (_EQUAL, given.equal)):
        for _ in range(number - sum(study.kind == kind for study in known)):
            known.append(_run(kind, given.rate))
            print(known[-1].model_dump_json(), flush=True)
            write_figures(_FIGURES, known)
    for line in table():
        print(line)


if __name__ == "__main__":
    main()
