"""`pgtrial capacity`: compare the highest rates at which set-ups keep a promise on their response time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pgtrial.cli.by_options import by_options
from pgtrial.cli.compare import OPTIONS_OF_BOTH, Keys, load_of_both, run_comparison
from pgtrial.cli.study_options import parsed
from pgtrial.model.errors import StudyError
from pgtrial.model.units import parse_duration, parse_share


def capacity_command(
    arms: Annotated[list[str], typer.Argument(help="One set-up or more, as of `pgtrial compare`.", show_default=False)],
    *,
    p50: Annotated[str | None, typer.Option("--p50", help="Limit of the median response time, e.g. 5ms.")] = None,
    p90: Annotated[str | None, typer.Option("--p90", help="Limit of the p90.")] = None,
    p95: Annotated[str | None, typer.Option("--p95", help="Limit of the p95.")] = None,
    p99: Annotated[str | None, typer.Option("--p99", help="Limit of the p99, e.g. 20ms.")] = None,
    p999: Annotated[str | None, typer.Option("--p99.9", help="Limit of the p99.9.")] = None,
    failures: Annotated[str | None, typer.Option(help="Transactions that may fail; default: 0.1%.")] = None,
    at_most: Annotated[
        float | None,
        typer.Option(
            help="The highest rate that the search tries, transactions per second: for a server that others use.",
            metavar="RATE",
            show_default=False,
        ),
    ] = None,
    workload: Annotated[str | None, typer.Option(help="As of `pgtrial compare`; default: tpcb-like.")] = None,
    query: Annotated[str | None, typer.Option(help="One query in place of a workload.", show_default=False)] = None,
    values: Annotated[
        list[str] | None,
        typer.Option(help="As of `pgtrial compare`.", metavar="NAME=TABLE.COLUMN", show_default=False),
    ] = None,
    data: Annotated[list[str] | None, typer.Option(help="Data of your own.", show_default=False)] = None,
    scale: Annotated[str | None, typer.Option(help="Scale factors, e.g. 10.")] = None,
    clients: Annotated[str | None, typer.Option(help="Connections, e.g. 8: no more transactions run at once.")] = None,
    threads: Annotated[int | None, typer.Option(help="Engine threads.")] = None,
    warmup: Annotated[str | None, typer.Option(help="Closed loop before the probes of each trial, e.g. 10s.")] = None,
    duration: Annotated[str | None, typer.Option(help="Length of a probe, e.g. 5s.")] = None,
    blocks: Annotated[int | None, typer.Option(help="Blocks at most; default: what the budget holds.")] = None,
    budget: Annotated[str | None, typer.Option(help="Time for running the blocks, e.g. 30min; default: 1h.")] = None,
    margin: Annotated[str | None, typer.Option(help="Differences below it count as equivalent, e.g. 1%.")] = None,
    server: Annotated[
        list[str] | None, typer.Option(help="What all arms share, e.g. postgres=17; repeatable.", show_default=False)
    ] = None,
    keys: Keys = None,
    question: Annotated[str | None, typer.Option(help="The question, for the report's title.")] = None,
    results: Annotated[Path | None, typer.Option(help="The study's directory.", show_default=False)] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the order.", min=0)] = None,
    new: Annotated[bool, typer.Option("--new", help="Start anew even if the same study is unfinished.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the progress as JSON Lines.")] = False,
) -> int:
    """Compare the highest rates at which set-ups answer within a limit; of one set-up, find that rate.

    Example: pgtrial capacity shared_buffers=128MB shared_buffers=2GB --p99 20ms --workload select-only --clients 16
    """
    limits = {"p50": p50, "p90": p90, "p95": p95, "p99": p99, "p99.9": p999}
    given = {name: limit for name, limit in limits.items() if limit is not None}
    if len(given) != 1:
        raise StudyError("a capacity has the limit of one percentile; write for example --p99 20ms")
    for name, limit in limits.items():
        if limit is not None and parsed(f"--{name}", parse_duration, limit) <= 0:
            raise StudyError(f"--{name}: a limit is longer than 0; write for example --{name} 20ms")
    if failures is not None and not 0 <= parsed("--failures", parse_share, failures) < 1:
        raise StudyError("--failures: write a share from 0 to below 100%, for example --failures 0.1%")
    if at_most is not None and at_most <= 0:
        raise StudyError("--at-most: write a rate above 0, for example --at-most 500")
    options = {
        **OPTIONS_OF_BOTH,
        "load.capacity": f"--{next(iter(given))}",
        "load.capacity.failures": "--failures",
        "load.capacity.at_most": "--at-most",
    }
    promise = {**given, "failures": failures, "at_most": at_most}
    load = load_of_both(
        workload=workload,
        query=query,
        values=values,
        data=data,
        scale=scale,
        clients=clients,
        threads=threads,
        warmup=warmup,
        duration=duration,
    )
    return run_comparison(
        arms,
        {
            "load": {**load, "capacity": {name: value for name, value in promise.items() if value is not None}},
            "verdict": {"blocks": blocks, "budget": budget, "margin": margin},
        },
        by_options(options, sets=True),
        server=server,
        keys=keys,
        question=question,
        results=results,
        seed=seed,
        new=new,
        json=json,
    )
