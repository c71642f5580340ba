"""`python -m bench.reliability`: attacks the lab and the engine, and writes the figures into docs/reliability.md.

As root on Linux, in a clone after `make test`; servers run as another user. The whole campaign takes about four hours.
All that it mounts, sets or starts is removed at its end, also after Ctrl-C. The exit status is 1 if there were defects,
or if a kind named by `--only` could not be run.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import public_directory

from bench.reliability import (
    attackers,
    clocks,
    crowds,
    data_of_others,
    disks,
    fuzz,
    given_servers,
    hostile,
    kills,
    machines,
    numbers,
    orders,
    simulated,
    trust,
)
from bench.reliability.kind import Campaign, Kind, Missing
from bench.reliability.page import PAGE, read, write
from pgtrial.model.units import format_duration
from pgtrial.servers.leftovers import clean

KINDS: tuple[Kind, ...] = (
    fuzz.KIND,
    kills.KIND,
    machines.KIND,
    given_servers.KIND,
    data_of_others.KIND,
    trust.KIND,
    attackers.KIND,
    numbers.KIND,
    orders.KIND,
    crowds.KIND,
    hostile.KIND,
    disks.KIND,
    clocks.KIND,
    simulated.KIND,
)
FIGURES = Path(__file__).with_name("figures.json")
FUZZ_MINUTES, LOAD_MINUTES, ORDERS_MINUTES = 30.0, 10.0, 5.0


def main() -> int:
    """Runs the kinds of attacks that the command line names, and stores each figure as soon as it is known."""
    given = _arguments()
    wanted = [kind for kind in KINDS if not given.only or kind.name in given.only.split(",")]
    if (sys.platform != "linux" or os.geteuid() != 0) and any(kind.needs_root for kind in wanted):
        raise SystemExit("bench.reliability mounts file systems and sets kernel parameters: run it as root on Linux")
    figures = read(given.figures)
    is_complete = True
    with _campaign(given) as campaign:
        total = sum(kind.seconds(campaign) for kind in wanted)
        report(f"seed {given.seed}; {', '.join(kind.name for kind in wanted)}: about {format_duration(total)}")
        began = time.monotonic()
        for number, kind in enumerate(wanted):
            left = sum(each.seconds(campaign) for each in wanted[number:])
            report(f"{kind.name}: about {format_duration(kind.seconds(campaign))} of {format_duration(left)} left")
            figures = [figure for figure in figures if figure.kind != kind.name]
            try:
                for figure in kind.run(campaign):
                    figures.append(figure)
                    if not given.no_figures:
                        write(given.figures, figures, given.page)
            except Missing as missing:
                report(f"  left out: {missing}")
                is_complete = not given.only
        wrote = "no figures written" if given.no_figures else f"wrote {given.figures} and {given.page}"
        report(f"{format_duration(time.monotonic() - began)}; {wrote}")
    names = {kind.name for kind in wanted}
    return 1 if not is_complete or any(figure.defects for figure in figures if figure.kind in names) else 0


def _arguments() -> argparse.Namespace:
    names = [kind.name for kind in KINDS]
    parser = argparse.ArgumentParser(prog="bench.reliability", description=__doc__)
    parser.add_argument("--only", help=f"kinds of attack, by commas: {', '.join(names)}")
    parser.add_argument(
        "--kills",
        type=int,
        default=200,
        help="processes and machines that are killed; of the other kinds with random moments a share (default: 200)",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        help=f"of each fuzz target and of simulated runs (default: {FUZZ_MINUTES:g}), of each load of many clients "
        f"(default: {LOAD_MINUTES:g}) and of order entry (default: {ORDERS_MINUTES:g})",
    )
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="of the random moments")
    parser.add_argument("--scratch", type=Path, default=Path("/tmp"), help="where studies and servers are (/tmp)")
    parser.add_argument("--figures", type=Path, default=FIGURES, help=f"the figures as JSON ({FIGURES.name} here)")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page that gets the table (docs/reliability.md)")
    parser.add_argument("--no-figures", action="store_true", help="write neither figures nor page")
    given = parser.parse_args()
    if given.only and (unknown := set(given.only.split(",")) - set(names)):
        parser.error(f"there is no kind {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    if given.kills < 1 or (given.minutes is not None and given.minutes <= 0):
        parser.error("--kills and --minutes have to be above 0")
    return given


@contextmanager
def _campaign(given: argparse.Namespace) -> Iterator[Campaign]:
    """Yields a campaign with a directory and a state root of its own; what attacks leave in them is undone at the
    end.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    scratch = public_directory(given.scratch)
    state = scratch / "state"
    os.environ["PGTRIAL_STATE"] = str(state)
    try:
        yield Campaign(
            scratch=scratch,
            state=state,
            kills=given.kills,
            fuzz_s=60 * (given.minutes or FUZZ_MINUTES),
            load_s=60 * (given.minutes or LOAD_MINUTES),
            orders_s=60 * (given.minutes or ORDERS_MINUTES),
            chance=random.Random(given.seed),
            report=report,
        )
    finally:
        for notice in clean(state):
            report(f"  {notice}")
        shutil.rmtree(scratch, ignore_errors=True)


def report(line: str) -> None:
    """Prints a line about the progress to the standard error."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
