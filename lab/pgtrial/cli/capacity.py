"""`pgtrial capacity`: compares the highest rates at which set-ups still keep a limit of the response time."""

from __future__ import annotations

from typing import Annotated

import typer

from pgtrial.cli import study_options
from pgtrial.cli.by_options import by_options
from pgtrial.cli.compare import SHARED_OPTIONS, load_of, run_comparison
from pgtrial.cli.study_options import parsed
from pgtrial.model.errors import StudyError
from pgtrial.model.units import parse_duration, parse_share


def capacity_command(
    arms: Annotated[
        list[str],
        typer.Argument(help="One or more set-ups, in the same form as for `pgtrial compare`.", show_default=False),
    ],
    *,
    p50: Annotated[str | None, typer.Option("--p50", help="The limit of the median response time, e.g. 5ms.")] = None,
    p90: Annotated[
        str | None, typer.Option("--p90", help="The limit of the 90th percentile of the response time.")
    ] = None,
    p95: Annotated[
        str | None, typer.Option("--p95", help="The limit of the 95th percentile of the response time.")
    ] = None,
    p99: Annotated[
        str | None, typer.Option("--p99", help="The limit of the 99th percentile of the response time, e.g. 20ms.")
    ] = None,
    p999: Annotated[
        str | None, typer.Option("--p99.9", help="The limit of the 99.9th percentile of the response time.")
    ] = None,
    failures: Annotated[
        str | None,
        typer.Option(
            help="The share of transactions that may fail at the rate that is found. If more of them fail at a rate, "
            "the rate counts as too high. Default: 0.1%."
        ),
    ] = None,
    at_most: Annotated[
        float | None,
        typer.Option(
            help="The highest rate that the search tries, in transactions per second. Set it for a server that other "
            "people use, to protect them from overload.",
            metavar="RATE",
            show_default=False,
        ),
    ] = None,
    workload: study_options.Workload = None,
    query: study_options.Query = None,
    values: study_options.Values = None,
    data: study_options.OwnData = None,
    scale: Annotated[
        str | None,
        typer.Option(
            help=(
                "The scale factor of the data, e.g. 10. Several scale factors, separated by commas, are measured one "
                "after the other."
            )
        ),
    ] = None,
    clients: Annotated[
        str | None,
        typer.Option(help="The number of connections, e.g. 8. At most so many transactions run at the same time."),
    ] = None,
    threads: study_options.Threads = None,
    warmup: Annotated[
        str | None,
        typer.Option(
            help=(
                "The warm-up of each trial before its first probe (run at one rate), e.g. 10s. In the warm-up the "
                "clients run as fast as they can."
            )
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            help=(
                "The length of each probe, e.g. 5s. A probe is a run at one rate; the search for the highest rate "
                "takes several probes."
            )
        ),
    ] = None,
    blocks: study_options.Blocks = None,
    budget: study_options.Budget = None,
    margin: study_options.Margin = None,
    server: study_options.Shared = None,
    keys: study_options.Keys = None,
    question: study_options.Question = None,
    results: study_options.Results = None,
    seed: study_options.DrawnSeed = None,
    new: study_options.New = False,
    json: study_options.JsonLines = False,
) -> int:
    """Compare the highest rates, in transactions per second, at which set-ups answer within a time limit. For a single
    set-up, find this rate.

    Example: pgtrial capacity shared_buffers=128MB shared_buffers=2GB --p99 20ms --workload select-only --clients 16
    """
    limits = {"p50": p50, "p90": p90, "p95": p95, "p99": p99, "p99.9": p999}
    given = {name: limit for name, limit in limits.items() if limit is not None}
    if len(given) != 1:
        raise StudyError("a capacity needs the limit of exactly one percentile; write for example --p99 20ms")
    for name, limit in limits.items():
        if limit is not None and parsed(f"--{name}", parse_duration, limit) <= 0:
            raise StudyError(f"--{name}: the limit must be longer than 0; write for example --{name} 20ms")
    if failures is not None and not 0 <= parsed("--failures", parse_share, failures) < 1:
        raise StudyError("--failures: write a share from 0 to below 100%, for example --failures 0.1%")
    if at_most is not None and at_most <= 0:
        raise StudyError("--at-most: write a rate above 0, for example --at-most 500")
    options = {
        **SHARED_OPTIONS,
        "load.capacity": f"--{next(iter(given))}",
        "load.capacity.failures": "--failures",
        "load.capacity.at_most": "--at-most",
    }
    promise = {**given, "failures": failures, "at_most": at_most}
    load = load_of(
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
