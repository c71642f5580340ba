"""`pgtrial screen`: finds out which of many settings matter, in one study."""

from __future__ import annotations

from typing import Annotated

import typer

from pgtrial.cli import study_options
from pgtrial.cli.by_options import by_options
from pgtrial.cli.compare import SHARED_OPTIONS, load_of, sections_of
from pgtrial.cli.conduct import Conclusion, conclude_by_report, start
from pgtrial.cli.confirm import confirm
from pgtrial.model.errors import PgtrialError
from pgtrial.store.directory import StudyDirectory
from pgtrial.store.screens import screening
from pgtrial.store.set_keys import with_keys

OPTIONS = {**SHARED_OPTIONS, "load.rate": "--rate", "verdict.metrics": "--metric"}
"""The options of `screen`, by the keys of the study file that they set. `--set` sets all other keys."""


def screen_command(
    factors: Annotated[
        list[str],
        typer.Argument(
            help="The factors, each with its two levels, the present one first: jit=on,off. A factor is a setting of "
            "PostgreSQL, or one of the keys postgres, huge_pages, thp, governor, io_scheduler, numa and cpus.",
            metavar="NAME=LEVEL,LEVEL...",
            show_default=False,
        ),
    ],
    *,
    workload: study_options.Workload = None,
    query: study_options.Query = None,
    values: study_options.Values = None,
    data: study_options.OwnData = None,
    scale: Annotated[str | None, typer.Option(help="The scale factor of the data, e.g. 10. Default: 10.")] = None,
    clients: Annotated[
        str | None, typer.Option(help="The number of clients that run transactions at the same time. Default: 8.")
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            help="The transactions per second that all clients together start. The factors are then screened by the "
            "response time. Default: each client runs as fast as it can."
        ),
    ] = None,
    threads: study_options.Threads = None,
    warmup: Annotated[
        str | None,
        typer.Option(
            help="How long the load of each trial runs before it is measured, e.g. 2s. Default: until the speed no "
            "longer rises."
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            help="The length of the measured part of each trial, e.g. 5s. Short trials are better for screening, since "
            "it needs many blocks. Default: chosen by the budget."
        ),
    ] = None,
    blocks: study_options.Blocks = None,
    budget: study_options.Budget = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="The metric by which the factors are screened, e.g. p99 or 'wal per transaction'. Default: tps, or "
            "response with --rate."
        ),
    ] = None,
    margin: study_options.Margin = None,
    server: study_options.Shared = None,
    keys: study_options.Keys = None,
    question: study_options.Question = None,
    results: study_options.Results = None,
    seed: study_options.DrawnSeed = None,
    new: study_options.New = False,
    confirm_winner: Annotated[
        bool,
        typer.Option(
            "--confirm",
            help="After the study, compare the winning set-up with the first levels in a study of its own, which takes "
            "the same budget again.",
        ),
    ] = False,
    json: study_options.JsonLines = False,
) -> int:
    """Find out which of many settings matter. Each block measures a set-up in which a coin has chosen the level of each
    factor, and its complement with all other levels, so that every trial tells something about every factor.

    Together the verdicts on all factors are wrong in at most 5% of studies. `pgtrial run DIRECTORY` continues the
    study, and `pgtrial run DIRECTORY --confirm` compares the winning set-up with the first levels.

    Example: pgtrial screen shared_buffers=128MB,1GB jit=on,off wal_compression=off,lz4 --workload orders.sql --budget
    20min
    """
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
    verdict = {"metrics": metric, "blocks": blocks, "budget": budget, "margin": margin}
    reword = by_options(OPTIONS, sets=True)
    load["rate"] = rate.split(",") if rate is not None else None
    given = sections_of({"load": load, "verdict": verdict}, server)
    ended: list[StudyDirectory] = []

    def conclude(study: StudyDirectory) -> Conclusion:
        ended.append(study)
        return conclude_by_report(study, reword)

    try:
        spec = screening(factors, "the command line", question, seed, given, change=with_keys(keys or []))
        status = start(spec, results, anew=new, as_json=json, conclude=conclude, reword=reword)
        if status or not confirm_winner:
            return status
        return confirm(ended[0], spec, as_json=json, reword=reword)
    except PgtrialError as error:
        error.reword(reword)
        raise
