"""`python -m bench.campaign`: how often and how fast studies decide, with a planted difference and without one.

Runs studies of two copies of one server through the lab, one of them made slower by a known time per message
(bench/delay.c), and writes one JSON line for each. Not part of `make bench`: it takes minutes for each study.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median
from typing import Any

from pgtrial.conduct.plan import make_plan
from pgtrial.conduct.run_study import run_study
from pgtrial.model.units import parse_duration
from pgtrial.statistics.analysis import analyse_study
from pgtrial.statistics.levels import robust_sd
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.study_file import build_study

_DELAY = Path(__file__).with_name("delay.c")


def main() -> None:
    """Run the studies; print a summary of all that the file of results holds of this kind."""
    parser = argparse.ArgumentParser(prog="bench.campaign", description=__doc__)
    parser.add_argument("results", type=Path, help="file of JSON lines, to which each study is added")
    parser.add_argument("--studies", type=int, default=1)
    parser.add_argument("--workload", default="select-only")
    parser.add_argument("--interleave", default="auto")
    parser.add_argument("--delay-ns", type=int, default=0, help="CPU time per message that the slower server spends")
    parser.add_argument("--budget", default="5min")
    parser.add_argument("--blocks", type=int, help="run all of so many blocks in place of the budget")
    parser.add_argument("--warmup", default="1s")
    parser.add_argument("--duration", default="5s")
    parser.add_argument("--scale", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="of the first study; the next ones have the next seeds")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="campaign-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        library = Path(folder) / "delay.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, _DELAY, "-ldl"], check=True)
        for number in range(given.studies):
            study = _study(given, Path(folder) / f"study-{number}", library, given.seed + number)
            began = time.monotonic()
            run_study(study, lambda event: None)
            line = _line(given, study, time.monotonic() - began)
            with given.results.open("a") as results:
                results.write(json.dumps(line) + "\n")
            print(json.dumps(line), file=sys.stderr, flush=True)
    for line in _summary(given.results):
        print(line)


def _study(given: argparse.Namespace, path: Path, library: Path, seed: int) -> StudyDirectory:
    def server(delay_ns: int) -> dict[str, Any]:
        return {"environment": {"LD_PRELOAD": str(library), "DELAY_NS": str(delay_ns)}}

    verdict: dict[str, Any] = {"canary": False, "budget": given.budget}
    if given.blocks is not None:
        verdict |= {"blocks": given.blocks, "stop_early": False, "budget": "24h"}
    data = {
        "load": {
            "workload": given.workload,
            "scale": given.scale,
            "clients": 8,
            "warmup": given.warmup,
            "duration": given.duration,
            "interleave": given.interleave,
        },
        "server": {"settings": {"shared_buffers": "256MB", "max_wal_size": "2GB"}},
        "arms": {"as it is": server(0), "slower": server(given.delay_ns)},
        "verdict": verdict,
    }
    spec = build_study(data, "campaign")
    return StudyDirectory.create(path, spec, make_plan(spec, seed, "2026-11-22T00:00:00+00:00"))


def _line(given: argparse.Namespace, study: StudyDirectory, seconds: float) -> dict[str, Any]:
    trials = study.trials()
    claim = analyse_study(study.plan, trials).primary[0]
    ratios = [ratio.log_ratio for ratio in claim.ratios if ratio.log_ratio is not None]
    measured = sum(trial.measured.duration_s for trial in trials if trial.measured)
    return {
        "workload": given.workload,
        "interleave": given.interleave,
        "delay_ns": given.delay_ns,
        "duration_s": parse_duration(given.duration),
        "seed": study.plan.seed,
        "verdict": claim.verdict,
        "difference": claim.difference.model_dump() if claim.difference else None,
        "blocks": len(ratios),
        "seconds": round(seconds, 1),
        "block_s": round(seconds / len(ratios), 2),
        "measured_share": round(measured / seconds, 3),
        "tps": round(median(trial.measured.tps for trial in trials if trial.measured)),
        "log_ratios": [round(ratio, 5) for ratio in ratios],
    }


def _summary(file: Path) -> Iterator[str]:
    """One line for each kind of study in the file: verdicts, time, and the spread of a block's log-ratio."""
    kinds: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for text in file.read_text().splitlines():
        line = json.loads(text)
        kind = tuple(line[name] for name in ("workload", "interleave", "duration_s", "delay_ns"))
        kinds.setdefault(kind, []).append(line)
    for kind, lines in kinds.items():
        ratios = [ratio for line in lines for ratio in line["log_ratios"]]
        centre = mean(ratios)
        spread = math.sqrt(sum((ratio - centre) ** 2 for ratio in ratios) / max(1, len(ratios) - 1))
        words = ", ".join(line["verdict"] for line in lines)
        decided = [line for line in lines if line["verdict"] != "undecided"]
        yield (
            f"{', '.join(map(str, kind))}: {len(decided)} of {len(lines)} decided "
            f"({words}), median {median(line['seconds'] for line in lines):.0f} s, "
            f"block {median(line['block_s'] for line in lines):.1f} s, measured "
            f"{median(line['measured_share'] for line in lines):.0%}, mean difference {math.expm1(centre):+.1%}, "
            f"standard deviation of a block {spread:.1%} (robust {robust_sd(ratios, median(ratios)):.1%})"
        )


if __name__ == "__main__":
    main()
